"""One HTTP/2 connection as a state machine: bytes in, events and bytes out; no I/O.

Rules of this file, and of the two roles that derive from it (`client_connection.py`, `server_connection.py`):
- `receive` takes what arrived and the time, and returns what happened as events. Nobody is called meanwhile. What is to
  be written gathers in `out`; `take_output` hands it over.
- What the peer gets wrong ends the connection with GOAWAY (`failure`); a malformed request is only reset (RST_STREAM).
- **A peer cannot make us hold much.** It has a window for each stream and gets it back only for what was read.
- **A peer cannot keep us busy for nothing.** What costs it little and us something is limited (`flood.py`).

Each part owns its data: `frame_reader` incomplete frames, `flow_control` the windows of what comes, `sender` those of
what goes, `settings` the peer's settings, `control` PINGs, `stream` a stream, `closed_streams` those of the past.
"""

from fila.wire import frames
from fila.wire.closed_streams import ClosedStreams
from fila.wire.control import CONNECTION_FRAMES, Control
from fila.wire.events import (
    Event,
    HeadersReceived,
    MessageReceived,
    PeerChanged,
    StreamEnded,
    StreamLost,
    StreamRefused,
    StreamReset,
    StreamWritable,
)
from fila.wire.flood import FloodGuard, TrustedPeer
from fila.wire.flow_control import ReceiveWindows
from fila.wire.frame_reader import MORE_DATA, FrameReader
from fila.wire.frames import ConnectionFailed
from fila.wire.headers import Block, HeaderDecoder
from fila.wire.limits import Limits
from fila.wire.sender import Sender
from fila.wire.settings import ACKNOWLEDGEMENT, PeerSettings, connection_preface
from fila.wire.status import StatusCode
from fila.wire.stream import PREFIX_BYTES, Buffer, MessageRefused, MessageTooLarge, Stream


