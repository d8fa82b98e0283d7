"""Promotions: messages whose delay is over become ready.

Planning takes them out of the schedule; a rollback puts them back.
"""

from dataclasses import dataclass
from typing import ClassVar

from fila.broker.queue import QueueState
from fila.broker.tick import Effect, Order, Tick
from fila.core.schedule import Delayed
from fila.storage import keys
from fila.storage.base import Family


@dataclass(slots=True)
class Promotion(Effect):
    order: ClassVar[Order] = Order.PROMOTION

    queue: QueueState
    delayed: list[Delayed]

    def commit(self, tick: Tick) -> None:
        queue = self.queue
        for due, seq, lane, cost in self.delayed:
            lane.key.outside_lanes -= 1
            queue.come_back(lane, seq, cost)
            queue.ledger.was_delayed(seq, due)
        tick.state.wakeups.want(queue)
        tick.state.wakeups.note_overfull(queue)

    def roll_back(self, _: Tick) -> None:
        for delayed in self.delayed:
            self.queue.schedule.add(delayed)


def plan_promotion(tick: Tick, queue: QueueState, limit: int) -> int:
    """Make messages ready whose delay is over. Returns how many."""
    due = queue.schedule.take_due(tick.now, limit)
    if due:
        tick.add(Promotion(queue, due))
        for at, seq, _, _ in due:
            tick.batch.delete(Family.SCHEDULED, keys.scheduled(at, queue.name, seq))
    return len(due)
