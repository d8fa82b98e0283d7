"""Planning what comes in."""

from fila.broker.admission import check_batch, check_message
from fila.broker.commands import Enqueue, Incoming, Outcome
from fila.broker.placement import place
from fila.broker.queue import LARGE_BYTES, QueueState
from fila.broker.state import BrokerState
from fila.broker.tick import Arrivals, Tick
from fila.config import LimitsConfig
from fila.core import errors
from fila.core.dedup import SEQUENCES_KEPT
from fila.core.errors import BrokerError, StaleSequence
from fila.core.ids import NS_PER_MS
from fila.core.policy import Placement
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
    record = codec.produced(tick.now, [_to_result(outcome) for outcome in outcomes])
    tick.batch.put(Family.DEDUP, keys.producer_batch(producer, sequence), record)
    oldest = max(0, sequence - SEQUENCES_KEPT)
    if sequence == last + 1:
        tick.batch.delete(Family.DEDUP, keys.producer_batch(producer, oldest))
    else:  # numbers were left out, and with them their turn to go
        tick.batch.delete_range(Family.DEDUP, keys.producer(producer), keys.producer_batch(producer, oldest + 1))
    tick.producers[producer] = sequence
    tick.fresh_answers[producer, sequence] = outcomes
    return outcomes


def _plan_messages(state: BrokerState, tick: Tick, messages: list[Incoming]) -> list[Outcome]:
    first = state.sequence.reserve(tick.now, len(messages))
    outcomes: list[Outcome] = []
    limits = state.limits
    put, put_u64, head = tick.batch.put, keys.u64, codec.message_head
    for seq, message in enumerate(messages, first):
        try:
            arrivals = tick.arrivals.get(message.queue) or tick.arrivals_of(state.queue(message.queue))
            check_message(message, limits)
            placed = place_message(arrivals.queue, message, limits, tick.now)
        except BrokerError as error:
            outcomes.append(error)
            continue
        if message.dedup_key and arrivals.queue.record.dedup_window_ms:
            earlier = plan_dedup(tick, arrivals, message.dedup_key, seq)
            if earlier is not None:
                outcomes.append(earlier)
                continue
        priority = message.priority if placed.priority is None else placed.priority
        delay_ms = message.delay_ms if placed.delay_ms is None else placed.delay_ms
        lane, ready = arrivals.lane(placed.fairness_key, priority, placed.throttle_keys)
        message.lane = lane
        arrivals.weights[lane.key] = placed.weight
        record = head(placed.weight, placed.cost, placed.throttle_keys) + message.body
        if len(record) > LARGE_BYTES:
            arrivals.large.append(seq)
        arrivals.sizes[seq] = message.payload_bytes
        put(Family.MESSAGES, lane.prefix + put_u64(seq), record)
        if delay_ms:
            due = tick.now + delay_ms * NS_PER_MS
            put(Family.SCHEDULED, keys.scheduled(due, message.queue, seq), codec.scheduled())
            arrivals.delayed.append((due, seq, lane, placed.cost))
        else:
            ready.append(seq)
            if placed.cost != 1:
                arrivals.costs[seq] = placed.cost
            if arrivals.awaited:
                arrivals.records.append((seq, record))
        outcomes.append(seq)
    return outcomes


def place_message(queue: QueueState, message: Incoming, limits: LimitsConfig, now: int) -> Placement:
    """By the queue's script, or else by its headers. Raises InvalidArgument for headers that say nothing valid."""
    hooks = queue.hooks
    if hooks is not None and hooks.has_on_enqueue:
        return hooks.on_enqueue(message.headers, message.payload_bytes, now)
    return place(queue.record, message.headers, limits)


def plan_dedup(tick: Tick, arrivals: Arrivals, key: str, seq: int) -> int | None:
    """The message that has this dedup key already, if there is one; else the key is the new message's."""
    queue = arrivals.queue
    known = arrivals.dedup.get(key)
    earlier = known[0] if known else queue.dedup.find(key, tick.now)
    if earlier is None:
        ends = tick.now + queue.record.dedup_window_ms * NS_PER_MS
        arrivals.dedup[key] = (seq, ends)
        tick.batch.put(Family.DEDUP, keys.dedup(queue.name, key), codec.dedup(seq, ends))
    return earlier


def _answer_again(store: Storage, tick: Tick, producer: str, sequence: int) -> list[Outcome]:
    fresh = tick.fresh_answers.get((producer, sequence))
    if fresh is not None:
        return fresh
    record = store.get(Family.DEDUP, keys.producer_batch(producer, sequence))
    if record is None:
        raise StaleSequence(f"batch {sequence} of this producer was answered too long ago to be answered again")
    return [_to_outcome(result) for result in codec.read_produced(record)[1]]


def _to_result(outcome: Outcome) -> codec.Result:
    return outcome if isinstance(outcome, int) else f"{type(outcome).__name__}:{outcome}"


def _to_outcome(result: codec.Result) -> Outcome:
    if isinstance(result, int):
        return result
    kind, _, words = result.partition(":")
    error: BrokerError = BrokerError.__new__(getattr(errors, kind, BrokerError))
    BrokerError.__init__(error, words)
    return error
