"""Who wants messages, and how many more each may be handed."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from fila.core.errors import BrokerError
from fila.core.leases import Grant


@dataclass(slots=True, eq=False)
class Consumer:
    """One open stream of deliveries. Its credit is `max_in_flight` less what it holds."""

    number: int
    max_in_flight: int
    deliver: Callable[[Grant], None]
    """Called with each grant once it is durable."""
    end: Callable[[BrokerError], None]
    """Called when there will be no more, with the reason."""
    in_flight: int = 0
    busy: bool = False
    """Set while the stream still has deliveries to write, so that a slow reader is handed no more."""

    @property
    def credit(self) -> int:
        return 0 if self.busy else self.max_in_flight - self.in_flight


class Consumers:
    """The consumers of one queue, served in turn."""

    __slots__ = ("_by_number", "_ring")

    def __init__(self) -> None:
        self._by_number: dict[int, Consumer] = {}
        self._ring: deque[Consumer] = deque()

    def __len__(self) -> int:
        return len(self._by_number)

    def add(self, consumer: Consumer) -> None:
        self._by_number[consumer.number] = consumer
        self._ring.append(consumer)

    def find(self, number: int) -> Consumer | None:
        return self._by_number.get(number)

    def remove(self, number: int) -> Consumer | None:
        consumer = self._by_number.pop(number, None)
        if consumer is not None:
            self._ring.remove(consumer)
        return consumer

    def all(self) -> list[Consumer]:
        return list(self._ring)

    def with_credit(self) -> list[tuple[Consumer, int]]:
        """Those that may be handed messages now, in turn, each with its credit."""
        return [(consumer, credit) for consumer in self._ring if (credit := consumer.credit) > 0]

    def serve_after(self, consumer: Consumer) -> None:
        """Let the round begin behind `consumer` the next time."""
        self._ring.rotate(-(self._ring.index(consumer) + 1))
