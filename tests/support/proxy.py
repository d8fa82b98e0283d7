"""A TCP proxy that loses what it is told to lose, for tests of lost requests, lost answers and broken connections."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Stands between clients and a server until it is closed. Each direction can be told to swallow everything."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._closed = False
        self._refusing = False
        self.swallows_requests = False
        self.swallows_answers = False
        self._swallowed = b""
        self._changed = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def addr(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def wait_until_swallowed(self, content: bytes, timeout: float) -> bool:
        """Wait until something that contains this was lost. Reports, pings and the like are lost beside it."""
        with self._changed:
            return self._changed.wait_for(lambda: content in self._swallowed, timeout)

    def cut(self) -> None:
        """Break all connections, and refuse new ones until `mend`."""
        with self._lock:
            self._refusing = True
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _break(pair)

    def mend(self) -> None:
        """Let everything through again."""
        self.swallows_requests = self.swallows_answers = False
        with self._changed:
            self._swallowed = b""
        self._refusing = False

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._closed:
                client, _ = self._listener.accept()
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        pair = (client, server)
        with self._lock:
            if self._refusing or self._closed:
                _break(pair)
                return
            self._pairs.append(pair)
        for source, sink, requests in ((client, server, True), (server, client, False)):
            threading.Thread(target=self._pump, args=(pair, source, sink, requests), daemon=True).start()

    def _pump(
        self, pair: tuple[socket.socket, socket.socket], source: socket.socket, sink: socket.socket, requests: bool
    ) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self.swallows_requests if requests else self.swallows_answers:
                    self._swallow(data)
                else:
                    sink.sendall(data)
        _break(pair)

    def _swallow(self, data: bytes) -> None:
        with self._changed:
            self._swallowed += data
            self._changed.notify_all()


def _break(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
