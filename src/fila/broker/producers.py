"""Batches of producers: one that is sent again, because its answer was lost, is answered again and not enqueued twice.

A producer numbers its batches from 1, in each incarnation (epoch) anew. The last `SEQUENCES_KEPT` answers of each
producer are kept, each with a digest of its messages, so that another batch under the same number is told from the same
one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fila.broker.admission import check_room
from fila.broker.commands import Earlier, EnqueueResult, Produced
from fila.broker.tick import Effect, Tick
from fila.core import errors
from fila.core.dedup import SEQUENCE_JUMP, SEQUENCES_KEPT, Place
from fila.core.errors import BrokerError, ProducerFenced, SequenceReused, StaleSequence, TooFarAhead, quoted
from fila.core.ids import NS_PER_MS
from fila.storage import codec, keys
from fila.storage.base import Family

SILENT_AFTER = 600_000 * NS_PER_MS
"""How long a producer's batches can be answered again after the last one."""
MAX_PRODUCERS = 100_000


@dataclass(slots=True)
class Batches(Effect):
    """What producers sent in one tick, and who is to be forgotten."""

    last: dict[str, Place] = field(default_factory=dict)
    """Producer -> its last batch in this tick"""
    answers: dict[tuple[str, Place], tuple[int, Sequence[EnqueueResult]]] = field(default_factory=dict)
    """What batches of this tick are answered, with their digests, in case one comes twice in it"""
    silent: list[str] = field(default_factory=list)
    """Producers to be forgotten"""

    def commit(self, tick: Tick) -> None:
        producers = tick.state.producers
        for producer in self.silent:
            producers.forget(producer)
        for producer, place in self.last.items():
            producers.advance(producer, place, tick.now)


def plan_batch(tick: Tick, produced: Produced, plan: Callable[[], Sequence[EnqueueResult]]) -> Sequence[EnqueueResult]:
    """Have a batch planned, unless it was taken before.

    Raises StaleSequence, TooFarAhead, SequenceReused or ProducerFenced.
    """
    producer, sequence, digest, epoch = produced
    batches = tick.one(Batches)
    known, last = batches.last.get(producer) or tick.state.producers.last(producer)
    if epoch < known:
        raise ProducerFenced(
            f"producer {quoted(producer)} was started again: epoch {known} was heard of, this batch is of epoch {epoch}"
        )
    replaces = epoch > known and last > 0
    if epoch > known:  # a new incarnation counts from the beginning, and nothing of the old ones is answered again
        last = 0
    elif sequence <= last:
        return _answer_again(tick, batches, produced)
    if last and sequence > last + SEQUENCE_JUMP:
        raise TooFarAhead(
            f"batch {sequence} of producer {quoted(producer)} is too far ahead: its last one is {last}, "
            f"so the next is at most {last + SEQUENCE_JUMP}"
        )
    check_room(tick.store)
    outcomes = plan()
    results = outcomes if isinstance(outcomes, range) else [_to_result(outcome) for outcome in outcomes]
    record = codec.produced(tick.now, digest, epoch, results)
    oldest = max(0, sequence - SEQUENCES_KEPT)
    if replaces:
        tick.batch.delete_range(Family.DEDUP, keys.producer(producer), keys.after(keys.producer(producer)))
    tick.batch.put(Family.DEDUP, keys.producer_batch(producer, sequence), record)
    if sequence == last + 1:
        tick.batch.delete(Family.DEDUP, keys.producer_batch(producer, oldest))
    else:  # numbers were left out, and with them their turn to go
        tick.batch.delete_range(Family.DEDUP, keys.producer(producer), keys.producer_batch(producer, oldest + 1))
    batches.last[producer] = produced.place
    batches.answers[producer, produced.place] = digest, outcomes
    return outcomes


def plan_producer_sweep(tick: Tick, most: int) -> None:
    """Forget producers that are silent or too many, so many at most."""
    for producer in tick.state.producers.idle(tick.now - SILENT_AFTER, MAX_PRODUCERS):
        prefix = keys.producer(producer)
        tick.batch.delete_range(Family.DEDUP, prefix, keys.after(prefix))
        silent = tick.one(Batches).silent
        silent.append(producer)
        if len(silent) >= most:
            break


def _answer_again(tick: Tick, batches: Batches, produced: Produced) -> Sequence[EnqueueResult]:
    producer, sequence, digest, _ = produced
    fresh = batches.answers.get((producer, produced.place))
    if fresh is not None:
        before, outcomes = fresh
    else:
        record = tick.store.get(Family.DEDUP, keys.producer_batch(producer, sequence))
        if record is None:
            raise StaleSequence(
                f"batch {sequence} of this producer is too old: the broker no longer remembers its answer"
            )
        remembered = codec.read_produced(record)
        before, outcomes = remembered.digest, [_to_outcome(result) for result in remembered.results]
    if before not in {digest, codec.NO_DIGEST}:
        raise SequenceReused(
            f"batch {sequence} of producer {quoted(producer)} had other messages, so nothing was enqueued: "
            "two producers share the producer_id, or one starts again at 1; give each run its own id or epoch"
        )
    return [Earlier(outcome) if isinstance(outcome, int) else outcome for outcome in outcomes]


def _to_result(outcome: EnqueueResult) -> codec.Result:
    return outcome if isinstance(outcome, int) else f"{type(outcome).__name__}:{outcome}"


def _to_outcome(result: codec.Result) -> EnqueueResult:
    if isinstance(result, int):
        return result
    kind, _, words = result.partition(":")
    error: BrokerError = BrokerError.__new__(getattr(errors, kind, BrokerError))
    BrokerError.__init__(error, words)
    return error
