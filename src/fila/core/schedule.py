"""Messages that may not be delivered before their time."""

from heapq import heappop, heappush

from fila.core.pending import Lane

Delayed = tuple[int, int, Lane, int]
"""When the message becomes ready, its sequence number, its lane, its cost."""


class Schedule:
    """The delayed messages of one queue, by the time at which they become ready."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[Delayed] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, delayed: Delayed) -> None:
        """Hold a message back until its time."""
        heappush(self._heap, delayed)

    def next_due(self) -> int | None:
        """When the next message becomes ready, if there is any."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: int, limit: int) -> list[Delayed]:
        """Remove and return messages whose time has come, earliest first. `add` puts one back."""
        due: list[Delayed] = []
        while self._heap and self._heap[0][0] <= now and len(due) < limit:
            due.append(heappop(self._heap))
        return due

    def all(self) -> list[Delayed]:
        """Every delayed message, in no order."""
        return list(self._heap)
