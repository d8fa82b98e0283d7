"""A two-way call on a connection of its own, for a thread that waits for each answer: no event loop, no other thread.

Whoever waits in the thread that asked is woken once, by the answer. Between two calls nobody listens: what comes
meanwhile, such as a ping, is taken with the next one, and a server that gave the connection up is noticed then.
"""

import socket
from time import monotonic
from typing import Final

from fila.wire import status
from fila.wire.address import reason_of, split_address
from fila.wire.connection import Connection, Limits
from fila.wire.headers import Headers, encode
from fila.wire.status import RpcError, StatusCode
from fila.wire.stream import MessageRefused, Stream

_RECEIVE_BYTES: Final = 16 << 10
"""Answers are small: a few ids, or what failed."""

_LONGEST_S: Final = 1e6
"""What a socket takes as a timeout has an end."""

_LOOKS: Final = 16
"""How often what came between two calls is read. A server has little to say there."""
_LOOK_S: Final = 1.0
"""How long an answer to that may take to be written. There is room for it, or something is wrong."""


class Line(Stream):
    """One call, asked by one thread at a time. Deadlines are times of the monotonic clock."""

    __slots__ = ("_connection", "_error", "_midway", "_socket")

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._connection = Connection(limits)
        self._socket: socket.socket | None = None
        self._error: RpcError | None = None
        self._midway = True
        """While it connects, and from a request to its answer"""

    @property
    def ended(self) -> bool:
        """Whether it is of no use: the server has ended the call, or something was begun and not brought to its end."""
        return self._midway or self._error is not None

    def connect(self, address: str, path: str, deadline: float) -> None:
        """Begin the call. Raises RpcError."""
        left_s = _until(deadline)
        try:
            places = socket.getaddrinfo(*split_address(address), type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:
            raise _unreachable(error) from error
        for place in places:
            self.close()
            self._socket = socket.socket(*place[:3])
            self._socket.settimeout(left_s / len(places))  # one that does not answer leaves time for the others
            try:
                self._socket.connect(place[4])
                break
            except OSError as error:
                failure = error
        else:
            raise _unreachable(failure) from failure
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._flush(deadline)
        while not self._connection.ready:
            self._receive(deadline)
        self._connection.open(self, encode(status.request_headers(path, address)))
        self._midway = False

    def ask(self, request: bytes, deadline: float) -> bytes:
        """Send a request and wait for its answer. Raises RpcError, also when the server ends the call."""
        self._midway = True
        self._connection.send_message(self, request)
        self._flush(deadline)
        while not self.messages:
            self._receive(deadline)
        answer = self._connection.read(self)
        assert answer is not None
        self._midway = bool(self.messages)
        return answer

    def still_open(self) -> bool:
        """Take what came since the last answer, and say whether the call goes on."""
        assert self._socket is not None
        try:
            for _ in range(_LOOKS):
                self._socket.settimeout(0)
                data = self._socket.recv(_RECEIVE_BYTES)
                if not data:
                    return False
                self._take(data, monotonic() + _LOOK_S)
        except BlockingIOError:
            return not (self.ended or self.messages)
        except (OSError, RpcError):
            return False
        return False

    def interrupt(self) -> None:
        """End the connection under a thread that waits. Callable from any thread."""
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended already

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    # What happens to the stream.

    def got_headers(self, headers: Headers, end: bool) -> None:
        if end or dict(headers).get(b":status") != b"200":
            self._end(RpcError(*status.read_status(headers), status.read_metadata(headers)))

    def readable(self) -> None:
        if self.remote_closed:
            self._end(RpcError(StatusCode.INTERNAL, "the call ended without a status"))

    def refused(self, error: MessageRefused) -> None:
        self._end(RpcError(error.code, str(error)))

    def lost(self, code: int | None, text: str) -> None:
        self._end(RpcError(StatusCode.UNAVAILABLE, text) if code is None else status.from_reset(code))

    def _end(self, error: RpcError) -> None:
        """The first reason counts: a server that has said why may reset the stream behind it."""
        self._error = self._error or error

    def _receive(self, deadline: float) -> None:
        """Wait for bytes and take them. Raises RpcError."""
        assert self._socket is not None
        self._socket.settimeout(_until(deadline))
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise _failure(error) from error
        if not data:
            raise RpcError(StatusCode.UNAVAILABLE, "the connection was closed")
        self._take(data, deadline)
        if self._error is not None and not self.messages:
            raise self._error

    def _take(self, data: bytes, deadline: float) -> None:
        connection = self._connection
        connection.receive(data, monotonic())
        self._flush(deadline)
        if connection.closed:
            self._end(RpcError(StatusCode.UNAVAILABLE, str(connection.failure or "the connection was closed")))

    def _flush(self, deadline: float) -> None:
        out = self._connection.out
        if out:
            assert self._socket is not None
            self._connection.out = []
            self._socket.settimeout(_until(deadline))
            try:
                self._socket.sendall(b"".join(out))
            except OSError as error:
                raise _failure(error) from error


def _failure(error: OSError) -> RpcError:
    if isinstance(error, TimeoutError) and error.errno is None:  # ours, and not the kernel's
        return RpcError(StatusCode.DEADLINE_EXCEEDED, "no answer in time")
    return RpcError(StatusCode.UNAVAILABLE, f"the connection was lost: {reason_of(error)}")


def _unreachable(error: Exception) -> RpcError:
    return RpcError(StatusCode.UNAVAILABLE, f"cannot connect: {reason_of(error)}")


def _until(deadline: float) -> float:
    """The seconds that are left. Raises RpcError when there are none."""
    left_s = deadline - monotonic()
    if left_s <= 0:
        raise RpcError(StatusCode.DEADLINE_EXCEEDED, "no answer in time")
    return min(left_s, _LONGEST_S)
