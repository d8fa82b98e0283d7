"""Chores: what was decided and is still to be carried out, a bit in each tick. They go on after a restart.

A chore that cannot read the store is tried again later. One that is not done goes behind the others.
"""

from collections import deque
from dataclasses import dataclass

from fila.broker.tick import Chore, Effect, Tick
from fila.core.errors import StoreFailed, StoreUnusable


@dataclass(slots=True)
class ChoreStep(Effect):
    """A bit of the first chore is done."""

    chores: deque[Chore]
    done: bool

    def commit(self, _: Tick) -> None:
        if self.done:
            self.chores.popleft()
        else:
            self.chores.rotate(-1)


def plan_chore(tick: Tick) -> bool:
    """Plan a bit of the first chore. Returns whether the store could be read."""
    chores = tick.chores
    try:
        done = chores[0].plan(tick)
    except (StoreFailed, StoreUnusable):
        return False
    tick.add(ChoreStep(chores, done))
    return True
