"""Measuring: the bytes of a queue that holds messages when they begin to be limited are counted, some in each tick.

Until that is done, the limit applies to what was counted. After a restart, recovery has counted all of it.
"""

from dataclasses import dataclass, field
from itertools import islice

from fila.broker.queue import QueueState
from fila.broker.tick import Chore, Effect, Order, Tick
from fila.core.sizes import Sizes
from fila.core.transactions import Ranges
from fila.storage import codec, keys
from fila.storage.base import Family

MEASURED_AT_ONCE = 1_000
"""Messages that are counted in one tick: about 2 ms"""


@dataclass(slots=True)
class Measured(Effect):
    """Messages whose bytes are known from now on, before any of them leaves in the same tick."""

    order = Order.ARRIVAL

    measuring: "Measuring"
    sizes: dict[int, int]
    position: bytes

    def commit(self, _: Tick) -> None:
        self.measuring.position = self.position
        for seq, size in self.sizes.items():
            self.measuring.queue.capacity.measure(seq, size)


@dataclass(slots=True)
class Measuring(Chore):
    """Counts what a queue holds. Ends when the limit has gone meanwhile, or the queue."""

    queue: QueueState
    known: Sizes | None = field(init=False)
    position: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.known = self.queue.capacity.sizes
        self.position = self.queue.prefix

    def plan(self, tick: Tick) -> bool:
        queue = self.queue
        if tick.state.queues.get(queue.name) is not queue or queue.capacity.sizes is not self.known:
            return True
        hidden = Ranges(tick.state.transactions.hidden())
        sizes: dict[int, int] = {}
        found = list(
            islice(tick.store.scan(Family.MESSAGES, self.position, keys.after(queue.prefix)), MEASURED_AT_ONCE)
        )
        for key, value in found:
            _, seq = keys.read_message(key)
            if seq not in hidden:
                sizes[seq] = codec.body_bytes(value)
        tick.add(Measured(self, sizes, found[-1][0] + b"\0" if found else self.position))
        return len(found) < MEASURED_AT_ONCE
