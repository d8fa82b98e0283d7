"""Planning what comes in."""

from fila.broker.admission import check_batch, check_message
from fila.broker.commands import Enqueue, Incoming, Outcome
from fila.broker.queue import NS_PER_MS
from fila.broker.state import BrokerState
from fila.broker.tick import Tick
from fila.core import errors
from fila.core.dedup import SEQUENCES_KEPT
from fila.core.errors import BrokerError, StaleSequence
from fila.storage import codec, keys
from fila.storage.base import Family, Storage


def plan_enqueue(state: BrokerState, store: Storage, tick: Tick, command: Enqueue) -> list[Outcome]:
    """Take a batch in. Each message succeeds or fails by itself; a batch that was taken before is answered again."""
    producer, sequence = command.producer, command.sequence
    check_batch(len(command.messages), producer, sequence, state.limits)
    if not producer:
        return _plan_messages(state, tick, command.messages)
    last = tick.producers.get(producer) or state.producers.last(producer)
    if sequence <= last:
        return _answer_again(store, tick, producer, sequence)
    outcomes = _plan_messages(state, tick, command.messages)
    record = codec.produced(tick.now, map(_to_result, outcomes))
    tick.batch.put(Family.DEDUP, keys.producer_batch(producer, sequence), record)
    if sequence > SEQUENCES_KEPT:
        tick.batch.delete(Family.DEDUP, keys.producer_batch(producer, sequence - SEQUENCES_KEPT))
    tick.producers[producer] = sequence
    tick.fresh_answers[producer, sequence] = outcomes
    return outcomes


def _plan_messages(state: BrokerState, tick: Tick, messages: list[Incoming]) -> list[Outcome]:
    first = state.sequence.reserve(tick.now, len(messages))
    outcomes: list[Outcome] = []
    for seq, message in enumerate(messages, first):
        try:
            outcomes.append(_plan_message(state, tick, message, seq))
        except BrokerError as error:
            outcomes.append(error)
    return outcomes


def _plan_message(state: BrokerState, tick: Tick, message: Incoming, seq: int) -> int:
    queue = state.queue(message.queue)
    check_message(message, state.limits)
    key, weight = queue.classify(message.headers, state.limits.max_key_bytes)
    arrivals = tick.arrivals_of(queue)
    if message.dedup_key:
        known = arrivals.dedup.get(message.dedup_key)
        earlier = known[0] if known else queue.dedup.find(message.dedup_key, tick.now)
        if earlier is not None:
            return earlier
        ends = tick.now + queue.record.dedup_window_ms * NS_PER_MS
        arrivals.dedup[message.dedup_key] = (seq, ends)
        tick.batch.put(Family.DEDUP, keys.dedup(queue.name, message.dedup_key), codec.dedup(seq, ends))
    lane = arrivals.lane(key, message.priority)
    arrivals.weights[lane.key] = weight
    due = 0
    if message.delay_ms:
        due = tick.now + message.delay_ms * NS_PER_MS
        tick.batch.put(Family.SCHEDULED, keys.scheduled(due, queue.name, seq), codec.scheduled())
    tick.batch.put(Family.MESSAGES, lane.prefix + keys.u64(seq), codec.message_head(weight, 1) + message.body)
    arrivals.messages.append((lane, seq, 1, due))
    return seq


def _answer_again(store: Storage, tick: Tick, producer: str, sequence: int) -> list[Outcome]:
    fresh = tick.fresh_answers.get((producer, sequence))
    if fresh is not None:
        return fresh
    record = store.get(Family.DEDUP, keys.producer_batch(producer, sequence))
    if record is None:
        raise StaleSequence(f"batch {sequence} of this producer was answered too long ago to be answered again")
    return [_to_outcome(result) for result in codec.read_produced(record)[1]]


def _to_result(outcome: Outcome) -> codec.Result:
    return (outcome, "") if isinstance(outcome, int) else (0, f"{type(outcome).__name__}:{outcome}")


def _to_outcome(result: codec.Result) -> Outcome:
    seq, text = result
    if seq:
        return seq
    kind, _, words = text.partition(":")
    error: BrokerError = BrokerError.__new__(getattr(errors, kind, BrokerError))
    BrokerError.__init__(error, words)
    return error
