"""Which streams the peer has ended itself: what it still sends on them cannot have crossed our RST_STREAM."""

from typing import Final

_REMEMBERED: Final = 128


class ClosedStreams:
    """The last streams that the peer ended (END_STREAM) or reset (RST_STREAM)."""

    __slots__ = ("_ids",)

    def __init__(self) -> None:
        self._ids: dict[int, None] = {}

    def add(self, stream_id: int) -> None:
        self._ids[stream_id] = None
        if len(self._ids) > _REMEMBERED:
            del self._ids[next(iter(self._ids))]

    def __contains__(self, stream_id: int) -> bool:
        return stream_id in self._ids
