"""What a queue holds, and what it may hold.

Rules of this file:
- a message counts from when it is enqueued until it leaves the queue, wherever it is: ready, delayed, leased, or
  waiting as a suspect. So nothing that comes back can exceed a limit;
- what is staged counts beside it, since its commit cannot be refused any more;
- bytes are those of headers and payloads as they were encoded. They are counted while there is a limit of them;
- a queue that is over its limit, because that was lowered, keeps what it has.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fila.core.errors import QueueFull, quoted
from fila.core.fair_key import FairKey
from fila.core.longest import LongestKeys
from fila.core.sizes import Sizes

OVER_MESSAGES: Final = 10_000
OVER_BYTES: Final = 16 << 20
"""How far a queue that drops its oldest messages may be over its limit until they are dropped, in the next ticks"""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """0 means that there is no limit."""

    max_depth: int
    max_bytes: int
    drop_oldest: bool
    depth_name: str = "max_depth"
    bytes_name: str = "max_bytes"
    """What the limits are called: they are the queue's own, or those of its owner."""


Standing = tuple[int, int, QueueLimits | None]
"""Messages, bytes and limits of a queue at one moment."""


class Capacity:
    """Of one queue."""

    __slots__ = ("bytes", "limits", "longest", "messages", "name", "sizes", "staged", "staged_bytes")

    def __init__(self, name: str, keys: Mapping[str, FairKey]) -> None:
        self.name = name
        self.longest = LongestKeys(keys)
        self.messages = 0
        self.bytes = 0
        self.staged = 0
        self.staged_bytes = 0
        self.limits: QueueLimits | None = None
        self.sizes: Sizes | None = None
        """Of each message; None while bytes are not limited"""

    def limit(self, limits: QueueLimits | None) -> bool:
        """Go by these limits from now on. Returns whether the bytes of what is there have to be counted."""
        self.limits = limits
        if limits is None or not limits.max_bytes:
            self.sizes, self.bytes = None, 0
            return False
        if self.sizes is not None:
            return False
        self.sizes = Sizes()
        return self.messages > 0

    def enter(self, keys: Iterable[FairKey], count: int, sizes: Mapping[int, int]) -> None:
        """Messages have come; of queues whose bytes are limited with their sizes."""
        self.messages += count
        if self.limits is not None:
            self.longest.grew(keys)
            for seq, size in sizes.items() if self.sizes is not None else ():
                self.measure(seq, size)

    def leave(self, seqs: Collection[int]) -> None:
        """Messages have gone."""
        self.messages -= len(seqs)
        if self.sizes is not None:
            self.bytes -= sum(map(self.sizes.take, seqs))

    def measure(self, seq: int, size: int) -> None:
        """A message that is there has so many bytes."""
        if self.sizes is not None and self.sizes.add(seq, size):
            self.bytes += size

    def size_of(self, seq: int) -> int:
        """What a message counts in `bytes`."""
        return self.sizes.get(seq) if self.sizes is not None else 0

    def stage(self, messages: int, size: int) -> None:
        """So much more is staged, or less."""
        self.staged += messages
        self.staged_bytes += size

    @property
    def standing(self) -> Standing:
        return self.messages, self.bytes, self.limits

    @property
    def excess(self) -> tuple[int, int]:
        """By how many messages and bytes the queue is over its limits."""
        limits = self.limits
        if limits is None:
            return 0, 0
        messages = self.messages - limits.max_depth if limits.max_depth else 0
        return max(0, messages), max(0, self.bytes - limits.max_bytes if limits.max_bytes else 0)

    @property
    def used(self) -> float | None:
        """The part of the limit that is used, of the one that is nearer; None when there is none."""
        limits = self.limits
        if limits is None:
            return None
        parts = ((self.messages, limits.max_depth), (self.bytes, limits.max_bytes))
        return max(held / limit for held, limit in parts if limit)

    def room(self, droppable: int | None = None) -> "Room | None":
        """What the queue takes in one tick; None for anything. More, if it may be over its limit until so many messages
        were dropped.
        """
        return None if self.limits is None else Room(self, self.limits, droppable)

    def check_staging(self, messages: int, size: int) -> None:
        """Raises QueueFull when there is no room to stage so much more."""
        limits = self.limits
        if limits is None:
            return
        held, held_bytes = (0, 0) if limits.drop_oldest else (self.messages, self.bytes)
        if limits.max_depth and held + self.staged + messages > limits.max_depth:
            raise self.full(limits, self.messages + self.staged)
        if limits.max_bytes and held_bytes + self.staged_bytes + size > limits.max_bytes:
            raise self.full(limits, self.bytes + self.staged_bytes, size)

    def full(self, limits: QueueLimits, held: int, more_bytes: int | None = None) -> QueueFull:
        """The refusal of a queue that holds so many messages, or bytes if that is what there are too many of."""
        what = f"{held} messages, {limits.depth_name}={limits.max_depth}"
        if more_bytes is not None:
            what = f"{held} bytes, {more_bytes} more would exceed {limits.bytes_name}={limits.max_bytes}"
        return QueueFull(f"queue {quoted(self.name)} is full: it holds {what}; retry when some are settled")


class Room:
    """How much more a queue takes in one tick. What leaves it in the same tick makes room in the next."""

    __slots__ = ("_bytes", "_capacity", "_limits", "_messages", "_taken", "_taken_bytes", "measures", "refused")

    def __init__(self, capacity: Capacity, limits: QueueLimits, droppable: int | None) -> None:
        self._capacity = capacity
        self._limits = limits
        self.measures = capacity.sizes is not None
        """Whether the sizes of messages are to be known"""
        self.refused = self._taken = self._taken_bytes = 0
        messages, size, over, over_bytes = capacity.messages, capacity.bytes, 0, 0
        if not limits.drop_oldest:
            messages, size = messages + capacity.staged, size + capacity.staged_bytes
        elif droppable is not None:
            over = OVER_MESSAGES if messages - droppable < limits.max_depth else 0
            over_bytes = OVER_BYTES if droppable or size < limits.max_bytes else 0
        self._messages = limits.max_depth + over - messages if limits.max_depth else 1 << 62
        self._bytes = limits.max_bytes + over_bytes - size if limits.max_bytes else 1 << 62

    @property
    def messages(self) -> int:
        """How many more messages there may be room for, as far as their number is concerned."""
        return max(0, self._messages) if self._bytes > 0 else 0

    def take(self, size: int) -> QueueFull | None:
        """Set room aside for a message of so many bytes, or say why there is none."""
        limits = self._limits
        too_large = limits.max_bytes and size > limits.max_bytes
        if self._messages >= 1 and size <= self._bytes and not too_large:
            self._messages -= 1
            self._bytes -= size
            self._taken += 1
            self._taken_bytes += size
            return None
        self.refused += 1
        held = self._capacity
        if self._messages < 1:
            return held.full(limits, held.messages + held.staged + self._taken)
        return held.full(limits, held.bytes + held.staged_bytes + self._taken_bytes, size)
