"""What is sent: headers and messages, as far as the flow-control windows of the peer and the transport allow.

Rules of this file:
- A message that fits into both windows goes out as one DATA frame at once. Any other waits in the stream's `outgoing`.
- Streams that have something to send and a window of their own for it are in `blocked`, in turn. A stream whose own
  window is used up is not looked at before that grows (WINDOW_UPDATE or SETTINGS).
- `pump` sends what waits and returns whom to tell. Of the streams that wait to make a response it names one at a time,
  for what that one sends may use up the window: `pump_again` says that there may be more.
- Headers do not count in windows. They must not be sent while a message of their stream waits.
"""

from collections import OrderedDict
from typing import Final

from fila.wire import frames
from fila.wire.frames import ConnectionFailed
from fila.wire.settings import PeerSettings
from fila.wire.stream import PREFIX_BYTES, Buffer, Stream

MAX_OUT_BYTES: Final = 1 << 20
"""What a server writes at once for one connection, before others have their turn; a single message may be larger."""

_NO_LIMIT: Final = 1 << 62


class Sender:
    """The send windows of one connection, and the streams that wait for them."""

    def __init__(self, settings: PeerSettings, out: list[Buffer]) -> None:
        self._settings = settings
        self._out = out
        self.window = frames.DEFAULT_WINDOW
        #: The transport takes nothing at the moment.
        self.paused = False
        #: Bytes of messages in `out`, how many there may be, and whether something waits for these to be written.
        self.out_bytes = 0
        self.max_out_bytes = _NO_LIMIT
        self.full = False
        self.blocked: OrderedDict[Stream, None] = OrderedDict()
        self.pump_again = False
        #: Whether something was sent since this was last reset to False.
        self.spoke = False

    def headers(self, stream: Stream, block: bytes, *, end: bool) -> None:
        """HEADERS, and CONTINUATION for what exceeds the frame size that every peer accepts."""
        self.spoke = True
        size = frames.MIN_FRAME_BYTES
        first, rest = block[:size], block[size:]
        flags = (frames.END_STREAM if end else 0) | (0 if rest else frames.END_HEADERS)
        self._out.append(frames.frame(frames.HEADERS, flags, stream.id, first))
        while rest:
            first, rest = rest[:size], rest[size:]
            flags = 0 if rest else frames.END_HEADERS
            self._out.append(frames.frame(frames.CONTINUATION, flags, stream.id, first))

    def message(self, stream: Stream, message: bytes, *, end: bool) -> bool:
        """Whether all of it is on its way. If not, the rest follows as the peer allows, and `pump` names the stream."""
        length = len(message)
        size = length + PREFIX_BYTES
        if (
            size <= self.window
            and size <= stream.send_window
            and size <= self._settings.max_frame_bytes
            and not (self.paused or stream.outgoing)
        ):
            self.spoke = True
            self.window -= size
            stream.send_window -= size
            self.out_bytes += size
            flags = frames.END_STREAM if end else 0
            self._out.append(frames.header(size, frames.DATA, flags, stream.id) + b"\0" + length.to_bytes(4, "big"))
            self._out.append(message)
            return True
        return self._queue(stream, message, end=end)

    def _queue(self, stream: Stream, message: bytes, *, end: bool) -> bool:
        length = len(message)
        stream.outgoing.append(memoryview(b"\0" + length.to_bytes(4, "big")))
        if message:
            stream.outgoing.append(memoryview(message))
        stream.end_when_sent = end
        if stream.memory is not None:
            stream.memory.queue(length + PREFIX_BYTES)
        self.unblock(stream)
        if len(self.blocked) == 1 and stream in self.blocked and not self.paused and self.window > 0:
            self._serve(stream)  # nobody else waits
        return not stream.outgoing

    def can_send(self, stream: Stream) -> bool:
        """Whether a response would be on its way at once, at least in part. If not, `pump` names it when it may."""
        if (
            self.window > 0
            and stream.send_window > 0
            and self.out_bytes < self.max_out_bytes
            and not (self.paused or stream.outgoing)
        ):
            return True
        stream.awaits_window = True
        self.full = self.full or self.out_bytes >= self.max_out_bytes
        self.unblock(stream)
        return False

    def pump(self) -> list[Stream]:
        """Send what waits, one stream after the other. Returns those that have sent all they had, or may send now."""
        self.pump_again = False
        ready: list[Stream] = []
        for _ in range(len(self.blocked)):
            if self.paused or self.window <= 0:
                break
            if self.out_bytes >= self.max_out_bytes:
                self.full = True
                break
            stream = next(iter(self.blocked))
            if stream.outgoing:
                self._serve(stream)
                if not stream.outgoing:
                    ready.append(stream)
                continue
            del self.blocked[stream]
            if stream.awaits_window and stream.send_window > 0:
                stream.awaits_window = False
                self.pump_again = bool(self.blocked)
                ready.append(stream)
                break
        return ready

    def _serve(self, stream: Stream) -> None:
        """Send what a blocked stream has, as far as the windows allow. It is blocked no longer, or the last in turn."""
        self._send_waiting(stream)
        if not stream.outgoing or stream.send_window <= 0:
            del self.blocked[stream]
        else:
            self.blocked.move_to_end(stream)

    def _send_waiting(self, stream: Stream) -> None:
        waiting = sum(map(len, stream.outgoing))
        allowed = min(self.window, stream.send_window, waiting)
        if allowed > self.max_out_bytes - self.out_bytes:
            allowed, self.full = self.max_out_bytes - self.out_bytes, True
        if allowed <= 0:
            return
        self.spoke = True
        self.window -= allowed
        stream.send_window -= allowed
        self.out_bytes += allowed
        waiting -= allowed
        while allowed:
            size = min(allowed, self._settings.max_frame_bytes)
            allowed -= size
            ends = stream.end_when_sent and not allowed and not waiting
            self._out.append(frames.header(size, frames.DATA, frames.END_STREAM if ends else 0, stream.id))
            pieces = stream.take_outgoing(size)
            # A view would keep all of its message until the peer has read this part of it.
            self._out.extend(pieces if stream.memory is None else map(bytes, pieces))
        if not waiting and stream.memory is not None:
            stream.memory.sent_all()

    def end(self, stream: Stream) -> None:
        """END_STREAM on an empty DATA frame."""
        self._out.append(frames.header(0, frames.DATA, frames.END_STREAM, stream.id))

    # What the peer allows.

    def open(self, stream: Stream) -> None:
        stream.send_window = self._settings.initial_window

    def grow(self, size: int) -> None:
        """WINDOW_UPDATE of the connection. Raises ConnectionFailed."""
        self.window = _grown(self.window, size)

    def grow_stream(self, stream: Stream, size: int) -> None:
        """WINDOW_UPDATE of a stream, or SETTINGS, by which it may shrink. Raises ConnectionFailed."""
        stream.send_window = _grown(stream.send_window, size)
        self.unblock(stream)

    def unblock(self, stream: Stream) -> None:
        """Have the stream looked at by the next `pump`, if it has something to send and a window of its own."""
        if stream.send_window > 0 and (stream.outgoing or stream.awaits_window) and stream not in self.blocked:
            self.blocked[stream] = None

    def forget(self, stream: Stream) -> None:
        self.blocked.pop(stream, None)
        stream.outgoing.clear()


def _grown(window: int, size: int) -> int:
    window += size
    if window > frames.MAX_WINDOW:
        raise ConnectionFailed(frames.FLOW_CONTROL_ERROR, "a flow-control window exceeds 2**31 - 1")
    return window
