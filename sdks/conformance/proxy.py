"""The fault proxy: stands between a driver and the server, and delays, loses or cuts what passes through it."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from tests.support.proxy import Proxy


class FaultProxy(Proxy):
    """Adds to the proxy of the tests: slow answers, and a thread that cuts all connections again and again."""

    def __init__(self, target: str) -> None:
        self.delay_s = 0.0
        self._cutting: threading.Thread | None = None
        self._stop_cutting = threading.Event()
        super().__init__(target)

    def mend(self) -> None:
        """Let everything through again, at once."""
        self._stop_cutting.set()
        if self._cutting is not None:
            self._cutting.join()
            self._cutting = None
        self.delay_s = 0.0
        super().mend()

    def cut_every(self, seconds: float) -> None:
        """Break all connections every so often, and take new ones at once, until `mend`."""
        self._stop_cutting.clear()
        self._cutting = threading.Thread(target=self._cut_on, args=(seconds,), daemon=True)
        self._cutting.start()

    def _cut_on(self, seconds: float) -> None:
        while not self._stop_cutting.wait(seconds):
            self.cut()
            super().mend()

    def _pump(
        self, pair: tuple[socket.socket, socket.socket], source: socket.socket, sink: socket.socket, requests: bool
    ) -> None:
        # Without it the kernel holds small answers back until the last ones are acknowledged: 40 ms each.
        with suppress(OSError):  # it was cut already
            sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        slow = sink if requests else _Slow(sink, lambda: self.delay_s)
        super()._pump(pair, source, slow, requests)  # type: ignore[arg-type]  # all that it uses of a sink is sendall


class _Slow:
    """The end of a socket that is written to late."""

    def __init__(self, sink: socket.socket, delay_s: Callable[[], float]) -> None:
        self._sink = sink
        self._delay_s = delay_s

    def sendall(self, data: bytes) -> None:
        time.sleep(self._delay_s())
        self._sink.sendall(data)


def dead_address() -> str:
    """An address where nothing listens."""
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", 0))
        host, port = probe.getsockname()
    return f"{host}:{port}"
