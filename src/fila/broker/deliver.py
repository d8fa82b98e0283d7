"""Planning what goes out: the scheduler says which messages, the consumers' credit says how many and to whom."""

from bisect import bisect_left
from itertools import accumulate

from fila.broker.queue import QueueState
from fila.broker.settle import put_grant
from fila.broker.state import BrokerState
from fila.broker.tick import Arrivals, Delivery, Tick
from fila.core.consumers import Consumer
from fila.core.drr import Selection
from fila.core.leases import Grant
from fila.core.pending import Taken
from fila.core.suspects import at_home

FULL_HAND = 100
"""So many messages make a grant whose own cost is little beside theirs."""


def plan_delivery(state: BrokerState, tick: Tick, queue: QueueState, budget: int) -> int:
    """Choose messages for the consumers that have credit, at most `budget`. Returns how many.

    A queue that has more keys to look at than one tick may, is looked at again: it is then among `tick.unfinished`.
    """
    tried = 0 if queue.record.paused else plan_trials(state, tick, queue)
    consumers = [] if queue.record.paused else queue.consumers.with_credit()
    queue.ledger.idle.set(not (consumers or tried), tick.now)
    limit = min(budget, sum(credit for _, credit in consumers), queue.ready)
    if limit <= 0:
        return tried
    selection = queue.drr.select(limit, tick.now)
    if selection.unfinished:
        tick.unfinished.append(queue)
    count = len(selection.messages)
    if not count:
        tick.delivered.append(Delivery(queue, selection))
        return tried
    if count == budget:
        consumers = next_in_turn(consumers, count, queue.ready)
    _grant(state, tick, Delivery(queue, selection), consumers)
    return tried + count


def plan_trials(state: BrokerState, tick: Tick, queue: QueueState) -> int:
    """Choose suspects for consumers that hold nothing, one for each. Returns how many.

    If there is no such consumer, one is emptied: it is given nothing until it holds nothing.
    """
    consumers = queue.consumers
    if not len(queue.suspects):
        consumers.go_on()
        return 0
    able = consumers.able_to_try(others_wait=queue.ready > 0)
    selection = queue.suspects.select(max(1, len(able)), tick.now)
    if selection.unfinished:
        tick.unfinished.append(queue)
    delivery = Delivery(queue, selection, trial=True)
    if not selection.messages:  # throttles hold them up
        consumers.go_on()
        tick.delivered.append(delivery)
        return 0
    if not able:
        queue.suspects.drr.rollback(selection)
        consumers.empty_one(tick.now)
        return 0
    tick.delivered.append(delivery)
    for consumer, message in zip(able, at_home(selection.messages), strict=False):
        number = state.sequence.reserve(tick.now, 1)
        grant = Grant(number, number, consumer.number, tick.now + queue.visibility_ns, {message[1]: message})
        put_grant(tick, queue, grant)
        delivery.grants.append((consumer, grant))
        if consumer is consumers.emptied:
            consumers.go_on()
        consumer.try_suspect()
    if len(selection.messages) == len(queue.suspects):
        consumers.go_on()
    return len(selection.messages)


def plan_straight(state: BrokerState, tick: Tick, arrivals: Arrivals) -> None:
    """Hand on what has just arrived, in the tick in which it arrives: one write less, and sooner.

    Only where the scheduler would have nothing to decide: nothing else waits in the queue, all that arrives enters one
    lane without throttles, and the consumers have room for all of it.
    """
    queue, seqs = arrivals.queue, arrivals.seqs
    if queue.ready or queue.record.paused or not seqs or arrivals.costs:
        return
    lane = arrivals.lanes[0]
    if lane.throttles or arrivals.lanes.count(lane) != len(seqs):
        return
    consumers = queue.consumers.with_credit()
    if sum([credit for _, credit in consumers]) < len(seqs):
        return
    arrivals.handed_on = True
    queue.ledger.idle.set(False, tick.now)
    selection = Selection([(lane, seq, 1) for seq in seqs], [(lane.key, len(seqs))])
    _grant(state, tick, Delivery(queue, selection, straight=True), consumers)


def _grant(state: BrokerState, tick: Tick, delivery: Delivery, consumers: list[tuple[Consumer, int]]) -> None:
    """Deal what was chosen out to consumers that have room for it."""
    queue = delivery.queue
    hands, delivery.last = deal(delivery.selection.messages, consumers)
    tick.delivered.append(delivery)
    expires_at = tick.now + queue.visibility_ns
    for consumer, messages in hands:
        number = state.sequence.reserve(tick.now, 1)
        members = {message[1]: message for message in messages}
        grant = Grant(number, number, consumer.number, expires_at, members)
        put_grant(tick, queue, grant)
        delivery.grants.append((consumer, grant))


def next_in_turn(consumers: list[tuple[Consumer, int]], count: int, waiting: int) -> list[tuple[Consumer, int]]:
    """Who shares what a tick hands out when it cannot hand out all: the next consumers, so few that each gets a full
    hand, or an equal part of what waits. The others come next: all get about as much, but not in crumbs.
    """
    share = (waiting + sum(consumer.in_flight for consumer, _ in consumers)) // len(consumers)
    hands = (min(credit, FULL_HAND, max(1, share - consumer.in_flight)) for consumer, credit in consumers)
    return consumers[: bisect_left(list(accumulate(hands)), count) + 1]


def deal(
    messages: list[Taken], consumers: list[tuple[Consumer, int]]
) -> tuple[list[tuple[Consumer, list[Taken]]], Consumer]:
    """Hand out messages one by one, in turn, to consumers that still have credit; together they have enough.

    Returns what each was dealt, and who was dealt the last one.
    """
    if len(consumers) == 1:
        return [(consumers[0][0], messages)], consumers[0][0]
    hands: list[tuple[Consumer, list[Taken]]] = [(consumer, []) for consumer, _ in consumers]
    cards = iter(messages)
    last = consumers[-1][0]
    turn = [(dealt, credit) for dealt, (_, credit) in zip(hands, consumers, strict=True)]
    while turn:
        for (consumer, hand), _ in turn:
            card = next(cards, None)
            if card is None:
                return [dealt for dealt in hands if dealt[1]], last
            hand.append(card)
            last = consumer
        turn = [(dealt, credit) for dealt, credit in turn if len(dealt[1]) < credit]
    return [dealt for dealt in hands if dealt[1]], last
