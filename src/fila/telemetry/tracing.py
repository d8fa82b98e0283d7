"""Spans of what the broker does with messages that a producer or a caller traces.

A producer that is being traced puts a W3C `traceparent` into the headers of its messages. When it says that the trace
is sampled, the broker notes spans of what it does with the message, as children of the producer's span. The consumer
gets the header with the message and goes on with the trace.

A caller that is being traced sends `traceparent` as metadata of its call, be it of one message or a stream. What the
call leases, acks or nacks is then a child of the caller's span, with a link to the producer's. What it enqueues is
a child of the span that the message names, or else of the caller's.

When neither says anything, the broker begins a trace of its own, of that one operation: so many a second of each kind
and no more, so that all is traced where little happens, and traces cost next to nothing where much does. Whoever says
that its trace is not sampled is not traced.

Rules of this file:
- A message without the header costs one lookup, a call without the metadata one more. Notes are plain tuples; what a
  span needs is made of them in another thread.
- Nothing grows without bound: past `MAX_NOTES` spans are dropped and counted, past `MAX_IN_FLIGHT` the oldest delivery
  is forgotten, and gets no span for its ack.
"""

import re
from collections.abc import Sequence
from enum import Enum
from random import getrandbits
from typing import NamedTuple

from fila.broker.commands import AckGroup, EnqueueResult, Failure, Incoming, Nack
from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.core.lane import Lane
from fila.core.ledger import Wait

HEADER = "traceparent"
MAX_NOTES = 20_000
MAX_IN_FLIGHT = 20_000
NS_PER_S = 1_000_000_000

SEARCHED_BYTES = 1024
"""How much of a stored message is searched for the header. Headers come first."""

_SAMPLED = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f][13579bdf]", re.ASCII)
_ENCODED = b"\n\x0b" + HEADER.encode() + b"\x12\x37"  # key of 11 bytes, value of 55 bytes
_VALUE_BYTES = 55


class Operation(Enum):
    """What the broker does with a message."""

    ENQUEUE = "enqueue"
    LEASE = "lease"
    ACK = "ack"
    NACK = "nack"


class Parent(NamedTuple):
    """The span of a producer or a caller, by its ids in hexadecimal."""

    trace: str
    span: str
    """Empty for a trace that begins here"""


UNSAMPLED = Parent("", "")
"""A caller that is in a trace which is not sampled."""


class Note(NamedTuple):
    """One span. Times are in nanoseconds since the epoch."""

    operation: Operation
    parent: Parent
    queue: str
    message_id: str
    fairness_key: str
    began: int
    ended: int
    error: str = ""
    wait: Wait | None = None
    link: Parent | None = None
    """The producer's span, when the parent is another."""


class TracedDelivery(NamedTuple):
    """A traced message that was delivered and is not settled."""

    parent: Parent
    fairness_key: str


class Settling(NamedTuple):
    """The context of a settlement: the traced caller, and by message the fairness key and the trace that begins."""

    caller: Parent | None
    keys: dict[str, str]
    begun: dict[str, Parent]


def _link(parent: Parent, producer: Parent | None) -> Parent | None:
    return producer if producer != parent else None


def read_parent(text: str) -> Parent | None:
    """The parent that a `traceparent` names, if it is one of a sampled trace."""
    found = _SAMPLED.fullmatch(text)
    return None if found is None else Parent(found[1], found[2])


