"""The failed attempts of a message: how a failure is described, and the records of the last `HISTORY` of them.

The records of a message go with it to the dead-letter queue. There, record number 0 says how it died.
"""

from dataclasses import dataclass

from fila.broker.queue import QueueState
from fila.broker.tick import Tick
from fila.core.leases import Grant
from fila.core.policy import Verdict
from fila.storage import codec, keys
from fila.storage.base import Family, Storage
from fila.storage.records import AttemptRecord, DeathRecord, LeaseEnd

HISTORY = 16
"""How many failed attempts of a message are remembered."""


@dataclass(slots=True)
class EndedLease:
    """A message that its consumer did not finish."""

    queue: QueueState
    grant: Grant
    seq: int
    kind: LeaseEnd
    error: str = ""
    delay_ms: int = 0
    """What the consumer asks for."""
    rejected: bool = False
    """Whether the consumer says that it is hopeless."""
    verdict: Verdict | None = None
    """What the queue's script says, if it was asked ahead."""
    spared: bool = False
    """Whether it does not die of this attempt, since others may be the cause."""
    suspect: bool = False
    """Whether it is to be delivered alone although no attempt is counted."""

    @property
    def attempts(self) -> int:
        """Attempts that failed before this one."""
        return self.queue.attempts.get(self.seq, 0)


@dataclass(frozen=True, slots=True)
class Death:
    """How a dead letter died, and the attempts that are remembered."""

    record: DeathRecord
    attempts: list[tuple[int, AttemptRecord]]


def put_attempt(tick: Tick, queue: str, failed: EndedLease, attempts: int) -> None:
    """Write down a failed attempt, under its number."""
    record = codec.attempt(AttemptRecord(tick.now, failed.kind, failed.error))
    tick.batch.put(Family.ATTEMPTS, keys.attempt(queue, failed.seq, attempts), record)


def drop_history(tick: Tick, queue: QueueState, seq: int) -> None:
    """Forget the attempts of a message that is no more."""
    numbers = _remembered(queue, seq)
    if queue.record.source:
        numbers.append(0)
    for number in numbers:
        tick.batch.delete(Family.ATTEMPTS, keys.attempt(queue.name, seq, number))


def history(store: Storage, queue: str, seq: int) -> list[tuple[int, bytes]]:
    """The records of a message's attempts, oldest first."""
    first, end = keys.attempt(queue, seq, 1), keys.attempt(queue, seq + 1, 0)
    return [(keys.read_attempt(key)[2], value) for key, value in store.scan(Family.ATTEMPTS, first, end)]


def failures_of(store: Storage, queue: QueueState, seq: int) -> list[tuple[int, AttemptRecord]]:
    """The failed attempts of a message that are remembered, each with its number, oldest first."""
    numbers = _remembered(queue, seq)
    values = store.get_many(Family.ATTEMPTS, [keys.attempt(queue.name, seq, number) for number in numbers])
    return [(number, codec.read_attempt(value)) for number, value in zip(numbers, values, strict=True) if value]


def death_of(store: Storage, queue: str, seq: int) -> Death | None:
    """None for a message that did not die: somebody enqueued it there."""
    record = store.get(Family.ATTEMPTS, keys.attempt(queue, seq, 0))
    if record is None:
        return None
    attempts = [(number, codec.read_attempt(value)) for number, value in history(store, queue, seq)]
    return Death(codec.read_death(record), attempts)


def _remembered(queue: QueueState, seq: int) -> list[int]:
    attempts = queue.attempts.get(seq, 0)
    return list(range(max(attempts - HISTORY, 0) + 1, attempts + 1))
