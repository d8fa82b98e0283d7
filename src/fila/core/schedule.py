"""Messages that may not be delivered before their time."""

from heapq import heapify, heappop, heappush

from fila.core.lane import Lane

Delayed = tuple[int, int, Lane, int]
"""When the message becomes ready, its sequence number, its lane, its cost."""


MANY_VOID = 64
"""So many entries of removed messages are always tolerated before the order is built anew."""


class Schedule:
    """The delayed messages of one queue, by the time at which they become ready."""

    __slots__ = ("_heap", "_void")

    def __init__(self) -> None:
        self._heap: list[Delayed] = []
        self._void: set[tuple[int, int]] = set()
        """Time and sequence number of entries that were removed but still stand in the heap"""

    def __len__(self) -> int:
        return len(self._heap) - len(self._void)

    def add(self, delayed: Delayed) -> None:
        """Hold a message back until its time."""
        heappush(self._heap, delayed)

    def remove(self, due: int, seq: int) -> None:
        """Forget a message that is here."""
        self._void.add((due, seq))
        if len(self._void) > max(MANY_VOID, len(self._heap) // 2):
            self._heap = self.all()
            self._void.clear()
            heapify(self._heap)

    def next_due(self) -> int | None:
        """When the next message becomes ready, if there is any."""
        self._skip_void()
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: int, limit: int) -> list[Delayed]:
        """Remove and return messages whose time has come, earliest first. `add` puts one back."""
        due: list[Delayed] = []
        self._skip_void()
        while self._heap and self._heap[0][0] <= now and len(due) < limit:
            due.append(heappop(self._heap))
            self._skip_void()
        return due

    def all(self) -> list[Delayed]:
        """Every delayed message, in no order."""
        if not self._void:
            return list(self._heap)
        return [entry for entry in self._heap if (entry[0], entry[1]) not in self._void]

    def _skip_void(self) -> None:
        heap, void = self._heap, self._void
        while void and heap and (heap[0][0], heap[0][1]) in void:
            void.remove((heap[0][0], heap[0][1]))
            heappop(heap)
