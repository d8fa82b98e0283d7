"""One tick: what it reads, what it will write, and what will change in memory once that is durable.

Planning reads the state and fills a tick. Everything that is to change is an `Effect`. An effect belongs to one module,
which has its plan, its commit and its rollback side by side. The engine calls `commit` when the write is durable, and
`roll_back` when it failed.

Planning changes nothing else, but for what follows. This is undone when the write failed:
- what the scheduler and the schedules hand out is taken from them: `Delivery` and `Promotion` put it back;
- a key counts what was chosen as outside of its lanes: `Delivery` counts it back;
- who tries a suspect, and who is emptied for one, is decided: `TrialPlan` takes it back.
This stays as it is, and does no harm:
- sequence numbers are used up, and so is the time of hooks; what a script keeps in its globals it keeps;
- the lane cache and the wakeups may know too much, but never too little;
- the wait ledger has seen whether a queue had a consumer: statistics only;
- the next sweep is due a second later.

To add an operation: a command in `commands.py`, a module with its plan and its effect, and a row in `operations.py`.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

from fila.broker.commands import Command
from fila.broker.grants import EndingLeases
from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.storage.base import Batch, Storage


class Order(IntEnum):
    """In which order the effects of a tick are committed; those of the same kind in the order of their planning."""

    ARRIVAL = 1
    """What arrives, is due or comes back goes before what leaves: a fairness key that gains a message while its last
    one is acked is not forgotten in between."""
    PROMOTION = 2
    RETURN = 3
    BURIAL = 4
    """After arrivals, which know the weights of dead letters"""
    EXTENSION = 5
    ACK = 6
    DELIVERY = 7
    """After acks: what they freed is taken"""
    OTHER = 8
    """What touches no message of another effect"""


class Effect:
    """A change of memory, made when the tick is durable."""

    __slots__ = ()
    order: ClassVar[Order] = Order.OTHER

    def commit(self, tick: "Tick") -> None:
        """The write is durable."""
        raise NotImplementedError  # abstract, but no ABC: ticks ask for isinstance, which takes twice as long then

    def roll_back(self, tick: "Tick") -> None:
        """The write failed: undo what planning has taken, if it has taken anything."""


class Chore(ABC):
    """Something that was decided and takes many ticks to carry out (`chores.py`)."""

    __slots__ = ()

    @abstractmethod
    def plan(self, tick: "Tick") -> bool:
        """Plan a bit of it. Returns whether that was the last. Reads before it plans anything."""


E = TypeVar("E", bound=Effect)


class Tick:
    """The plan of one tick."""

    __slots__ = (
        "_effects",
        "_of",
        "_one",
        "batch",
        "chores",
        "due_by",
        "leases",
        "now",
        "replies",
        "state",
        "store",
        "to_go_on",
    )

    def __init__(
        self, state: BrokerState, store: Storage, chores: deque[Chore], now: int, due_by: int | None = None
    ) -> None:
        self.state = state
        self.store = store
        self.chores = chores
        self.now = now
        self.due_by = now if due_by is None else due_by
        """What has ended by then has ended. Earlier than `now` while commands wait that may have come before that, as
        after a tick that was in flight or put off for long: a lease lasts if its extension came in time."""
        self.batch = Batch()
        """The write"""
        self.leases = EndingLeases(self.batch)
        """Whose end is planned"""
        self.replies: list[tuple[Callable[[Any], None], Any]] = []
        self.to_go_on: list[Command] = []
        """Commands that had too much to do for one tick"""
        self._effects: list[Effect] = []
        self._one: dict[type[Effect], Effect] = {}
        self._of: dict[tuple[type[Effect], QueueState], Effect] = {}

    def add(self, effect: Effect) -> None:
        self._effects.append(effect)

    def one(self, kind: type[E]) -> E:
        """The effect of a kind of which a tick has one."""
        found: Any = self._one.get(kind)
        if found is None:
            found = self._one[kind] = kind()
            self._effects.append(found)
        return found  # type: ignore[no-any-return]

    def of(self, kind: Callable[[QueueState], E], queue: QueueState) -> E:
        """The effect of a kind of which a tick has one for each queue."""
        found: Any = self._of.get((kind, queue))  # type: ignore[arg-type]  # kinds are types
        if found is None:
            found = self._of[kind, queue] = kind(queue)  # type: ignore[index]
            self._effects.append(found)
        return found  # type: ignore[no-any-return]

    def all(self, kind: type[E]) -> list[E]:
        """The effects of a kind."""
        return [effect for effect in self._effects if isinstance(effect, kind)]

    def has(self, *kinds: type[Effect]) -> bool:
        return any(isinstance(effect, kinds) for effect in self._effects)

    def commit(self) -> None:
        """Change memory as planned. The write is durable."""
        for effect in sorted(self._effects, key=_order):
            effect.commit(self)

    def roll_back(self) -> None:
        """Leave memory as it was. The write failed."""
        for effect in reversed(self._effects):
            effect.roll_back(self)


def _order(effect: Effect) -> int:
    return effect.order
