"""Planning what goes out: the scheduler says which messages, the consumers' credit says how many and to whom."""

from fila.broker.queue import QueueState
from fila.broker.settle import put_grant
from fila.broker.state import BrokerState
from fila.broker.tick import Delivery, Tick
from fila.core.consumers import Consumer
from fila.core.leases import Grant
from fila.core.pending import Taken


def plan_delivery(state: BrokerState, tick: Tick, queue: QueueState, limit: int) -> int:
    """Choose messages for the consumers that have credit, at most `limit`. Returns how many."""
    consumers = queue.consumers.with_credit()
    limit = min(limit, sum(credit for _, credit in consumers), queue.ready)
    if limit <= 0:
        return 0
    selection = queue.drr.select(limit)
    delivery = Delivery(queue, selection, [])
    tick.delivered.append(delivery)
    expires_at = tick.now + queue.visibility_ns
    for consumer, messages in deal(selection.messages, consumers):
        number = state.sequence.reserve(tick.now, 1)
        members = {message[1]: message for message in messages}
        grant = Grant(number, number, consumer.number, expires_at, members)
        put_grant(tick, queue, grant)
        delivery.grants.append((consumer, grant))
    return len(selection.messages)


def deal(messages: list[Taken], consumers: list[tuple[Consumer, int]]) -> list[tuple[Consumer, list[Taken]]]:
    """Hand out messages one by one, in turn, to consumers that still have credit. Together they have enough."""
    if len(consumers) == 1:
        return [(consumers[0][0], messages)]
    hands: list[tuple[Consumer, list[Taken]]] = [(consumer, []) for consumer, _ in consumers]
    open_hands = [(hand, credit) for (_, hand), (_, credit) in zip(hands, consumers, strict=True)]
    dealt = 0
    while dealt < len(messages):
        for hand, _ in open_hands:
            if dealt == len(messages):
                break
            hand.append(messages[dealt])
            dealt += 1
        open_hands = [(hand, credit) for hand, credit in open_hands if len(hand) < credit]
    return [(consumer, hand) for consumer, hand in hands if hand]
