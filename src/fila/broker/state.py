"""All that the broker has in memory."""

from fila.broker.queue import QueueState
from fila.config import LimitsConfig
from fila.core.dedup import Producers
from fila.core.errors import QueueNotFound
from fila.core.ids import MessageIds, Sequence


class BrokerState:
    """The queues, and what belongs to no single one of them. Rebuilt from the store at every start."""

    __slots__ = ("clock_mark", "ids", "limits", "producers", "queues", "sequence")

    def __init__(self, node: int, limits: LimitsConfig) -> None:
        self.ids = MessageIds(node)
        self.limits = limits
        self.sequence = Sequence()
        self.clock_mark = 0
        """No sequence number above this was given out yet, as far as the store knows."""
        self.queues: dict[str, QueueState] = {}
        self.producers = Producers()

    def queue(self, name: str) -> QueueState:
        """Raises QueueNotFound."""
        found = self.queues.get(name)
        if found is None:
            raise QueueNotFound(name)
        return found
