"""How a server answers one call: response headers, messages, and trailers with the status, in this order and once."""

from functools import lru_cache
from typing import Final

from fila.wire import frames, status
from fila.wire.headers import encode
from fila.wire.server_protocol import ServerProtocol
from fila.wire.status import Metadata, StatusCode
from fila.wire.stream import Stream

_HEADERS: Final = encode(
    [(b":status", b"200"), (b"content-type", b"application/grpc"), (b"grpc-accept-encoding", b"identity")]
)
_OK: Final = encode(status.write_status(StatusCode.OK))


class Responder:
    """What is sent on one stream. The status is that of `code` and `details` when the call finishes."""

    __slots__ = ("_headers_sent", "_protocol", "_stream", "code", "details", "ended", "trailing")

    def __init__(self, protocol: ServerProtocol, stream: Stream) -> None:
        self._protocol = protocol
        self._stream = stream
        self._headers_sent = False
        self.code = StatusCode.OK
        self.details = ""
        self.trailing: Metadata = ()
        #: Whether the caller knows how the call ended, or is gone.
        self.ended = False

    def send_headers(self, metadata: Metadata) -> bool:
        """Whether they were not sent before."""
        if self._headers_sent:
            return False
        self._headers_sent = True
        block = _HEADERS + encode(status.write_metadata(metadata)) if metadata else _HEADERS
        self._protocol.connection.send_headers(self._stream, block)
        return True

    def send(self, message: bytes) -> None:
        """A response. The request that it answers is not held any more."""
        if not self._headers_sent:
            self.send_headers(())
        memory = self._stream.memory
        if memory is not None:
            memory.finish_request()
            memory.finish_response()
        if not self._protocol.connection.send_message(self._stream, message):
            self._protocol.relieve()

    def finish(self) -> None:
        """Say how the call ended, once."""
        if self.ended:
            return
        self.ended = True
        connection, stream = self._protocol.connection, self._stream
        if stream.outgoing:  # it was ended in the middle of a message
            connection.reset(stream, frames.CANCEL)
        else:
            block = _OK if self.code is StatusCode.OK else _status_block(self.code, self.details)
            if self.trailing:
                block += encode(status.write_metadata(self.trailing))
            connection.send_headers(stream, block if self._headers_sent else _HEADERS + block, end=True)
            connection.reset(stream, frames.NO_ERROR)  # the caller need not say the rest
        stream.discard()
        self._protocol.flush()

    def answer_http(self, answer: bytes) -> None:
        """End what is no call of gRPC with headers of HTTP."""
        self.ended = True
        connection = self._protocol.connection
        connection.send_headers(self._stream, answer, end=True)
        connection.reset(self._stream, frames.NO_ERROR)
        self._stream.discard()
        self._protocol.flush()


@lru_cache(maxsize=64)
def _status_block(code: StatusCode, details: str) -> bytes:
    return encode(status.write_status(code, details))
