"""All that the broker has in memory."""

from fila.broker.queue import QueueState, dead_letter_name
from fila.config import LimitsConfig
from fila.core.dedup import Producers
from fila.core.errors import QueueNotFound
from fila.core.ids import MessageIds, Sequence
from fila.core.throttle import ThrottleManager


class BrokerState:
    """The queues, and what belongs to no single one of them. Rebuilt from the store at every start."""

    __slots__ = ("clock_mark", "config", "ids", "limits", "producers", "queues", "sequence", "throttles")

    def __init__(self, node: int, limits: LimitsConfig) -> None:
        self.ids = MessageIds(node)
        self.limits = limits
        self.sequence = Sequence()
        self.clock_mark = 0
        """No sequence number above this was given out yet, as far as the store knows."""
        self.queues: dict[str, QueueState] = {}
        self.producers = Producers()
        self.config: dict[str, str] = {}
        """What operators set while the broker runs."""
        self.throttles = ThrottleManager()

    def queue(self, name: str) -> QueueState:
        """Raises QueueNotFound."""
        found = self.queues.get(name)
        if found is None:
            raise QueueNotFound(name)
        return found

    def dead_letters_of(self, queue: QueueState) -> QueueState | None:
        """Where the dead letters of a queue go; None for those of a dead-letter queue, which stay."""
        return None if queue.record.source else self.queues.get(dead_letter_name(queue.name))

    def check_setting(self, key: str, value: str) -> None:
        """Raises InvalidArgument for a value that its key cannot have."""

    def apply_setting(self, key: str, value: str) -> None:
        """Go by a value of the runtime configuration from now on."""
        self.config[key] = value

    def forget_setting(self, key: str) -> None:
        self.config.pop(key, None)
