"""Arrivals: messages that enter a queue.

A message is judged (by the queue's headers or its hook), placed in a lane, written, and made ready or delayed. Each
message of a batch succeeds or fails by itself. Whether a batch was taken before is `producers.py`'s business.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, repeat
from typing import Any, ClassVar

from fila.broker.admission import check_batch, check_message, check_room
from fila.broker.commands import Earlier, Enqueue, EnqueueResult, Incoming, RefusedMessage, StageEnqueue
from fila.broker.lane_cache import USUAL, Terms, terms
from fila.broker.placement import read_placement
from fila.broker.producers import plan_batch
from fila.broker.queue import LARGE_BYTES, QueueState
from fila.broker.state import BrokerState
from fila.broker.tick import Effect, Order, Tick
from fila.config import LimitsConfig
from fila.core.capacity import Room
from fila.core.errors import BrokerError
from fila.core.fair_key import FairKey
from fila.core.ids import NS_PER_MS
from fila.core.lane import Lane
from fila.core.policy import Placement
from fila.core.schedule import Delayed
from fila.storage import codec, keys
from fila.storage.base import Family

Placed = tuple[Placement, int, int]
"""What becomes of a message that is taken: its placement, priority and delay."""
Answers = Mapping[Incoming, tuple[object, Any]]
"""What hooks have said about messages, a Placed or BrokerError, with the hooks that said it."""


@dataclass(slots=True)
class Arrival(Effect):
    """All messages that enter one queue in a tick."""

    order: ClassVar[Order] = Order.ARRIVAL

    queue: QueueState
    awaited: bool = field(init=False)
    """Whether there are consumers, so that the messages will be read soon"""
    room: Room | None = field(init=False)
    """What the queue takes in this tick, if it is limited"""
    bodies: dict[int, int] = field(default_factory=dict)
    """The bytes of each message, headers and payload, where they are limited"""
    seqs: list[int] = field(default_factory=list)
    """Messages that are ready"""
    lanes: list[Lane] = field(default_factory=list)
    """The lane that each of `seqs` enters"""
    sizes: list[int] = field(default_factory=list)
    """The payload bytes of each of `seqs`"""
    costs: dict[int, int] = field(default_factory=dict)
    """Of messages that are ready and whose cost is not 1"""
    weights: dict[FairKey, int] = field(default_factory=dict)
    """The weight that each key has from now on."""
    delayed: list[Delayed] = field(default_factory=list)
    delayed_sizes: list[int] = field(default_factory=list)
    large: list[int] = field(default_factory=list)
    """Messages whose records are large"""
    records: list[tuple[int, bytes]] = field(default_factory=list)
    """What was written of messages for which consumers are waiting"""
    staged: list[range] = field(default_factory=list)
    """Those that have their numbers from earlier, and wait from now on"""
    dedup: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Dedup key -> (sequence number, end of its window)"""
    handed_on: bool = False
    """Whether those that are ready are delivered in the same tick, and wait in no lane"""

    def __post_init__(self) -> None:
        self.awaited = len(self.queue.consumers) > 0
        self.room = self.queue.room()

    def lane(self, key: str, priority: int, throttle_keys: tuple[str, ...] = ()) -> Lane:
        """The lane of a key. The queue learns of a new one when the tick is durable."""
        return self.queue.lane_cache.lane(key, priority, throttle_keys)

    def commit(self, tick: Tick) -> None:
        queue, wakeups = self.queue, tick.state.wakeups
        for seqs in self.staged:
            queue.ledger.begin(seqs, tick.now)
        for key, weight in self.weights.items():
            key.weight = weight
            queue.lane_cache.weighted = queue.lane_cache.weighted or weight != 1
        for dedup_key, (seq, ends) in self.dedup.items():
            queue.dedup.add(dedup_key, seq, ends)
        if self.handed_on:
            queue.hand_on(self.lanes[0], len(self.seqs))
        elif self.seqs:
            queue.take_in(self.lanes, self.seqs, self.costs)
            wakeups.want(queue)
        for delayed in self.delayed:
            key = delayed[2].key
            key.outside_lanes += 1
            queue.know(key)
            wakeups.delay(queue, delayed)
        count = len(self.seqs) + len(self.delayed)
        queue.counters.enqueued += count
        if self.room is None:
            queue.capacity.messages += count
        else:
            self._fill(tick, self.room, count)
        queue.large.update(self.large)
        queue.costly = queue.costly or bool(self.costs)
        tick.state.recent.add(self.records)
        loading = tick.state.loading.get(queue.name)
        if loading is not None:
            loading.arrived([lane.key for lane in self.lanes], self.weights, [late[2].key for late in self.delayed])
        queue.lane_cache.end_tick()

    def _fill(self, tick: Tick, room: Room, count: int) -> None:
        queue = self.queue
        grown = {lane.key for lane in self.lanes}.union([lane.key for _, _, lane, _ in self.delayed])
        queue.capacity.enter(grown, count, self.bodies)
        queue.counters.refused += room.refused
        tick.state.wakeups.note_overfull(queue)

    def roll_back(self, _: Tick) -> None:
        self.queue.lane_cache.end_tick()


