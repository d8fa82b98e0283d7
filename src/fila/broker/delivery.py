"""Deliveries: the scheduler says which messages, the consumers' credit says how many and to whom.

Selecting takes messages out of their lanes and tokens out of their throttles while the tick is planned; a rollback puts
both back exactly.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar

from fila.broker.arrival import Arrival
from fila.broker.burial import Burials
from fila.broker.grants import put_grant
from fila.broker.promotion import Promotion
from fila.broker.queue import QueueState
from fila.broker.returns import Returns
from fila.broker.tick import Effect, Order, Tick
from fila.core.consumers import TRIALS, Consumer, TrialSnapshot
from fila.core.drr import Selection
from fila.core.lane import Taken
from fila.core.leases import Grant
from fila.core.suspects import at_home

FULL_GRANT = 100
"""So many messages make a grant whose own cost is little beside theirs."""


@dataclass(slots=True)
class Delivery(Effect):
    """Messages that were chosen for the consumers of one queue."""

    order: ClassVar[Order] = Order.DELIVERY

    queue: QueueState
    selection: Selection
    grants: list[tuple[Consumer, Grant]] = field(default_factory=list)
    last: Consumer | None = None
    """Who got the last message; the next delivery begins behind."""
    straight: bool = False
    """Whether the messages have just arrived, and were not taken out of their lanes"""
    trial: bool = False
    """Whether they are suspects, each of which is delivered alone"""
    asked: int = 0
    """How many messages the scheduler was asked for; 0 where it was not"""

    @property
    def in_vain(self) -> bool:
        """Whether keys were looked at and throttles held all of them up: then the scheduler is not as it was before."""
        chosen = self.selection
        return self.asked > 0 and not chosen.messages and bool(chosen.before or chosen.trace.due)

    def __post_init__(self) -> None:
        self._count(1)

    def _count(self, sign: int) -> None:
        """Count what is out with the selection itself, so that no key whose last message is acked in the same tick is
        forgotten. Suspects are out while they wait.
        """
        if self.trial:
            for lane, _, _ in at_home(self.selection.messages):
                lane.key.delivered += sign
            return
        for key, count in self.selection.served:
            key.outside_lanes += sign * count
            key.delivered += sign * count

    def commit(self, tick: Tick) -> None:
        queue, now = self.queue, tick.now
        count = len(self.selection.messages)
        if self.trial:
            queue.suspects.forget(self.selection)
        else:
            queue.ready -= count
        queue.counters.delivered += count
        queue.pace.add(count, now)
        cost = sum([cost for _, _, cost in self.selection.messages]) if queue.costly else count
        queue.cost_pace.add(cost, now)
        queue.ledger.deliver(self.selection.messages, queue.attempts, now)
        for key in self.selection.trace.standings:
            queue.ledger.note_throttles(key, now)
        for key, _, _ in () if self.trial else self.selection.before:
            if not key.outside_lanes:
                queue.forget_if_gone(key)
        for consumer, grant in self.grants:
            queue.leases.add(grant)
            tick.state.wakeups.ends(grant.expires_at)
            consumer.in_flight += len(grant.members)
            if not self.trial:
                consumer.trials_left = TRIALS
            consumer.deliver(grant)
        if self.last is not None:
            queue.consumers.serve_after(self.last)

    def roll_back(self, tick: Tick) -> None:
        self._count(-1)
        wakeups = tick.state.wakeups
        if self.trial:
            self.queue.suspects.drr.rollback(self.selection)
            wakeups.wanted[self.queue.name] = None
        elif not self.straight:
            self.queue.drr.rollback(self.selection)
            wakeups.wanted[self.queue.name] = None


@dataclass(slots=True)
class TrialPlan(Effect):
    """Who tries a suspect, and who is emptied for one, is decided while the tick is planned. This undoes it."""

    queue: QueueState
    saved: TrialSnapshot

    def commit(self, tick: Tick) -> None:
        """It is as planned."""

    def roll_back(self, tick: Tick) -> None:
        self.queue.consumers.restore(self.saved)
        tick.state.wakeups.wanted[self.queue.name] = None


def plan_deliveries(tick: Tick, budget: int) -> None:
    """For each queue that may have some, in turn, about `budget` messages in all."""
    state = tick.state
    wakeups = state.wakeups
    wakeups.want_throttled(state.queues, state.throttles, tick.now)
    for name in list(wakeups.wanted):
        if budget <= 0:
            break
        del wakeups.wanted[name]
        queue = state.queues.get(name)
        if queue is not None:
            count = plan_delivery(tick, queue, budget)
            budget -= count
            if 0 < count < queue.ready:
                wakeups.wanted[name] = None  # at the end: there is more, but the others come first
    wakeups.end_round()
    if not tick.has(Promotion, Returns, Burials):  # which may be older than what arrives
        for arrival in tick.all(Arrival):
            if arrival.awaited and len(arrival.seqs) <= budget:
                plan_straight(tick, arrival)


def plan_delivery(tick: Tick, queue: QueueState, budget: int) -> int:
    """Choose messages for the consumers that have credit, at most `budget`. Returns how many.

    A queue that has more keys to look at than one tick may, is looked at again in the next.
    """
    tried = 0 if queue.record.paused else plan_trials(tick, queue)
    consumers = [] if queue.record.paused else queue.consumers.with_credit()
    queue.ledger.idle.set(not (consumers or tried), tick.now)
    limit = min(budget, sum(credit for _, credit in consumers), queue.ready)
    if limit <= 0:
        return tried
    loading = tick.state.loading.get(queue.name)
    if loading is None:
        selection = queue.drr.select(limit, tick.now)
    else:
        selection = queue.drr.select(limit, tick.now, loading.known, park_newer=True)
        loading.put_off(selection.beyond)
    if selection.unfinished:
        tick.state.wakeups.look_again(queue)
    count = len(selection.messages)
    if not count:
        tick.add(Delivery(queue, selection, asked=limit))
        return tried
    if count == budget:
        consumers = next_in_turn(consumers, count, queue.ready)
    _grant(tick, Delivery(queue, selection, asked=limit), consumers)
    if len(queue.suspects) and not tried:
        tick.state.wakeups.look_again(queue)  # those that waited may have been all that kept a suspect waiting
    return tried + count


def plan_trials(tick: Tick, queue: QueueState) -> int:
    """Choose suspects for consumers that hold nothing, one for each. Returns how many.

    If there is no such consumer, one is emptied: it is given nothing until it holds nothing.
    """
    consumers = queue.consumers
    if len(queue.suspects) or consumers.emptied is not None:
        tick.add(TrialPlan(queue, consumers.snapshot()))
    if not len(queue.suspects):
        consumers.go_on()
        return 0
    able = consumers.able_to_try(others_wait=queue.ready > 0)
    selection = queue.suspects.select(max(1, len(able)), tick.now)
    if selection.unfinished:
        tick.state.wakeups.look_again(queue)
    if selection.messages and not able:
        queue.suspects.drr.rollback(selection)
        consumers.empty_one(tick.now)
        return 0
    delivery = Delivery(queue, selection, trial=True)
    tick.add(delivery)
    if not selection.messages:  # throttles hold them up
        consumers.go_on()
        return 0
    for consumer, message in zip(able, at_home(selection.messages), strict=False):
        number = tick.state.sequence.reserve(tick.now, 1)
        grant = Grant(number, number, consumer.number, tick.now + queue.visibility_ns, {message[1]: message})
        put_grant(tick.batch, queue, grant)
        delivery.grants.append((consumer, grant))
        if consumer is consumers.emptied:
            consumers.go_on()
        consumer.try_suspect()
    if len(selection.messages) == len(queue.suspects):
        consumers.go_on()
    return len(selection.messages)


def plan_straight(tick: Tick, arrival: Arrival) -> None:
    """Hand on what has just arrived, in the tick in which it arrives: one write less, and sooner.

    Only where the scheduler would have nothing to decide: nothing else waits in the queue, all that arrives enters one
    lane without throttles, and the consumers have room for all of it.
    """
    queue, seqs = arrival.queue, arrival.seqs
    if queue.ready or queue.record.paused or not seqs or arrival.costs or queue.name in tick.state.loading:
        return
    lane = arrival.lanes[0]
    if lane.throttles or arrival.lanes.count(lane) != len(seqs):
        return
    consumers = queue.consumers.with_credit()
    if sum([credit for _, credit in consumers]) < len(seqs):
        return
    arrival.handed_on = True
    queue.ledger.idle.set(False, tick.now)
    selection = Selection([(lane, seq, 1) for seq in seqs], [(lane.key, len(seqs))])
    _grant(tick, Delivery(queue, selection, straight=True), consumers)


def _grant(tick: Tick, delivery: Delivery, consumers: list[tuple[Consumer, int]]) -> None:
    """Give what was chosen to consumers that have room for it."""
    queue = delivery.queue
    shares, delivery.last = share_out(delivery.selection.messages, consumers)
    tick.add(delivery)
    expires_at = tick.now + queue.visibility_ns
    for consumer, messages in shares:
        number = tick.state.sequence.reserve(tick.now, 1)
        members = {message[1]: message for message in messages}
        grant = Grant(number, number, consumer.number, expires_at, members)
        put_grant(tick.batch, queue, grant)
        delivery.grants.append((consumer, grant))


def next_in_turn(consumers: list[tuple[Consumer, int]], count: int, waiting: int) -> list[tuple[Consumer, int]]:
    """Who shares what a tick delivers when it cannot deliver all: the next consumers, so few that each gets a full
    grant, or an equal part of what waits. The others come next: all get about as much, but not in crumbs.
    """
    share = (waiting + sum(consumer.in_flight for consumer, _ in consumers)) // len(consumers)
    sizes = (min(credit, FULL_GRANT, max(1, share - consumer.in_flight)) for consumer, credit in consumers)
    return consumers[: bisect_left(list(accumulate(sizes)), count) + 1]


def share_out(
    messages: list[Taken], consumers: list[tuple[Consumer, int]]
) -> tuple[list[tuple[Consumer, list[Taken]]], Consumer]:
    """Give messages out one by one, in turn, to consumers that still have credit; together they have enough.

    Returns what each got, and who got the last one.
    """
    if len(consumers) == 1:
        return [(consumers[0][0], messages)], consumers[0][0]
    shares: list[tuple[Consumer, list[Taken]]] = [(consumer, []) for consumer, _ in consumers]
    left = iter(messages)
    last = consumers[-1][0]
    turn = [(share, credit) for share, (_, credit) in zip(shares, consumers, strict=True)]
    while turn:
        for (consumer, got), _ in turn:
            message = next(left, None)
            if message is None:
                return [share for share in shares if share[1]], last
            got.append(message)
            last = consumer
        turn = [(share, credit) for share, credit in turn if len(share[1]) < credit]
    return [share for share in shares if share[1]], last
