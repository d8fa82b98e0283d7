"""Sockets that are given up at a deadline, and only to addresses that a platform may have.

A name is looked up once for a connection. Each of its addresses is checked, and the connection is made to the address
itself: a name that leads elsewhere a moment later (DNS rebinding) changes nothing.

httpcore's timeouts are for one read each, and whatever arrives starts them anew: an answer that trickles in has no end.
Here every wait lasts at most until the deadline of the question that it is for. A question is asked on one thread, so
the deadline is the thread's; a connection that is kept serves other threads later. Looking up a name is left to the
resolver and its own limits.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore

from fila.reconcile.platforms.addresses import check_resolved


class Deadline(threading.local):
    """When this thread's question is over. Without one, nothing is waited for."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = float("-inf")

    def start(self, seconds: float) -> None:
        """A question begins and may take so long."""
        self._at = self._clock() + seconds

    def left(self) -> float:
        """Seconds, more than none. Raises httpcore.TimeoutException."""
        left = self._at - self._clock()
        if left <= 0:
            raise httpcore.TimeoutException("the question took too long")
        return left


class Network(httpcore.NetworkBackend):
    """Connects, and reads and writes, within the deadline. Timeouts that it is given are longer and not looked at."""

    def __init__(
        self, deadline: Deadline, inner: httpcore.NetworkBackend | None = None, *, internal: bool = False
    ) -> None:
        """`internal` platforms may have loopback and private addresses."""
        self._deadline = deadline
        self._internal = internal
        self._inner = inner or httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline holds
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Addresses are tried here, one after the other: the standard library gives the whole timeout to each.

        Raises AddressRefused if one of them is refused, before any is tried.
        """
        failed: Exception = httpcore.ConnectError("the name has no address")
        for address in self._addresses(host, port):
            left = self._deadline.left()
            try:
                found = self._inner.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(found, self._deadline)
        raise failed

    def _addresses(self, host: str, port: int) -> list[str]:
        found = [str(where[0]) for *_, where in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        for address in found:
            check_resolved(host, address, internal=self._internal)
        return found


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the deadline holds
        return self._inner.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - the deadline holds
        self._inner.write(buffer, self._deadline.left())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the deadline holds
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, self._deadline.left()), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