def plan_enqueue(tick: Tick, command: Enqueue) -> Sequence[EnqueueResult]:
    """Take a batch in. Each message succeeds or fails by itself; a batch that was taken before is answered again.

    Raises StaleSequence, TooFarAhead, ProducerFenced, or SequenceReused for another batch under the same number.
    """
    producer, sequence, *_ = command.produced
    check_batch(len(command.messages), producer, sequence, tick.state.limits)
    if producer:
        return plan_batch(tick, command.produced, lambda: _plan_messages(tick, command))
    check_room(tick.store)
    return _plan_messages(tick, command)


def _plan_messages(tick: Tick, command: Enqueue) -> Sequence[EnqueueResult]:
    """Sequence numbers that follow each other, but where a message was refused or was there before."""
    state, messages, traced = tick.state, command.messages, command.traced
    first = state.sequence.reserve(tick.now, len(messages))
    others: dict[int, EnqueueResult] = {}
    most_bytes = state.limits.max_payload_bytes
    put, put_u64 = tick.batch.put, keys.u64
    name, arrival, cache, special, room = None, None, None, None, None
    for seq, message, known in zip(count(first), messages, _recall(state, messages)):
        if message.queue != name:
            name, queue = message.queue, state.queues.get(message.queue)
            arrival = tick.of(Arrival, queue) if queue is not None else None
            cache = queue.lane_cache if queue is not None else None
            special = cache.special if cache is not None else None
            room = arrival.room if arrival is not None else None
        lane = cache.lanes.get(message.header_bytes) if known is None and cache is not None else known
        if (
            arrival is None
            or cache is None
            or lane is None
            or message.delay_ms
            or message.dedup_key
            or message.priority != lane.priority
            or message.payload_bytes > most_bytes
        ):
            try:
                arrival = arrival or tick.of(Arrival, queue_of(state, message))  # it raises that there is none
                found = _route(tick, arrival, message, seq, command.answers)
            except BrokerError as error:
                others[seq] = error
                continue
            if isinstance(found, int):
                others[seq] = found
                continue
            lane, on_terms = found
        else:
            if room is not None and (full := room.take(len(message.body))) is not None:
                others[seq] = full
                continue
            on_terms = special.get(message.header_bytes, USUAL) if special else USUAL
            if not (lane.fifo or lane.first):
                lane = cache.again(message.header_bytes, lane)
        weight, cost, head, delay_ms = on_terms
        if traced:
            message.lane = lane
        if arrival.weights or (arrival.queue.lane_cache.weighted and lane.key.weight != weight):
            arrival.weights[lane.key] = weight
        record = head + message.body
        if len(record) > LARGE_BYTES:
            arrival.large.append(seq)
        put(Family.MESSAGES, lane.before + put_u64(seq) + lane.behind, record)
        if room is not None and room.measures:
            arrival.bodies[seq] = len(message.body)
        if delay_ms:
            due = tick.now + delay_ms * NS_PER_MS
            put(Family.SCHEDULED, keys.scheduled(due, message.queue, seq), codec.scheduled())
            arrival.delayed.append((due, seq, lane, cost))
            arrival.delayed_sizes.append(message.payload_bytes)
            continue
        arrival.seqs.append(seq)
        arrival.lanes.append(lane)
        arrival.sizes.append(message.payload_bytes)
        if cost != 1:
            arrival.costs[seq] = cost
        if arrival.awaited:
            arrival.records.append((seq, record))
    numbers = range(first, first + len(messages))
    return [others.get(seq, seq) for seq in numbers] if others else numbers


