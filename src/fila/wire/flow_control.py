"""Flow control of what the peer sends: it gets window back (WINDOW_UPDATE) for what was read, and for nothing else.

A connection and each of its streams have a window. Bytes that arrive are counted in both at the header of their DATA
frame. They are given back when it is worth a frame: a stream's at half of its window, the connection's at a quarter.
What the peer lets us send is in `sender.py`.
"""

from fila.wire import frames
from fila.wire.frames import ConnectionFailed
from fila.wire.limits import Limits
from fila.wire.stream import Buffer, Stream


class ReceiveWindows:
    """The receive window of a connection, and the arithmetic of those of its streams."""

    def __init__(self, limits: Limits, out: list[Buffer]) -> None:
        self._stream_window = limits.stream_window
        self._connection_window = limits.connection_window
        self._out = out
        self._window = limits.connection_window
        self._unreturned = 0

    def open(self, stream: Stream) -> None:
        stream.recv_window = self._stream_window

    def count(self, stream: Stream | None, size: int) -> None:
        """The header of a DATA frame came. Raises ConnectionFailed when the peer had no window for it."""
        self._window -= size
        if stream is not None:
            stream.recv_window -= size
        if self._window < 0 or (stream is not None and stream.recv_window < 0):
            raise ConnectionFailed(frames.FLOW_CONTROL_ERROR, "DATA exceeds the flow-control window")

    def discard(self, stream: Stream | None, size: int) -> None:
        """Bytes came that nobody reads: give them back at once."""
        if stream is not None:
            stream.unreturned += size
            self.give_back_stream(stream, size)
        self.give_back_connection(size)

    def give_back_stream(self, stream: Stream, size: int) -> None:
        stream.unreturned -= size
        window = self._stream_window
        free = window - stream.recv_window - stream.unreturned - stream.in_transit
        if free * 2 >= window and not stream.remote_closed:
            self._update(stream, free)

    def give_back_connection(self, size: int) -> None:
        self._unreturned += size
        if self._unreturned * 4 >= self._connection_window:
            self._window += self._unreturned
            self._out.append(frames.window_update(0, self._unreturned))
            self._unreturned = 0

    def fits(self, stream: Stream) -> bool:
        """Whether the rest of the message that is coming fits into the window that the peer has."""
        return stream.missing <= stream.recv_window + stream.in_transit

    def extend(self, stream: Stream) -> None:
        """Give the peer window for the rest of the message that is coming."""
        more = stream.missing - stream.recv_window - stream.in_transit
        if more > 0:
            self._update(stream, more)

    def _update(self, stream: Stream, size: int) -> None:
        stream.recv_window += size
        self._out.append(frames.window_update(stream.id, size))
