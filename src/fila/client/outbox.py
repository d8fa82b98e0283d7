"""Which batch goes onto the wire next. Pure: no stream, no clock.

Rules:
- Batches leave in the order in which they were made and are answered in that order.
- At most `window` batches are unanswered, and only two while the last one is small: what gathers meanwhile then travels
  as one batch. Otherwise a hiccup fills the window with single messages, and each waits for all before it from then on.
- When the connection is lost, the unanswered batches go first onto the next stream, the same bytes in the same order,
  so their sequence numbers never go backwards.
- A batch that nobody waits for any more is not sent again, and never under another number.
- When the broker ends the stream with an error (a refusal, not a loss), the batch to blame is only known when it was
  alone on the wire. So after a refusal the unanswered batches are sent again one at a time, until one is refused alone:
  that one fails, the others go through.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fila.client.waiter import Waiter

#: While the last batch under way is smaller than this, no more than so many are under way.
SMALL_BYTES = 64 * 1024
SMALL_WINDOW = 2

W = TypeVar("W", bound=Waiter)


@dataclass(slots=True, eq=False)
class Batch(Generic[W]):
    """One request on a stream, for several callers."""

    data: bytes
    waiters: Sequence[W]
    #: Its number, which the answer repeats.
    sequence: int = 0
    #: It was on a stream that broke, so the broker may have carried it out already.
    resent: bool = False

    def check_answer(self, sequence: int) -> None:
        """Raises ValueError when an answer is not to this batch."""
        if sequence != self.sequence:
            raise ValueError(f"batch {self.sequence} was answered with {sequence}")

    def abandoned(self) -> bool:
        return not any(waiter.waits() for waiter in self.waiters)


class Outbox(Generic[W]):
    """The batches that were made and not yet answered."""

    __slots__ = ("_again", "_probing", "_sent", "_window")

    def __init__(self, window: int) -> None:
        self._window = window
        self._sent: deque[Batch[W]] = deque()
        self._again: deque[Batch[W]] = deque()
        self._probing = False

    def __len__(self) -> int:
        return len(self._sent) + len(self._again)

    @property
    def left_over(self) -> bool:
        """Whether there is something to be sent again."""
        return bool(self._again)

    def waiters(self) -> list[W]:
        return [waiter for batch in (*self._sent, *self._again) for waiter in batch.waiters]

    def next(self, make: Callable[[], Batch[W] | None]) -> Batch[W] | None:
        """The batch to write now: left over from an earlier stream, else from `make`. None when it is time to wait."""
        if not self:
            self._probing = False
        if len(self._sent) >= self._room():
            return None
        batch = self._left_over() or make()
        if batch is not None:
            self._sent.append(batch)
        return batch

    def _room(self) -> int:
        if self._probing:
            return 1
        small = self._sent and len(self._sent[-1].data) < SMALL_BYTES
        return min(self._window, SMALL_WINDOW) if small else self._window

    def answered(self) -> Batch[W] | None:
        """The batch that the next answer belongs to; None when nothing was asked."""
        return self._sent.popleft() if self._sent else None

    def lost(self) -> None:
        """The stream is gone, and the answers with it."""
        for batch in self._sent:
            batch.resent = True
        self._again.extendleft(reversed(self._sent))
        self._sent.clear()

    def refused(self) -> Batch[W] | None:
        """The broker ended the stream with an error. Returns the batch to blame, if that is certain."""
        blamed = self._sent.popleft() if len(self._sent) == 1 else None
        self._probing = self._probing or bool(self._sent)
        self.lost()
        return blamed

    def clear(self) -> None:
        self._sent.clear()
        self._again.clear()

    def _left_over(self) -> Batch[W] | None:
        while self._again:
            batch = self._again.popleft()
            if not batch.abandoned():
                return batch
        return None
