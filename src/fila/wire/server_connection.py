"""The server's role on a connection: it accepts streams, and counts every byte that it holds for them.

A request that is larger than the flow-control window of its stream gets window for all of it at once, when the whole
server has memory for it (`memory_quota.py`); a client gives its server window as a response comes.
"""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Final

from fila.wire import frames
from fila.wire.connection import Connection
from fila.wire.events import Event, RequestReceived, StreamRefused, StreamWritable
from fila.wire.frames import ConnectionFailed
from fila.wire.headers import Block, Headers, fault_of_trailers
from fila.wire.limits import Limits
from fila.wire.memory_quota import Account
from fila.wire.sender import MAX_OUT_BYTES
from fila.wire.status import StatusCode
from fila.wire.stream import Stream
from fila.wire.stream_memory import StreamMemory
from fila.wire.time_slice import CALL_UNITS

CALL_BYTES: Final = 4 << 10
"""What an open call is counted as, besides its headers and messages."""

_HEADER_BYTES_A_UNIT: Final = 64

MessageLimit = Callable[[Headers], int | None]
"""The largest message of the call that begins with these headers; None: as large as the connection accepts any."""


class ServerConnection(Connection):
    """A connection that accepts streams. Counts nothing before it has an account (`charge`)."""

    #: Sending it again would not help, which RESOURCE_EXHAUSTED means to a client.
    too_large = StatusCode.INVALID_ARGUMENT

    def __init__(self, limits: Limits, message_limit: MessageLimit = lambda _: None) -> None:
        super().__init__(limits, server=True)
        self._message_limit = message_limit
        self.account: Account | None = None
        #: Called when there is memory that a stream waited for: `grant` is to be called then.
        self.on_granted: Callable[[Stream], None] = _nothing

    def charge(self, account: Account) -> None:
        """Count what is held for the peer in this account."""
        self.account = account
        self.sender.max_out_bytes = MAX_OUT_BYTES

    # Requests.

    def _on_new_stream(self, stream_id: int, block: Block, ends: bool) -> None:
        if stream_id <= self._last_id:
            if block.begins_request:  # trailers of a stream that has ended are late and harmless
                raise ConnectionFailed(frames.STREAM_CLOSED, "a request on a stream that is closed")
            return
        if not stream_id % 2:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "a client opened a stream with an even number")
        self._last_id = self._highest_id = stream_id
        self.reader.work_units += CALL_UNITS + block.size // _HEADER_BYTES_A_UNIT
        refused = self.draining or len(self.streams) >= self._limits.max_streams
        if refused or block.fault:
            self._floods.count_reset("streams that are refused")
            code = frames.REFUSED_STREAM if refused else frames.PROTOCOL_ERROR
            self.out.append(frames.rst_stream(stream_id, code))
            return
        too_large = block.size > self._limits.max_header_bytes
        if too_large:
            self._floods.count_reset("requests with too many headers")
        self._accept(stream_id, () if too_large else block.headers, block.size)
        stream = self.streams[stream_id]
        if too_large:
            self._refuse_headers(stream, block)
        elif ends:
            self._end_remote(stream)

    def _accept(self, stream_id: int, headers: Headers, size: int) -> None:
        stream = Stream()
        stream.max_message_bytes = self._message_limit(headers)
        stream.content_left = next((int(value) for name, value in headers if name == b"content-length"), None)
        if self.account is not None:
            stream.memory = StreamMemory(self.account, CALL_BYTES + size)
        self._add(stream, stream_id)
        self._events.append(RequestReceived(stream, headers))

    def _on_more_headers(self, stream: Stream, block: Block, ends: bool) -> None:
        if not ends:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "HEADERS in the middle of a request")
        if fault_of_trailers(block.headers):
            self._reset_malformed(stream)
        else:
            super()._on_more_headers(stream, block, ends)

    def _on_reset(self, stream_id: int, payload: bytes) -> None:
        self._floods.count_reset("RST_STREAMs")
        super()._on_reset(stream_id, payload)

    # Memory of requests.

    def _was_read(self, stream: Stream, size: int) -> None:
        if stream.memory is None:
            super()._was_read(stream, size)
            return
        stream.memory.begin_request(size)
        self._give_back(stream, min(stream.unreturned, size))
        if not stream.messages:
            self._make_way(stream)

    def _make_way(self, stream: Stream) -> None:
        memory = stream.memory
        if memory is None:
            super()._make_way(stream)
        elif (
            memory.reservation is None
            and not memory.reserved
            and not self._windows.fits(stream)
            and memory.reserve_request(stream.missing, self._floods.now, partial(self.on_granted, stream))
        ):
            self._grant_request(stream, memory)

    def _grant_request(self, stream: Stream, memory: StreamMemory) -> bool:
        """Whether there is still something to come that needs the memory."""
        if not memory.grant_request(stream.missing):
            return False
        self._windows.extend(stream)
        return True

    def grant(self, stream: Stream) -> list[Event]:
        """There is memory that the stream waited for."""
        memory = stream.memory
        assert memory is not None
        if memory.for_response:
            memory.grant_response()
        elif not self._grant_request(stream, memory):
            return []
        return [StreamWritable(stream)]

    def _drop(self, stream: Stream) -> None:
        if stream.memory is not None:
            stream.memory.close()
            stream.unreturned = 0
        super()._drop(stream)

    # Responses.

    def can_send(self, stream: Stream) -> bool:
        """Whether a response would be on its way at once, at least in part. If not, StreamWritable says when it may."""
        return stream.closed or self.sender.can_send(stream)

    def reserve(self, stream: Stream, size: int) -> bool:
        """Whether there is memory for a response that is going to be made. If not, StreamWritable says when it may."""
        if stream.memory is None or stream.id not in self.streams:
            return True
        return stream.memory.reserve_response(size, self._floods.now, partial(self.on_granted, stream))

    # Eviction.

    @property
    def largest(self) -> Stream | None:
        """The stream for which most is held."""
        counted = [stream for stream in self.streams.values() if stream.memory is not None]
        return max(counted, key=attrgetter("memory.held"), default=None)

    def evict(self, stream: Stream) -> list[Event]:
        """Hold nothing for a stream, which is to be ended. Ends the connection when that happens too often."""
        assert stream.memory is not None
        try:
            self._floods.count_eviction("calls end because too many bytes are held for this connection")
        except ConnectionFailed as failure:
            return self.fail(failure)
        stream.memory.close()
        stream.stop_receiving()
        return [StreamRefused(stream, StatusCode.RESOURCE_EXHAUSTED, "too many bytes are held for this peer")]


def _nothing(_: Stream) -> None:
    pass
