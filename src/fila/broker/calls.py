"""What the parts of the broker that are made of several commands, or of long reads, need of it."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

from fila.broker.commands import Command
from fila.broker.records import Records
from fila.broker.search import Steps
from fila.broker.state import BrokerState
from fila.storage.base import Storage

T = TypeVar("T")
LOOK_EVERY_S, LOOK_LEAST_S = 0.01, 0.16
"""How often it is looked whether messages are known, at first and later: many may wait, for a minute"""


class Calls(Protocol):
    """The broker, as these parts see it."""

    state: BrokerState
    store: Storage
    records: Records

    @property
    def ready(self) -> bool:
        """Whether it takes work."""

    def now(self) -> int: ...

    def submit(self, command: Command) -> None:
        """Have a command done in one of the next ticks. Raises Overloaded or ShuttingDown."""

    async def do(self, make: Callable[[Callable[[Any], None]], Command]) -> Any:
        """Have a command done and wait for its answer. Raises what it is answered with, Overloaded or ShuttingDown."""


async def all_known(broker: Calls, queues: Collection[str]) -> None:
    """Wait until all messages of these queues are known: after a start, large ones are read while the broker works."""
    rest = LOOK_EVERY_S
    while broker.ready and any(name in queues for name in broker.state.loading):  # each tick reads some
        await asyncio.sleep(rest)
        rest = min(2 * rest, LOOK_LEAST_S)


async def step_by_step(steps: Steps[T]) -> T:
    """Do what takes long a little at a time, so that nobody has to wait for it."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        await asyncio.sleep(0)