class Connection:
    """What both roles have in common."""

    #: How a stream ends whose message or metadata is too large. gRPC says so of what a server sends.
    too_large = StatusCode.RESOURCE_EXHAUSTED

    def __init__(self, limits: Limits, *, server: bool) -> None:
        self._limits = limits
        self._max_message_bytes = limits.max_message_bytes
        self.streams: dict[int, Stream] = {}
        self.out: list[Buffer] = []
        #: Nothing is received or sent any more: close when `out` is written.
        self.closed = False
        self.failure: ConnectionFailed | None = None
        #: No new streams: the peer has sent GOAWAY, or we have.
        self.draining = False
        self.peer = PeerSettings(server=server)
        self.reader = FrameReader(limits, server=server)
        self.sender = Sender(self.peer, self.out)
        self._windows = ReceiveWindows(limits, self.out)
        #: Whether the peer is limited in what costs it little.
        self.limits_floods = limits.limits_floods
        self._floods = FloodGuard() if limits.limits_floods else TrustedPeer()
        self.control = Control(self._floods, self.out)
        self._headers = HeaderDecoder(limits.max_header_bytes)
        self._ended_by_peer = ClosedStreams()
        self._events: list[Event] = []
        self._pump_due = False
        #: The highest stream that was opened, and the highest that the peer opened, which GOAWAY names.
        self._highest_id = self._last_id = 0
        self.out += connection_preface(limits, server=server)

    def take_output(self) -> list[Buffer]:
        """What is to be written."""
        out = self.out.copy()
        self.out.clear()
        self.sender.out_bytes = 0
        return out

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    # What arrives.

    def receive(self, data: Buffer, now: float) -> list[Event]:
        """Take what arrived. Nothing of `data` is kept: its buffer may be used again."""
        if self.closed:
            return []
        self._floods.now = now
        try:
            for kind, flags, stream_id, payload, counted, left in self.reader.read(data):
                if kind == frames.DATA:
                    self._on_data(flags, stream_id, payload, counted, left)
                elif kind == MORE_DATA:
                    self._on_piece(self.streams.get(stream_id), flags, payload, left)
                else:
                    self._on_frame(kind, flags, stream_id, bytes(payload))
            if self._pump_due:
                self._pump()
        except ConnectionFailed as failure:
            self._fail(failure)
        events, self._events = self._events, []
        return events

    def _on_data(self, flags: int, stream_id: int, payload: Buffer, counted: int, left: int) -> None:
        """The header of a DATA frame, and as much of it as is here."""
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
        if stream_id in self._ended_by_peer if stream is None else stream.remote_closed:
            raise ConnectionFailed(frames.STREAM_CLOSED, "DATA after END_STREAM or RST_STREAM")
        self._windows.count(stream, counted)
        size = len(payload) + left
        if not size and not flags & frames.END_STREAM:
            self._floods.count_control("empty DATA frames")
        if stream is not None:
            stream.in_transit = size
            if stream.content_left is not None:
                stream.content_left -= size
        if counted > size:
            self._windows.discard(stream, counted - size)  # padding
        self._on_piece(stream, flags, payload, left)

    def _on_piece(self, stream: Stream | None, flags: int, payload: Buffer, left: int) -> None:
        """Bytes of a DATA frame of which so many are still to come."""
        size = len(payload)
        if stream is None:
            self._windows.discard(None, size)
            return
        stream.in_transit = left
        if size and stream.discarding:
            self._windows.discard(stream, size)
        elif size:
            self._feed(stream, payload, size)
        if not left and flags & frames.END_STREAM:
            self._end_remote(stream)

    def _feed(self, stream: Stream, piece: Buffer, size: int) -> None:
        idle = not stream.messages
        stream.unreturned += size
        if stream.memory is not None:
            stream.memory.received(size)
            self._windows.give_back_connection(size)
        try:
            complete = stream.feed(piece, stream.max_message_bytes or self._max_message_bytes)
        except MessageRefused as error:
            self._give_back(stream, stream.unreturned)
            self._refuse(stream, self.too_large if isinstance(error, MessageTooLarge) else error.code, str(error))
            return
        if complete:
            self._events.append(MessageReceived(stream))
        elif idle and not stream.pulled:
            self._make_way(stream)
        elif idle:
            self._events.append(MessageReceived(stream))  # of which a part is here

    def _end_remote(self, stream: Stream) -> None:
        if stream.content_left:
            self._reset_malformed(stream)
            return
        stream.remote_closed = True
        if stream.local_closed:
            self._drop(stream)
        if stream.mid_message and not stream.discarding:
            self._refuse(stream, StatusCode.INTERNAL, "the stream ended inside a message")
        self._events.append(StreamEnded(stream))

    def _refuse(self, stream: Stream, code: StatusCode, text: str) -> None:
        stream.stop_receiving()
        self._events.append(StreamRefused(stream, code, text))

    def _reset_malformed(self, stream: Stream) -> None:
        """A request or response that breaks the rules of HTTP ends its stream, not the connection."""
        self._floods.count_reset("malformed requests")
        self.reset(stream, frames.PROTOCOL_ERROR)
        self._events.append(StreamReset(stream, frames.PROTOCOL_ERROR))

    def _on_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if kind == frames.HEADERS:
            # Also those that nobody wants: they belong to the state of the decoder.
            self._on_headers(stream_id, self._headers.decode(payload), bool(flags & frames.END_STREAM))
        elif kind == frames.WINDOW_UPDATE:
            self._on_window_update(stream_id, payload)
        elif kind == frames.RST_STREAM:
            self._on_reset(stream_id, payload)
        elif kind in CONNECTION_FRAMES:
            if stream_id:
                raise ConnectionFailed(frames.PROTOCOL_ERROR, f"{CONNECTION_FRAMES[kind]} on a stream")
            self._on_connection_frame(kind, flags, payload)
        elif kind == frames.PUSH_PROMISE:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "PUSH_PROMISE is not allowed")
        else:
            self._floods.count_control("PRIORITY or unknown frames")

    def _on_connection_frame(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == frames.GOAWAY:
            self._on_goaway(payload)
        elif kind == frames.PING:
            # One that follows what we sent measures bandwidth.
            self.control.on_ping(flags, payload, free=self.sender.spoke)
            self.sender.spoke = False
        elif flags & frames.ACK:
            self.control.on_settings_ack(payload)
        else:
            self._on_settings(payload)

    def _on_headers(self, stream_id: int, block: Block, ends: bool) -> None:
        stream = self.streams.get(stream_id)
        if stream is None:
            self._on_new_stream(stream_id, block, ends)
        elif stream.remote_closed:
            raise ConnectionFailed(frames.STREAM_CLOSED, "HEADERS after END_STREAM")
        else:
            self._on_more_headers(stream, block, ends)

    def _on_new_stream(self, stream_id: int, block: Block, ends: bool) -> None:
        """HEADERS on a stream that is not open."""
        del block, ends
        self._check_not_idle(stream_id)

    def _on_more_headers(self, stream: Stream, block: Block, ends: bool) -> None:
        """HEADERS on an open stream: those of a response, or trailers."""
        if block.size > self._limits.max_header_bytes:
            self._refuse_headers(stream, block)
        else:
            self._events.append(HeadersReceived(stream, block.headers, ends))
        if ends:
            self._end_remote(stream)

    def _refuse_headers(self, stream: Stream, block: Block) -> None:
        text = f"the metadata has {block.size} bytes, {self._limits.max_header_bytes} are allowed"
        self._refuse(stream, self.too_large, text)

    def _on_window_update(self, stream_id: int, payload: bytes) -> None:
        size = frames.read_window_update(payload)
        self._pump_due = True
        if not stream_id:
            self.sender.grow(size)
        elif (stream := self.streams.get(stream_id)) is not None:
            self.sender.grow_stream(stream, size)
        else:
            self._check_not_idle(stream_id)

    def _on_reset(self, stream_id: int, payload: bytes) -> None:
        code = frames.read_rst_stream(payload)
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
        else:
            self._ended_by_peer.add(stream_id)
            self._drop(stream)
            self._events.append(StreamReset(stream, code))

    def _on_settings(self, payload: bytes) -> None:
        self._floods.count_control("SETTINGS")
        grown = self.peer.update(payload)
        if grown:
            for stream in self.streams.values():
                self.sender.grow_stream(stream, grown)
        self._pump_due = True
        self.out.append(ACKNOWLEDGEMENT)
        self._events.append(PeerChanged())

    def _on_goaway(self, payload: bytes) -> None:
        last_id, code, text = frames.read_goaway(payload)
        self._floods.count_control("GOAWAYs")
        self.draining = True
        self._end_unseen(last_id)
        self._events.append(PeerChanged())
        if code == frames.INADEQUATE_SECURITY:
            raise ConnectionFailed(code, text)

    def _end_unseen(self, last_id: int) -> None:
        """GOAWAY names the last stream that the peer has seen."""

    def _check_not_idle(self, stream_id: int) -> None:
        """What comes on a stream that has ended is late and harmless; what comes on one that never was is not."""
        if not stream_id or stream_id > self._highest_id:
            raise ConnectionFailed(frames.PROTOCOL_ERROR, "a frame on an idle stream")

    # What is read.

    def read(self, stream: Stream) -> bytes | None:
        """The next message of a stream, if one is here."""
        if not stream.messages:
            return None
        message = stream.messages.popleft()
        if stream.id in self.streams:
            self._was_read(stream, len(message) + PREFIX_BYTES)
        return message

    def _was_read(self, stream: Stream, size: int) -> None:
        """A message of so many bytes was: give window back for it."""
        due = stream.unreturned
        if due:
            # After the last one, all is due: the rest is a part of a message that may be larger than the window.
            due = min(due, size) if stream.messages else due
            self._windows.give_back_stream(stream, due)
            self._windows.give_back_connection(due)

    def pull(self, stream: Stream) -> None:
        """Have the rest of the message come of which a part is here."""
        if stream.id in self.streams and not stream.messages:
            self._make_way(stream)

    def _make_way(self, stream: Stream) -> None:
        """Nobody waits to read anything else: the message that is coming may be larger than the window."""
        self._give_back(stream, stream.unreturned)

    def _give_back(self, stream: Stream, size: int) -> None:
        """Window for what was read. Where memory is counted, the connection has its window back already."""
        self._windows.give_back_stream(stream, size)
        if stream.memory is None:
            self._windows.give_back_connection(size)

    # What is sent. On a stream that has ended, nothing is: the event that says so is on its way.

    def send_headers(self, stream: Stream, block: bytes, *, end: bool = False) -> None:
        """Headers, or trailers with `end`. They must not be sent while a message waits."""
        if stream.closed:
            return
        self.sender.headers(stream, block, end=end)
        if end:
            self._end_local(stream)

    def send_message(self, stream: Stream, message: bytes, *, end: bool = False) -> bool:
        """Whether all of it is on its way. If not, the rest follows as the peer allows, then comes StreamWritable."""
        if stream.closed:
            return True
        sent = self.sender.message(stream, message, end=end)
        if sent and end:
            self._end_local(stream)
        return sent

    def end(self, stream: Stream) -> None:
        """Nothing more is sent on the stream."""
        if stream.outgoing:
            stream.end_when_sent = True
        elif not (stream.local_closed or stream.closed):
            self.sender.end(stream)
            self._end_local(stream)

    def pump(self) -> list[Event]:
        """Send what waits, as far as the peer and the transport allow."""
        self._pump()
        return self._take_events()

    def _pump(self) -> None:
        self._pump_due = False
        for stream in self.sender.pump():
            if stream.end_when_sent:
                self._end_local(stream)
            self._events.append(StreamWritable(stream))

    def _end_local(self, stream: Stream) -> None:
        stream.local_closed = True
        if stream.remote_closed:
            self._drop(stream)

    def reset(self, stream: Stream, code: int) -> None:
        """End both sides of a stream at once (RST_STREAM). A stream that has ended stays as it is."""
        if self.streams.get(stream.id) is stream:
            self.out.append(frames.rst_stream(stream.id, code))
            self._drop(stream)

    # The end.

    def go_away(self) -> None:
        """Accept no new streams (GOAWAY); those that are open may end."""
        self.draining = True
        self.out.append(frames.goaway(self._last_id, frames.NO_ERROR))

    def fail(self, failure: ConnectionFailed) -> list[Event]:
        """End the connection for a reason, which GOAWAY names."""
        self._fail(failure)
        return self._take_events()

    def _fail(self, failure: ConnectionFailed) -> None:
        self.failure = failure
        self.out.append(frames.goaway(self._last_id, failure.code, str(failure)))
        self._close(str(failure))

    def close(self, text: str) -> list[Event]:
        """The connection is gone, and all its streams with it."""
        self._close(text)
        return self._take_events()

    def _close(self, text: str) -> None:
        self.closed = self.draining = True
        lost = list(self.streams.values())
        for stream in lost:
            stream.unreturned = 0  # no WINDOW_UPDATE behind GOAWAY
            self._drop(stream)
        self._events += [StreamLost(stream, text) for stream in lost]

    def _add(self, stream: Stream, stream_id: int) -> None:
        stream.id = stream_id
        self.sender.open(stream)
        self._windows.open(stream)
        self.streams[stream_id] = stream

    def _drop(self, stream: Stream) -> None:
        """The stream has ended. Messages that are here can still be read."""
        self.streams.pop(stream.id, None)
        self.sender.forget(stream)
        stream.closed = True
        if stream.remote_closed:
            self._ended_by_peer.add(stream.id)
        if stream.unreturned:
            unreturned, stream.unreturned = stream.unreturned, 0
            self._windows.give_back_connection(unreturned)
