"""One consumer's deliveries."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from fila.broker.queue import QueueState
from fila.core.consumers import Consumer
from fila.core.errors import BrokerError
from fila.core.hands import Hands
from fila.core.lane import Taken
from fila.core.leases import Grant


class Receiver(Protocol):
    """Who receives a consumer's deliveries. None of its methods raises."""

    def granted(self) -> None:
        """There is something to take, and it is durable."""

    def flush(self) -> None:
        """Let it go: all receivers have taken theirs, and those who share a connection can share a write."""

    def ended(self, reason: BrokerError) -> None:
        """There will be no more."""


class Subscription:
    """Holds no payloads: they are read when the consumer is ready for them."""

    def __init__(
        self,
        queue: QueueState,
        consumer: tuple[int, int, Hands | None],
        receiver: Receiver,
        on_granted: Callable[["Subscription"], None],
        on_freed: Callable[["Subscription"], None],
    ) -> None:
        """`consumer` is its number, its prefetch (max_in_flight) and what its application was handed."""
        number, max_in_flight, hands = consumer
        self.queue = queue
        self.receiver = receiver
        self.gone = False
        """Whether its receiver is told nothing more. A tick that is in flight may still deliver to it."""
        self.consumer = Consumer(number, max_in_flight, self._deliver, self._end, hands)
        self._on_granted = on_granted
        self._on_freed = on_freed
        self._grants: deque[Grant] = deque()

    def take(self) -> Grant | None:
        """What comes next. None when all is taken: then it may be granted more."""
        if self._grants:
            return self._grants.popleft()
        if self.consumer.busy:
            self.consumer.busy = False
            self._on_freed(self)
        return None

    def untaken(self) -> frozenset[int]:
        """The messages that it has not taken."""
        return frozenset([seq for grant in self._grants for seq in grant.members])

    def waiting(self) -> list[Taken]:
        """The messages that it has not taken, without the large ones."""
        large = self.queue.large
        return [taken for grant in self._grants for taken in grant.members.values() if taken[1] not in large]

    def _deliver(self, grant: Grant) -> None:
        self.consumer.busy = True
        self._grants.append(grant)
        if not self.gone:
            self._on_granted(self)

    def _end(self, reason: BrokerError) -> None:
        if not self.gone:
            self.receiver.ended(reason)
