"""Planning what comes in."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, repeat
from typing import Any

from fila.broker.admission import check_batch, check_message, check_room
from fila.broker.commands import Enqueue, Excessive, Incoming, Outcome, Produced, StageEnqueue
from fila.broker.placement import place
from fila.broker.queue import LARGE_BYTES, USUAL, QueueState, Terms
from fila.broker.state import BrokerState
from fila.broker.tick import Arrivals, Tick
from fila.config import LimitsConfig
from fila.core import errors
from fila.core.dedup import SEQUENCE_JUMP, SEQUENCES_KEPT
from fila.core.errors import BrokerError, SequenceReused, StaleSequence, TooFarAhead, quoted
from fila.core.ids import NS_PER_MS
from fila.core.pending import Lane
from fila.core.policy import Placement
from fila.storage import codec, keys
from fila.storage.base import Family, Storage

Judged = tuple[Placement, int, int]
"""What becomes of a message that is taken: its placement, priority and delay."""
Answers = Mapping[Incoming, tuple[object, Any]]
"""What hooks have said about messages, a Judged or BrokerError, with the hooks that said it."""


def plan_enqueue(state: BrokerState, store: Storage, tick: Tick, command: Enqueue) -> Sequence[Outcome]:
    """Take a batch in. Each message succeeds or fails by itself; a batch that was taken before is answered again.

    Raises StaleSequence, TooFarAhead, or SequenceReused for another batch under the same number.
    """
    producer, sequence, digest = command.produced
    check_batch(len(command.messages), producer, sequence, state.limits)
    if not producer:
        check_room(store)
        return _plan_messages(state, tick, command)
    last = tick.producers.get(producer) or state.producers.last(producer)
    if sequence <= last:
        return _answer_again(store, tick, command.produced)
    if last and sequence > last + SEQUENCE_JUMP:
        raise TooFarAhead(
            f"batch {sequence} of producer {quoted(producer)} is too far ahead: its last one is {last}, "
            f"so the next is at most {last + SEQUENCE_JUMP}"
        )
    check_room(store)
    outcomes = _plan_messages(state, tick, command)
    results = outcomes if isinstance(outcomes, range) else [_to_result(outcome) for outcome in outcomes]
    record = codec.produced(tick.now, digest, results)
    tick.batch.put(Family.DEDUP, keys.producer_batch(producer, sequence), record)
    oldest = max(0, sequence - SEQUENCES_KEPT)
    if sequence == last + 1:
        tick.batch.delete(Family.DEDUP, keys.producer_batch(producer, oldest))
    else:  # numbers were left out, and with them their turn to go
        tick.batch.delete_range(Family.DEDUP, keys.producer(producer), keys.producer_batch(producer, oldest + 1))
    tick.producers[producer] = sequence
    tick.fresh_answers[producer, sequence] = digest, outcomes
    return outcomes


def _plan_messages(state: BrokerState, tick: Tick, command: Enqueue) -> Sequence[Outcome]:
    """Sequence numbers that follow each other, but where a message was refused or was there before."""
    messages, traced = command.messages, command.traced
    first = state.sequence.reserve(tick.now, len(messages))
    others: dict[int, Outcome] = {}
    limits = state.limits
    most_bytes = limits.max_payload_bytes
    put, put_u64 = tick.batch.put, keys.u64
    name, arrivals, special = None, None, None
    for seq, message, known in zip(count(first), messages, _remembered(state, messages)):
        if message.queue != name:
            name, queue = message.queue, state.queues.get(message.queue)
            arrivals = tick.arrivals_of(queue) if queue is not None else None
            special = queue.terms if queue is not None else None
        lane = arrivals.queue.spots.get(message.kind) if known is None and arrivals is not None else known
        if (
            arrivals is None
            or lane is None
            or message.delay_ms
            or message.dedup_key
            or message.priority != lane.priority
            or message.payload_bytes > most_bytes
        ):
            try:
                arrivals = arrivals or tick.arrivals_of(queue_of(state, message))  # it raises that there is none
                found = _find_spot(state.limits, tick, arrivals, message, seq, command.answers)
            except BrokerError as error:
                others[seq] = error
                continue
            if isinstance(found, int):
                others[seq] = found
                continue
            lane, terms = found
        else:
            terms = special.get(message.kind, USUAL) if special else USUAL
            if not lane.fifo:
                lane = _find_again(arrivals, message.kind, lane)
        weight, cost, head, delay_ms = terms
        if traced:
            message.lane = lane
        if arrivals.weights or (arrivals.queue.weighs and lane.key.weight != weight):
            arrivals.weights[lane.key] = weight
        record = head + message.body
        if len(record) > LARGE_BYTES:
            arrivals.large.append(seq)
        put(Family.MESSAGES, lane.before + put_u64(seq) + lane.behind, record)
        if delay_ms:
            due = tick.now + delay_ms * NS_PER_MS
            put(Family.SCHEDULED, keys.scheduled(due, message.queue, seq), codec.scheduled())
            arrivals.delayed.append((due, seq, lane, cost))
            arrivals.delayed_sizes.append(message.payload_bytes)
            continue
        arrivals.seqs.append(seq)
        arrivals.lanes.append(lane)
        arrivals.sizes.append(message.payload_bytes)
        if cost != 1:
            arrivals.costs[seq] = cost
        if arrivals.awaited:
            arrivals.records.append((seq, record))
    numbers = range(first, first + len(messages))
    return [others.get(seq, seq) for seq in numbers] if others else numbers


def queue_of(state: BrokerState, message: Incoming) -> QueueState:
    """Raises QueueNotFound; or why a message was not decoded, since its queue is not known then either."""
    if isinstance(message, Excessive):
        raise message.refusal
    return state.queue(message.queue)


def _remembered(state: BrokerState, messages: list[Incoming]) -> Iterable[Lane | None]:
    """Where each message goes, as far as that is remembered, when they all go to one queue. Looked up for all of them
    in one go: with many tenants each of them is far from the last in memory, and a processor fetches several at a time.
    """
    names = {message.queue for message in messages}
    queue = state.queues.get(names.pop()) if len(names) == 1 else None
    return repeat(None) if queue is None else list(map(queue.spots.get, [message.kind for message in messages]))


def _find_spot(
    limits: LimitsConfig, tick: Tick, arrivals: Arrivals, message: Incoming, seq: int, answers: Answers
) -> tuple[Lane, Terms] | int:
    """Where a message goes and on which terms, or the one that has its dedup key already. Raises BrokerError for one
    that is refused.

    What only its headers decide is remembered for others that have the same.
    """
    queue = arrivals.queue
    placed, priority, delay_ms = judge(queue, message, limits, tick.now, answers)
    if message.dedup_key and queue.record.dedup_window_ms:
        earlier = plan_dedup(tick, arrivals, message.dedup_key, seq)
        if earlier is not None:
            return earlier
    key, weight, throttle_keys, cost, _, _ = placed
    queue.weighs = queue.weighs or weight != 1
    lane, terms = arrivals.lane(key, priority, throttle_keys), _terms(weight, cost, throttle_keys, delay_ms)
    if message.kind is not None and queue.hooks is None and not delay_ms:
        queue.spots[message.kind] = lane
        if terms is not USUAL:
            queue.terms[message.kind] = terms
    return lane, terms


@lru_cache(maxsize=4096)
def _terms(weight: int, cost: int, throttle_keys: tuple[str, ...], delay_ms: int) -> Terms:
    terms = Terms(weight, cost, codec.message_head(weight, cost, throttle_keys), delay_ms)
    return USUAL if terms == USUAL else terms


def _find_again(arrivals: Arrivals, kind: bytes | None, last: Lane) -> Lane:
    """The lane of messages whose last one was empty when it was looked at."""
    lane = arrivals.lane_again(last)
    if lane is not last and kind in arrivals.queue.spots:
        arrivals.queue.spots[kind] = lane
    return lane


def judge(queue: QueueState, message: Incoming, limits: LimitsConfig, now: int, answers: Answers) -> Judged:
    """By the queue's script, which may have answered already, or else by its headers. Raises BrokerError for a message
    that no queue or not this one takes.
    """
    headers = message.headers
    hooks = queue.hooks
    if hooks is None or not hooks.has_on_enqueue:
        check_message(message, headers, limits)
        return place(queue.record, headers, limits), message.priority, message.delay_ms
    if message in answers and answers[message][0] is hooks:
        answer: Judged | BrokerError = answers[message][1]
        if isinstance(answer, BrokerError):
            raise answer
        return answer
    check_message(message, headers, limits)
    placed = hooks.on_enqueue(headers, message.payload_bytes, now)
    return (
        placed,
        message.priority if placed.priority is None else placed.priority,
        message.delay_ms if placed.delay_ms is None else placed.delay_ms,
    )


def judge_ahead(state: BrokerState, command: Enqueue | StageEnqueue, clock: Callable[[], int]) -> Iterator[None]:
    """Have hooks judge the messages of a batch before it is planned. Yields before each call of a hook."""
    answers, queues, changed = command.answers, state.queues, -1
    while changed != state.hooks_changed:  # else all were asked that decide when it is planned
        changed = state.hooks_changed
        for message in command.messages:
            queue = queues.get(message.queue)
            hooks = queue.hooks if queue is not None else None
            if queue is None or hooks is None or not hooks.has_on_enqueue:
                continue
            if message in answers and answers[message][0] is hooks:
                continue
            yield
            try:
                answer: Judged | BrokerError = judge(queue, message, state.limits, clock(), {})
            except BrokerError as error:
                answer = error
            answers[message] = (queue.hooks, answer)


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


def _answer_again(store: Storage, tick: Tick, produced: Produced) -> Sequence[Outcome]:
    producer, sequence, digest = produced
    fresh = tick.fresh_answers.get((producer, sequence))
    if fresh is not None:
        before, outcomes = fresh
    else:
        record = store.get(Family.DEDUP, keys.producer_batch(producer, sequence))
        if record is None:
            raise StaleSequence(f"batch {sequence} of this producer was answered too long ago to be answered again")
        _, before, results = codec.read_produced(record)
        outcomes = [_to_outcome(result) for result in results]
    if digest != before:
        raise SequenceReused(
            f"batch {sequence} of producer {quoted(producer)} had other messages: nothing was enqueued. "
            "Two producers have the same producer_id, or one counts from 1 again: give each run an id of its own"
        )
    return outcomes


def _to_result(outcome: Outcome) -> codec.Result:
    return outcome if isinstance(outcome, int) else f"{type(outcome).__name__}:{outcome}"


def _to_outcome(result: codec.Result) -> Outcome:
    if isinstance(result, int):
        return result
    kind, _, words = result.partition(":")
    error: BrokerError = BrokerError.__new__(getattr(errors, kind, BrokerError))
    BrokerError.__init__(error, words)
    return error