class Tracer:
    """Notes spans. Lives on the broker's event loop."""

    def __init__(self, state: BrokerState, own_a_second: int = 0) -> None:
        """`own_a_second` traces of each operation are begun at most, where nobody says whether to trace it."""
        self._own_a_second = own_a_second
        self._begun: dict[Operation, tuple[int, int]] = dict.fromkeys(Operation, (0, 0))
        """In which second how many were begun"""
        self._queues = state.queues
        self._ids = state.ids
        self._notes: list[Note] = []
        self._in_flight: dict[str, TracedDelivery] = {}
        self.noted = 0
        self.dropped = 0

    def take(self) -> list[Note]:
        """What was noted since the last time."""
        notes, self._notes = self._notes, []
        return notes

    def enqueued(
        self,
        messages: list[Incoming],
        outcomes: Sequence[EnqueueResult],
        began: int,
        ended: int,
        caller: Parent | None = None,
    ) -> None:
        """A batch of enqueues was answered."""
        own = caller is None
        for message, outcome in zip(messages, outcomes, strict=True):
            text = message.headers.get(HEADER)
            parent = read_parent(text) if text else caller
            if own and not text:
                parent = self._begin(Operation.ENQUEUE, began)
                own = parent is not None
            if parent is None or parent is UNSAMPLED:
                continue
            if not isinstance(outcome, int):
                error = type(outcome).__name__
                self._note(Note(Operation.ENQUEUE, parent, message.queue, "", "", began, ended, error))
            elif message.lane is not None:  # else it was there already, and this is the second answer
                key = message.lane.key.name
                queue = self._queues.get(message.queue)
                if queue is not None and outcome not in queue.leases:  # else it did not wait
                    queue.ledger.ask(outcome)
                self._note(Note(Operation.ENQUEUE, parent, message.queue, self._ids.text(outcome), key, began, ended))

    def leased(
        self,
        queue: QueueState,
        messages: list[tuple[int, Lane, bytes]],
        began: int,
        ended: int,
        caller: Parent | None = None,
    ) -> None:
        """Messages went to a consumer, with their records."""
        own = caller is None
        sampled = caller if caller is not UNSAMPLED else None
        for seq, lane, record in messages:
            at = record.find(_ENCODED, 0, SEARCHED_BYTES)
            value = record[at + len(_ENCODED) : at + len(_ENCODED) + _VALUE_BYTES] if at >= 0 else b""
            producer = read_parent(value.decode("ascii", "replace")) if value else None
            parent = sampled or producer
            if own and not value:
                parent = self._begin(Operation.LEASE, began)
                own = parent is not None
            if parent is None:
                continue
            message_id, key = self._ids.text(seq), lane.key.name
            if producer is not None:
                self._add_in_flight(message_id, TracedDelivery(producer, key))
            wait, link = queue.ledger.answer(seq), _link(parent, producer)
            self._note(Note(Operation.LEASE, parent, queue.name, message_id, key, began, ended, wait=wait, link=link))

    def settling(self, acks: list[AckGroup], nacks: list[Nack], caller: Parent | None, now: int) -> "Settling":
        """A settlement arrived and is not yet carried out."""
        keys: dict[str, str] = {}
        begun: dict[str, Parent] = {}
        if caller is UNSAMPLED or (caller is None and not self._may_begin(now)):
            return Settling(None, keys, begun)
        for operation, name, message_id in _named(acks, nacks):
            if caller is None:
                own = self._begin(operation, now) if message_id not in self._in_flight else None
                if own is None:
                    if not self._may_begin(now):
                        break
                    continue
                begun[message_id] = own
            queue, seq = self._queues.get(name), self._ids.seq(message_id)
            if queue is not None and seq is not None and seq in queue.leases:
                (lane,) = queue.leases.lanes([seq])
                keys[message_id] = lane.key.name
        return Settling(caller, keys, begun)

    def settled(
        self,
        acks: list[AckGroup],
        nacks: list[Nack],
        failures: list[Failure],
        began: int,
        ended: int,
        settling: "Settling | None" = None,
    ) -> None:
        """A settlement was answered."""
        caller, keys, begun = settling or Settling(None, {}, {})
        if caller is None and not self._in_flight and not begun:
            return
        failed = {failure.message_id: type(failure.error).__name__ for failure in failures}
        for operation, queue, message_id in _named(acks, nacks):
            delivery = self._in_flight.pop(message_id, None)
            producer = None if delivery is None else delivery.parent
            parent = caller or producer or begun.get(message_id)
            if parent is not None:
                key = delivery.fairness_key if delivery is not None else keys.get(message_id, "")
                error, link = failed.get(message_id, ""), _link(parent, producer)
                self._note(Note(operation, parent, queue, message_id, key, began, ended, error, link=link))

    def _begin(self, operation: Operation, now: int) -> Parent | None:
        """A new trace, if there were not too many in this second."""
        if not self._own_a_second:
            return None
        second, count = self._begun[operation]
        if second != now // NS_PER_S:
            second, count = now // NS_PER_S, 0
        if count >= self._own_a_second:
            return None
        self._begun[operation] = (second, count + 1)
        return Parent(f"{getrandbits(128) or 1:032x}", "")

    def _may_begin(self, now: int) -> bool:
        """Whether a trace of some settlement may begin in this second."""
        limit, second = self._own_a_second, now // NS_PER_S
        return any(self._begun[each] < (second, limit) for each in (Operation.ACK, Operation.NACK)) and limit > 0

    def _add_in_flight(self, message_id: str, delivery: TracedDelivery) -> None:
        self._in_flight.pop(message_id, None)
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            del self._in_flight[next(iter(self._in_flight))]
        self._in_flight[message_id] = delivery

    def _note(self, note: Note) -> None:
        if len(self._notes) >= MAX_NOTES:
            self.dropped += 1
        else:
            self.noted += 1
            self._notes.append(note)


def _named(acks: list[AckGroup], nacks: list[Nack]) -> list[tuple[Operation, str, str]]:
    """Operation, queue and id of each settled message."""
    named = [(Operation.ACK, group.queue, message_id) for group in acks for message_id in group.message_ids]
    return named + [(Operation.NACK, nack.queue, nack.message_id) for nack in nacks]
