"""A two-way call on a blocking socket, for a thread that waits for each answer: no event loop, no other thread.

Whoever waits in the thread that asked is woken once, by the answer. Between two calls nobody listens: what comes
meanwhile, such as a ping, is taken with the next one, and a server that gave the connection up is noticed then.
"""

import socket
import ssl
from time import monotonic
from typing import Final

from fila.wire import status
from fila.wire.address import reason_of, split_address
from fila.wire.client_connection import ClientConnection
from fila.wire.events import (
    Event,
    HeadersReceived,
    MessageReceived,
    StreamEnded,
    StreamLost,
    StreamRefused,
    StreamReset,
)
from fila.wire.headers import encode
from fila.wire.limits import Limits
from fila.wire.protocol import ALPN
from fila.wire.status import Metadata, RpcError, StatusCode, TlsFailed
from fila.wire.stream import Stream
from fila.wire.tls_context import ClientTls, TlsFilesError
from fila.wire.tls_errors import CLOSED_DURING_HANDSHAKE, explain

_RECEIVE_BYTES: Final = 16 << 10
"""Answers are small: a few ids, or what failed."""

_LONGEST_S: Final = 1e6
"""What a socket takes as a timeout has an end."""

_MAX_READS: Final = 16
"""How often what came between two calls is read. A server has little to say there."""
_WRITE_TIMEOUT_S: Final = 1.0
"""How long it may take to write what answers that, such as the ACK of a PING: it fits into the socket's buffer."""


class BlockingConnection:
    """A connection with one call, used by one thread at a time. Deadlines are times of the monotonic clock."""

    def __init__(self, limits: Limits, tls: ClientTls | None = None) -> None:
        self._connection = ClientConnection(limits)
        self._tls = tls
        self._stream = Stream()
        self._socket: socket.socket | None = None
        self._error: RpcError | None = None
        self._midway = True
        """While it connects, and from a request to its answer"""

    @property
    def ended(self) -> bool:
        """Whether it is of no use: the server has ended the call, or something was begun and not brought to its end."""
        return self._midway or self._error is not None

    def connect(self, address: str, path: str, deadline: float, metadata: Metadata = ()) -> None:
        """Begin the call. Raises RpcError."""
        left_s = _until(deadline)
        try:
            addresses = socket.getaddrinfo(*split_address(address), type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:
            raise _unreachable(error) from error
        for each in addresses:
            self.close()
            self._socket = socket.socket(*each[:3])
            self._socket.settimeout(left_s / len(addresses))  # one that does not answer leaves time for the others
            try:
                self._socket.connect(each[4])
                break
            except OSError as error:
                failure = error
        else:
            raise _unreachable(failure) from failure
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            self._secure(self._socket, self._tls, split_address(address)[0], deadline)
        self._flush(deadline)
        while not self._connection.peer.received:
            self._receive(deadline)
        scheme = b"http" if self._tls is None else b"https"
        headers = encode(status.request_headers(path, address, scheme)) + encode(status.write_metadata(metadata))
        self._connection.open(self._stream, headers)
        self._midway = False

    def _secure(self, plain: socket.socket, tls: ClientTls, host: str, deadline: float) -> None:
        """The TLS handshake. Raises RpcError."""
        name = tls.server_name or host
        try:
            # The handshake is a step of its own: `interrupt` needs the new socket before.
            secure = tls.context().wrap_socket(plain, server_hostname=name, do_handshake_on_connect=False)
            self._socket = secure
            secure.settimeout(_until(deadline))
            secure.do_handshake()
        except ssl.SSLEOFError as error:
            raise _unreachable(ConnectionError(CLOSED_DURING_HANDSHAKE)) from error
        except ssl.SSLError as error:
            raise TlsFailed(explain(error, name)) from error
        except TlsFilesError as error:
            raise TlsFailed(str(error)) from error
        except OSError as error:
            raise _failure(error) from error
        if secure.selected_alpn_protocol() != ALPN:
            raise TlsFailed("the server does not offer h2 (ALPN)")

    def ask(self, request: bytes, deadline: float) -> bytes:
        """Send a request and wait for its answer. Raises RpcError, also when the server ends the call."""
        self._midway = True
        self._connection.send_message(self._stream, request)
        self._flush(deadline)
        while not self._stream.messages:
            self._receive(deadline)
        answer = self._connection.read(self._stream)
        assert answer is not None
        self._midway = bool(self._stream.messages)
        return answer

    def still_open(self) -> bool:
        """Take what came since the last answer, and say whether the call goes on."""
        assert self._socket is not None
        try:
            for _ in range(_MAX_READS):
                self._socket.settimeout(0)
                data = self._socket.recv(_RECEIVE_BYTES)
                if not data:
                    return False
                self._take(data, monotonic() + _WRITE_TIMEOUT_S)
        except (BlockingIOError, ssl.SSLWantReadError):
            return not (self.ended or self._stream.messages)
        except (OSError, RpcError):
            return False
        return False

    def interrupt(self) -> None:
        """End the connection under a thread that waits. Callable from any thread."""
        if self._socket is not None:
            try:
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # a thread may be reading: TLS stays as it is
            except OSError:
                return  # it has ended already

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _handle(self, event: Event) -> None:
        if isinstance(event, HeadersReceived):
            if event.end or dict(event.headers).get(b":status") != b"200":
                self._end(RpcError(*status.read_status(event.headers), status.read_metadata(event.headers)))
        elif isinstance(event, StreamEnded):
            self._end(RpcError(StatusCode.INTERNAL, "the call ended without a status"))
        elif isinstance(event, StreamRefused):
            self._end(RpcError(event.code, event.text))
        elif isinstance(event, StreamReset):
            self._end(status.from_reset(event.code))
        elif isinstance(event, StreamLost):
            self._end(RpcError(StatusCode.UNAVAILABLE, event.text))

    def _end(self, error: RpcError) -> None:
        """The first reason counts: a server that has said why may reset the stream behind it."""
        self._error = self._error or error

    def _receive(self, deadline: float) -> None:
        """Wait for bytes and take them. Raises RpcError."""
        assert self._socket is not None
        self._socket.settimeout(_until(deadline))
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except ssl.SSLError as error:
            if self._connection.peer.received:
                raise _failure(error) from error
            raise TlsFailed(explain(error)) from error  # the server has looked at our certificate
        except OSError as error:
            raise _failure(error) from error
        if not data:
            raise RpcError(StatusCode.UNAVAILABLE, "the connection was closed")
        self._take(data, deadline)
        if self._error is not None and not self._stream.messages:
            raise self._error

    def _take(self, data: bytes, deadline: float) -> None:
        connection = self._connection
        for event in connection.receive(data, monotonic()):
            if not isinstance(event, MessageReceived):  # that one is there to be read
                self._handle(event)
        self._flush(deadline)
        if connection.closed:
            self._end(RpcError(StatusCode.UNAVAILABLE, str(connection.failure or "the connection was closed")))

    def _flush(self, deadline: float) -> None:
        if self._connection.out:
            assert self._socket is not None
            out = self._connection.take_output()
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
