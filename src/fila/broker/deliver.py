"""Planning what goes out: the scheduler says which messages, the consumers' credit says how many and to whom."""

from fila.broker.queue import QueueState
from fila.broker.settle import put_grant
from fila.broker.state import BrokerState
from fila.broker.tick import Delivery, Tick
from fila.core.consumers import Consumer
from fila.core.leases import Grant
from fila.core.pending import Taken


def plan_delivery(state: BrokerState, tick: Tick, queue: QueueState, limit: int) -> int:
    """Choose messages for the consumers that have credit, at most `limit`. Returns how many.

    A queue that has more keys to look at than one tick may, is looked at again: it is then among `tick.unfinished`.
    """
    consumers = [] if queue.record.paused else queue.consumers.with_credit()
    queue.ledger.idle.set(not consumers, tick.now)
    limit = min(limit, sum(credit for _, credit in consumers), queue.ready)
    if limit <= 0:
        return 0
    selection = queue.drr.select(limit, tick.now)
    if selection.unfinished:
        tick.unfinished.append(queue)
    if not selection.messages:
        tick.delivered.append(Delivery(queue, selection))
        return 0
    hands, last = deal(selection.messages, consumers)
    delivery = Delivery(queue, selection, last=last)
    tick.delivered.append(delivery)
    expires_at = tick.now + queue.visibility_ns
    for consumer, messages in hands:
        number = state.sequence.reserve(tick.now, 1)
        members = {message[1]: message for message in messages}
        grant = Grant(number, number, consumer.number, expires_at, members)
        put_grant(tick, queue, grant)
        delivery.grants.append((consumer, grant))
    return len(selection.messages)


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
