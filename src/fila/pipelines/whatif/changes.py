"""What is set differently: `throttle.tenant:a=50/s`, `weight.a=3`, `quantum=10`, `consumers=4`, `max_in_flight=20`,
`paused=false`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from fila.core.errors import BrokerError
from fila.core.policy import MAX_WEIGHT
from fila.core.throttle import Limit
from fila.pipelines.errors import BadInput
from fila.pipelines.whatif.entries import THROTTLE
from fila.storage.records import QueueRecord

WEIGHT = "weight."
_MOST = {"quantum": 1_000_000, "consumers": 100_000, "max_in_flight": 1_000_000}
_PER_SECOND = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)/s(?=,|$)")
_PAUSED = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Changes:
    """Settings that hold from the beginning of a replay, whatever the journal says of them."""

    throttles: dict[str, str | None] = field(default_factory=dict)
    """The limit of throttle keys; None for no limit"""
    weights: dict[str, int] = field(default_factory=dict)
    """Of fairness keys"""
    quantum: int | None = None
    consumers: int | None = None
    """How many a queue has while it has any"""
    max_in_flight: int | None = None
    """How many messages each of them may hold"""
    paused: bool | None = None
    queues: frozenset[str] = frozenset()
    """Whose weights, quantum, consumers and pause are changed; empty for all queues"""

    @property
    def none(self) -> bool:
        return self == Changes(queues=self.queues)

    def of(self, queue: str) -> bool:
        return not self.queues or queue in self.queues

    def record(self, record: QueueRecord) -> QueueRecord:
        """A queue's settings."""
        if not self.of(record.name):
            return record
        return replace(
            record,
            quantum=record.quantum if self.quantum is None else self.quantum,
            paused=record.paused if self.paused is None else self.paused,
        )

    def weight(self, queue: str, key: str, weight: int) -> int:
        return self.weights.get(key, weight) if self.of(queue) else weight

    def credit(self, queue: str, consumers: int, max_in_flight: int) -> list[int]:
        """How much each consumer may hold, where so many could hold so much together."""
        if not consumers:
            return []
        count = consumers
        each, rest = divmod(max_in_flight, consumers)
        if self.of(queue):
            if self.consumers is not None:
                count, rest = self.consumers, rest * self.consumers // consumers
            if self.max_in_flight is not None:
                each, rest = self.max_in_flight, 0
        return [each + (number < rest) for number in range(count)]

    def told(self) -> list[str]:
        """As it was given, for people."""
        told = [f"{THROTTLE}{key}={value or 'none'}" for key, value in self.throttles.items()]
        told += [f"{WEIGHT}{key}={value}" for key, value in self.weights.items()]
        told += [f"{name}={value}" for name in _MOST if (value := getattr(self, name)) is not None]
        return told + ([f"paused={str(self.paused).lower()}"] if self.paused is not None else [])


def parse(settings: Iterable[str], queues: Iterable[str] = ()) -> Changes:
    """Read `name=value` each. Raises BadInput."""
    throttles: dict[str, str | None] = {}
    weights: dict[str, int] = {}
    numbers: dict[str, int] = {}
    paused = None
    for text in settings:
        name, given, value = _split(text)
        if not given or not value:
            raise BadInput(f"{text!r} is no setting: write NAME=VALUE, such as throttle.provider:aws=50/s")
        if name.startswith(THROTTLE) and name != THROTTLE:
            throttles[name.removeprefix(THROTTLE)] = _limit(name, value)
        elif name.startswith(WEIGHT) and name != WEIGHT:
            weights[name.removeprefix(WEIGHT)] = _whole(name, value, MAX_WEIGHT)
        elif name in _MOST:
            numbers[name] = _whole(name, value, _MOST[name])
        elif name == "paused" and value in _PAUSED:
            paused = _PAUSED[value]
        else:
            raise BadInput(
                f"{text!r} cannot be set; what can is throttle.KEY=50/s (or =none), weight.KEY=3, quantum=10, "
                "consumers=4, max_in_flight=20 and paused=true or false"
            )
    return Changes(throttles, weights, paused=paused, queues=frozenset(queues), **numbers)


def _split(text: str) -> tuple[str, str, str]:
    """The name and the value. A key may contain a sign of equality, and so may a limit: `throttle.a=b=rate=5`."""
    name, given, value = text.partition("=")
    if name.startswith(THROTTLE):
        parts = re.fullmatch(r"(.+?)=((?:rate|burst|max_in_flight|none$|[0-9])[^=]*(?:=[^=]*)*)", text)
        if parts is not None:
            return parts[1].strip(), "=", parts[2].strip()
    elif name.startswith(WEIGHT):
        name, given, value = text.rpartition("=")
    return name.strip(), given, value.strip()


def _limit(name: str, value: str) -> str | None:
    if value == "none":
        return None
    try:
        return str(Limit.parse(_PER_SECOND.sub(r"rate=\1", value, count=1)))
    except BrokerError as error:
        raise BadInput(f"{name}: {error}") from error


def _whole(name: str, value: str, most: int) -> int:
    number = int(value) if value.isascii() and value.isdigit() and len(value) <= len(str(most)) else 0
    if not 1 <= number <= most:
        raise BadInput(f"{name} must be a whole number from 1 to {most:,}, not {value!r}")
    return number