def queue_of(state: BrokerState, message: Incoming) -> QueueState:
    """Raises QueueNotFound; or why a message was not decoded, since its queue is not known then either."""
    if isinstance(message, RefusedMessage):
        raise message.refusal
    return state.queue(message.queue)


def _recall(state: BrokerState, messages: list[Incoming]) -> Iterable[Lane | None]:
    """The remembered lane of each message, when they all go to one queue."""
    names = {message.queue for message in messages}
    queue = state.queues.get(names.pop()) if len(names) == 1 else None
    return repeat(None) if queue is None else queue.lane_cache.recall([message.header_bytes for message in messages])


def _route(tick: Tick, arrival: Arrival, message: Incoming, seq: int, answers: Answers) -> tuple[Lane, Terms] | int:
    """Where a message goes and on which terms, or the one that has its dedup key already. Raises BrokerError for one
    that is refused.
    """
    queue = arrival.queue
    placed = place(queue, message, tick.state.limits, tick.now, answers)
    dedup_key = message.dedup_key if queue.record.dedup_window_ms else ""
    earlier = find_dedup(tick, arrival, dedup_key) if dedup_key else None
    if earlier is not None:
        return earlier
    full = arrival.room.take(len(message.body)) if arrival.room is not None else None
    if full is not None:
        raise full
    if dedup_key:
        put_dedup(tick, arrival, dedup_key, seq)
    return find_lane(arrival, message, placed)


def find_lane(arrival: Arrival, message: Incoming, placed: Placed) -> tuple[Lane, Terms]:
    """The lane and terms of a message that was placed. What only its headers decide is remembered for others that have
    the same.
    """
    queue, (placement, priority, delay_ms) = arrival.queue, placed
    key, weight, throttle_keys, cost, _, _ = placement
    queue.lane_cache.weighted = queue.lane_cache.weighted or weight != 1
    lane, on_terms = arrival.lane(key, priority, throttle_keys), terms(weight, cost, throttle_keys, delay_ms)
    if queue.hooks is None and not delay_ms:
        queue.lane_cache.remember(message.header_bytes, lane, on_terms)
    return lane, on_terms


def place(queue: QueueState, message: Incoming, limits: LimitsConfig, now: int, answers: Answers) -> Placed:
    """By the queue's script, which may have answered already, or else by its headers. Raises BrokerError for a message
    that no queue or not this one takes.
    """
    headers = message.headers
    hooks = queue.hooks
    if hooks is None or not hooks.has_on_enqueue:
        check_message(message, headers, limits)
        return read_placement(queue.record, headers, limits), message.priority, message.delay_ms
    if message in answers and answers[message][0] is hooks:
        answer: Placed | BrokerError = answers[message][1]
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


def ask_on_enqueue_ahead(
    state: BrokerState, command: Enqueue | StageEnqueue, clock: Callable[[], int]
) -> Iterator[None]:
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
                answer: Placed | BrokerError = place(queue, message, state.limits, clock(), {})
            except BrokerError as error:
                answer = error
            answers[message] = (queue.hooks, answer)


def find_dedup(tick: Tick, arrival: Arrival, key: str) -> int | None:
    """The message that has this dedup key already, if there is one."""
    known = arrival.dedup.get(key)
    earlier = known[0] if known else arrival.queue.dedup.find(key, tick.now)
    return None if earlier is None else Earlier(earlier)


def put_dedup(tick: Tick, arrival: Arrival, key: str, seq: int) -> None:
    """A dedup key that no message has is this one's from now on."""
    queue = arrival.queue
    ends = tick.now + queue.record.dedup_window_ms * NS_PER_MS
    arrival.dedup[key] = (seq, ends)
    tick.batch.put(Family.DEDUP, keys.dedup(queue.name, key), codec.dedup(seq, ends))


@dataclass(slots=True)
class DedupExpiry(Effect):
    """Dedup keys of a queue whose window is over."""

    queue: QueueState
    keys: list[str]

    def commit(self, tick: Tick) -> None:
        self.queue.dedup.forget(self.keys, tick.now)


def plan_dedup_sweep(tick: Tick, most: int) -> None:
    """Forget dedup keys whose window is over, so many of each queue at most."""
    for queue in tick.state.queues.values():
        expired = queue.dedup.expired(tick.now, most)
        for key in expired:
            tick.batch.delete(Family.DEDUP, keys.dedup(queue.name, key))
        if expired:
            tick.add(DedupExpiry(queue, expired))
