"""Who wants messages, and how many more each may be handed.

A consumer that is set aside for a suspect (`suspects.py`) is given nothing else: first until it holds nothing, then
until the suspect is settled. Others go on meanwhile:
- of several consumers at most half try suspects at a time, and one is emptied for that if none is empty;
- a consumer tries at most `TRIALS` suspects in a row before it is given others, if others wait; and one that has just
  come is given others first. So a message that kills every consumer does not keep the rest from being delivered.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from fila.core.errors import BrokerError
from fila.core.hands import Hands
from fila.core.ids import NS_PER_MS
from fila.core.leases import Grant

TRIALS = 16
"""Suspects that a consumer tries in a row while others wait."""

EMPTIED_WITHIN = 10_000 * NS_PER_MS
"""A consumer that is not empty by then goes on, and another one is emptied for the next suspect."""


@dataclass(slots=True, eq=False)
class Consumer:
    """One open stream of deliveries. Its credit is `max_in_flight` less what it holds."""

    number: int
    max_in_flight: int
    deliver: Callable[[Grant], None]
    """Called with each grant once it is durable."""
    end: Callable[[BrokerError], None]
    """Called when there will be no more, with the reason."""
    hands: Hands | None = None
    """What its application was handed, if it says so; else all that it holds."""
    in_flight: int = 0
    busy: bool = False
    """Set while the stream still has deliveries to write, so that a slow reader is handed no more."""
    aside: bool = False
    """Set while it is emptied for a suspect, or tries one."""
    trying: bool = False
    trials_left: int = 0

    @property
    def credit(self) -> int:
        return 0 if self.busy or self.aside else self.max_in_flight - self.in_flight

    def try_suspect(self) -> None:
        self.trying = self.aside = True
        self.trials_left -= 1

    def stop_trying(self) -> None:
        self.trying = self.aside = False


@dataclass(frozen=True, slots=True)
class TrialSnapshot:
    """Who tries suspects and who is emptied for one, kept to undo a plan."""

    emptied: Consumer | None
    emptied_until: int
    consumers: list[tuple[Consumer, bool, bool, int]]
    """Each with `aside`, `trying` and `trials_left`"""


class Consumers:
    """The consumers of one queue, served in turn."""

    __slots__ = ("_by_number", "_emptied_until", "_leaving", "_ring", "emptied")

    def __init__(self) -> None:
        self._by_number: dict[int, Consumer] = {}
        self._ring: deque[Consumer] = deque()
        self._leaving: dict[int, Hands] = {}
        """Of consumers that have gone and whose messages have not all come back"""
        self.emptied: Consumer | None = None
        """Who is given nothing until it holds nothing, so that it can try a suspect."""
        self._emptied_until = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def add(self, consumer: Consumer) -> None:
        self._by_number[consumer.number] = consumer
        self._ring.append(consumer)

    def find(self, number: int) -> Consumer | None:
        return self._by_number.get(number)

    def remove(self, number: int) -> Consumer | None:
        """A consumer has gone. What its application was handed is known until `forget`."""
        consumer = self._by_number.pop(number, None)
        if consumer is not None:
            self._ring.remove(consumer)
            if consumer.hands is not None:
                self._leaving[number] = consumer.hands
            if consumer is self.emptied:
                self.emptied = None
        return consumer

    def forget(self, number: int) -> None:
        """All that is to come back from a consumer that has gone is back."""
        self._leaving.pop(number, None)

    def hands_of(self, number: int) -> Hands | None:
        """What the application of a consumer was handed, if it says so."""
        consumer = self._by_number.get(number)
        return consumer.hands if consumer is not None else self._leaving.get(number)

    def all(self) -> list[Consumer]:
        return list(self._ring)

    def with_credit(self) -> list[tuple[Consumer, int]]:
        """Those that may be handed messages now, in turn, each with its credit."""
        return [(consumer, credit) for consumer in self._ring if (credit := consumer.credit) > 0]

    @property
    def has_credit(self) -> bool:
        """Whether any may be handed messages now: the first that may is enough, however many there are."""
        return any(consumer.credit > 0 for consumer in self._ring)

    def serve_after(self, consumer: Consumer) -> None:
        """Let the round begin behind `consumer` the next time."""
        self._ring.rotate(-(self._ring.index(consumer) + 1))

    def able_to_try(self, others_wait: bool) -> list[Consumer]:
        """Those that may be given a suspect each."""
        room = max(1, len(self._ring) // 2) - sum(consumer.trying for consumer in self._ring)
        able = [
            consumer
            for consumer in self._ring
            if not (consumer.in_flight or consumer.busy or consumer.trying)
            and (consumer.trials_left > 0 or not others_wait)
        ]
        return able[: max(0, room)]

    def empty_one(self, now: int) -> None:
        """Have the consumer that holds least emptied, unless one is, or one tries a suspect already."""
        late = self.emptied if now >= self._emptied_until else None
        if (self.emptied is not None and late is None) or any(consumer.trying for consumer in self._ring):
            return
        busy = [consumer for consumer in self._ring if consumer.in_flight and consumer is not late]
        self.go_on()
        if busy:
            self.emptied = min(busy, key=lambda consumer: consumer.in_flight)
            self.emptied.aside = True
            self._emptied_until = now + EMPTIED_WITHIN

    def snapshot(self) -> TrialSnapshot:
        """What trials and emptying a consumer change, for `restore`."""
        each = [(one, one.aside, one.trying, one.trials_left) for one in self._ring]
        return TrialSnapshot(self.emptied, self._emptied_until, each)

    def restore(self, saved: TrialSnapshot) -> None:
        self.emptied, self._emptied_until = saved.emptied, saved.emptied_until
        for consumer, aside, trying, trials_left in saved.consumers:
            consumer.aside, consumer.trying, consumer.trials_left = aside, trying, trials_left

    def go_on(self) -> None:
        """No consumer need be emptied any more."""
        if self.emptied is not None:
            self.emptied.aside = self.emptied.trying
            self.emptied = None
