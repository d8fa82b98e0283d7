"""A two-way call on a connection of its own, for a thread that waits for each answer: no event loop, no other thread.

Whoever waits in the thread that asked is woken once, by the answer. Between two calls nobody listens: what comes
meanwhile, such as a ping, is taken with the next one, and a server that gave the connection up is noticed then.
"""

import socket
from time import monotonic
from typing import Final

from grpc import StatusCode

from fila.wire import status
from fila.wire.address import reason_of, split_address
from fila.wire.connection import Connection, Limits
from fila.wire.headers import Headers, encode
from fila.wire.status import RpcError
from fila.wire.stream import MessageRefused, Stream

_RECEIVE_BYTES: Final = 16 << 10
"""Answers are small: a few ids, or what failed."""


class Line(Stream):
    """One call, asked by one thread at a time. After an error it is of no use any more, and is to be closed.

    Deadlines are times of the monotonic clock.
    """

    __slots__ = ("_connection", "_error", "_socket")

    def __init__(self, address: str, path: str, limits: Limits, deadline: float) -> None:
        """Connect and begin the call. Raises RpcError."""
        super().__init__()
        self._error: RpcError | None = None
        self._connection = Connection(limits)
        try:
            self._socket = socket.create_connection(split_address(address), _until(deadline))
        except (OSError, ValueError) as error:
            raise RpcError(StatusCode.UNAVAILABLE, f"cannot connect: {reason_of(error)}") from error
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._flush()
            while not self._connection.ready:
                self._receive(deadline)
            self._connection.open(self, encode(status.request_headers(path, address)))
        except BaseException:
            self._socket.close()
            raise

    def ask(self, request: bytes, deadline: float) -> bytes:
        """Send a request and wait for its answer. Raises RpcError, also when the server ends the call."""
        self._socket.settimeout(_until(deadline))
        self._check()
        self._connection.send_message(self, request)
        self._flush()
        while not self.messages:
            self._receive(deadline)
        answer = self._connection.read(self)
        assert answer is not None
        return answer

    def still_open(self) -> bool:
        """Take what came since the last answer, and say whether the call goes on."""
        self._socket.settimeout(0)
        try:
            while data := self._socket.recv(_RECEIVE_BYTES):
                self._take(data)
        except BlockingIOError:
            return self._error is None
        except (OSError, RpcError):
            return False
        return False

    def interrupt(self) -> None:
        """End the connection under a thread that waits. Callable from any thread."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it has ended already

    def close(self) -> None:
        self._socket.close()

    # What happens to the stream.

    def got_headers(self, headers: Headers, end: bool) -> None:
        if end or dict(headers).get(b":status") != b"200":
            self._end(RpcError(*status.read_status(headers), status.read_metadata(headers)))

    def refused(self, error: MessageRefused) -> None:
        self._end(RpcError(error.code, str(error)))

    def lost(self, code: int | None, text: str) -> None:
        self._end(RpcError(StatusCode.UNAVAILABLE, text) if code is None else status.from_reset(code))

    def _end(self, error: RpcError) -> None:
        """The first reason counts: a server that has said why may reset the stream behind it."""
        self._error = self._error or error

    def _receive(self, deadline: float) -> None:
        """Wait for bytes and take them. Raises RpcError."""
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise _failure(error) from error
        if not data:
            raise RpcError(StatusCode.UNAVAILABLE, "the connection was closed")
        self._take(data)
        if not self.messages:
            self._check()
            self._socket.settimeout(_until(deadline))

    def _take(self, data: bytes) -> None:
        self._connection.receive(data, monotonic())
        self._flush()

    def _flush(self) -> None:
        out = self._connection.out
        if out:
            self._connection.out = []
            try:
                self._socket.sendall(b"".join(out))
            except OSError as error:
                raise _failure(error) from error

    def _check(self) -> None:
        if self._error is not None:
            raise self._error


def _failure(error: OSError) -> RpcError:
    if isinstance(error, TimeoutError):
        return RpcError(StatusCode.DEADLINE_EXCEEDED, "no answer in time")
    return RpcError(StatusCode.UNAVAILABLE, f"the connection was lost: {reason_of(error)}")


def _until(deadline: float) -> float:
    """The seconds that are left. Raises RpcError when there are none."""
    left_s = deadline - monotonic()
    if left_s <= 0:
        raise RpcError(StatusCode.DEADLINE_EXCEEDED, "no answer in time")
    return left_s
