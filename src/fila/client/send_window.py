"""The send window of a batch stream: which batch goes onto the wire next. Pure: no stream, no clock.

Rules:
- Batches leave in the order in which they were made and are answered in that order.
- At most `window` batches are in flight, and only two while the last one is small: requests that arrive meanwhile then
  travel as one batch. Otherwise a short stall fills the window with single messages, and each one waits for all before
  it from then on.
- When the connection is lost, the batches in flight go first onto the next stream, the same bytes in the same order, so
  their sequence numbers never go backwards.
- A batch that may have been carried out is resent alone. If the broker has no time for it, it comes once more under its
  number, before a higher number gets through.
- A batch that nobody waits for any more is not resent, and its sequence number is never reused.
- A batch that the broker refuses is answered with the reason. But a request that is too large to be read ends the
  stream with an error, as a refused key does (a refusal, not a lost connection). The batch to blame is known only if
  it was alone in flight. So after a refusal the batches are resent one at a time, until one is refused alone: that one
  fails, the others go through.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fila.client.errors import FilaError
from fila.client.waiter import Waiter

#: While the last batch in flight is smaller than SMALL_BYTES, at most SMALL_WINDOW are in flight.
SMALL_BYTES = 64 * 1024
SMALL_WINDOW = 2

W = TypeVar("W", bound=Waiter)


@dataclass(slots=True, eq=False)
class Batch(Generic[W]):
    """One request on a stream, for several callers."""

    data: bytes
    waiters: Sequence[W]
    #: The producer's sequence number of the batch, which the answer repeats.
    sequence: int = 0
    #: It was sent on a stream that broke, so the broker may have carried it out already.
    resent: bool = False
    #: When it was first sent, by a clock that goes on while the machine sleeps.
    sent_at: float = 0.0

    def check_answer(self, sequence: int) -> None:
        """Raises ValueError when an answer is not to this batch."""
        if sequence != self.sequence:
            raise ValueError(f"the answer to batch {self.sequence} names batch {sequence}")

    def refuse(self, error: FilaError) -> FilaError | None:
        """The broker refused it as a whole. Returns the refusal when the batch has to come again under its number.

        Nothing was done now. But what was sent before may have been carried out, and only its number tells.
        """
        if self.resent and error.retryable:
            return error
        self.fail(error)
        return None

    def fail(self, error: FilaError) -> None:
        for waiter in self.waiters:
            waiter.fail(error)

    def abandoned(self) -> bool:
        return not any(waiter.waits() for waiter in self.waiters)


class SendWindow(Generic[W]):
    """The batches that were made and not yet answered."""

    __slots__ = ("_in_flight", "_probing", "_resend", "_window")

    def __init__(self, window: int) -> None:
        self._window = window
        self._in_flight: deque[Batch[W]] = deque()
        self._resend: deque[Batch[W]] = deque()
        self._probing = False

    def __len__(self) -> int:
        return len(self._in_flight) + len(self._resend)

    @property
    def left_over(self) -> bool:
        """Whether a batch of an earlier stream is to be resent."""
        return bool(self._resend)

    def waiters(self) -> list[W]:
        return [waiter for batch in (*self._in_flight, *self._resend) for waiter in batch.waiters]

    def end_older(self, than: float, error: FilaError) -> None:
        """Fail the batches of earlier streams that were first sent before `than`: they are not resent."""
        for batch in self._resend:
            if batch.sent_at < than:
                batch.fail(error)

    def next(self, make: Callable[[], Batch[W] | None]) -> Batch[W] | None:
        """The batch to write now: one to resend, else a new one from `make`. None when there is none, or no room."""
        if not self:
            self._probing = False
        if len(self._in_flight) >= self._room():
            return None
        batch = self._left_over() or make()
        if batch is not None:
            self._in_flight.append(batch)
        return batch

    def _room(self) -> int:
        if self._probing or self._resend or (self._in_flight and self._in_flight[-1].resent):
            return 1
        small = self._in_flight and len(self._in_flight[-1].data) < SMALL_BYTES
        return min(self._window, SMALL_WINDOW) if small else self._window

    def answered(self) -> Batch[W] | None:
        """The batch that the next answer belongs to; None when no batch is in flight."""
        return self._in_flight.popleft() if self._in_flight else None

    def again(self, batch: Batch[W]) -> None:
        """Take an answered batch back: it is not done and has to be resent."""
        self._in_flight.appendleft(batch)

    def lost(self) -> None:
        """The connection was lost: resend what was in flight."""
        for batch in self._in_flight:
            batch.resent = True
        self._resend.extendleft(reversed(self._in_flight))
        self._in_flight.clear()

    def refused(self) -> Batch[W] | None:
        """The broker ended the stream with an error. Returns the batch to blame, if that is certain."""
        blamed = self._in_flight.popleft() if len(self._in_flight) == 1 else None
        self._probing = self._probing or bool(self._in_flight)
        self.lost()
        return blamed

    def clear(self) -> None:
        self._in_flight.clear()
        self._resend.clear()

    def _left_over(self) -> Batch[W] | None:
        while self._resend:
            batch = self._resend.popleft()
            if not batch.abandoned():
                return batch
        return None
