"""The client's role on a connection: it opens streams."""

from fila.wire import frames
from fila.wire.connection import Connection
from fila.wire.events import StreamLost
from fila.wire.limits import Limits
from fila.wire.stream import Stream


class ClientConnection(Connection):
    """A connection that opens streams. Look at `can_open` before."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits, server=False)
        self._next_id = 1

    @property
    def can_open(self) -> bool:
        """Whether the server accepts one more stream: SETTINGS_MAX_CONCURRENT_STREAMS, GOAWAY."""
        return self.peer.received and not self.draining and len(self.streams) < self.peer.max_streams

    def open(self, stream: Stream, block: bytes) -> None:
        """Begin a call with these headers."""
        self._highest_id = self._next_id
        self._add(stream, self._next_id)
        self._next_id += 2
        if self._next_id > frames.MAX_STREAM_ID:
            self.draining = True  # all numbers are used up
        self.send_headers(stream, block)

    def _end_unseen(self, last_id: int) -> None:
        for stream in [each for each in self.streams.values() if each.id > last_id]:
            self._drop(stream)
            self._events.append(StreamLost(stream, "the server is going away"))
