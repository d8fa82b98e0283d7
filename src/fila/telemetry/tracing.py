"""Spans of messages that a producer traces.

A producer that is being traced puts a W3C `traceparent` into the headers of its messages. When it says that the trace
is sampled, the broker notes spans of what it does with the message, as children of the producer's span. The consumer
gets the header with the message and goes on with the trace. The broker begins no traces of its own.

Rules of this file:
- A message without the header costs one lookup. Notes are plain tuples; what a span needs is made of them in another
  thread.
- Nothing grows without bound: past `MAX_NOTES` spans are dropped and counted, past `MAX_HELD` the oldest message that
  is held is forgotten, and gets no span for its ack.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from fila.broker.commands import AckGroup, Failure, Incoming, Nack, Outcome
from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.core.ledger import Wait
from fila.core.pending import Lane

HEADER = "traceparent"
MAX_NOTES = 20_000
MAX_HELD = 20_000

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
    """The producer's span, by its ids in hexadecimal."""

    trace: str
    span: str


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


class Held(NamedTuple):
    """A traced message that a consumer holds."""

    parent: Parent
    fairness_key: str


def read_parent(text: str) -> Parent | None:
    """The parent that a `traceparent` names, if it is one of a sampled trace."""
    found = _SAMPLED.fullmatch(text)
    return None if found is None else Parent(found[1], found[2])


class Tracer:
    """Notes spans. Lives on the broker's event loop."""

    def __init__(self, state: BrokerState) -> None:
        self._queues = state.queues
        self._ids = state.ids
        self._notes: list[Note] = []
        self._held: dict[str, Held] = {}
        self.noted = 0
        self.dropped = 0

    def take(self) -> list[Note]:
        """What was noted since the last time."""
        notes, self._notes = self._notes, []
        return notes

    def enqueued(self, messages: list[Incoming], outcomes: Sequence[Outcome], began: int, ended: int) -> None:
        """A batch was answered."""
        for message, outcome in zip(messages, outcomes, strict=True):
            text = message.headers.get(HEADER)
            parent = read_parent(text) if text else None
            if parent is None:
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

    def leased(self, queue: QueueState, messages: list[tuple[int, Lane, bytes]], began: int, ended: int) -> None:
        """Messages went to a consumer, with their records."""
        for seq, lane, record in messages:
            at = record.find(_ENCODED, 0, SEARCHED_BYTES)
            if at < 0:
                continue
            value = record[at + len(_ENCODED) : at + len(_ENCODED) + _VALUE_BYTES]
            parent = read_parent(value.decode("ascii", "replace"))
            if parent is not None:
                message_id, key = self._ids.text(seq), lane.key.name
                self._hold(message_id, Held(parent, key))
                wait = queue.ledger.answer(seq)
                self._note(Note(Operation.LEASE, parent, queue.name, message_id, key, began, ended, wait=wait))

    def settled(self, acks: list[AckGroup], nacks: list[Nack], failures: list[Failure], began: int, ended: int) -> None:
        """A consumer said what became of messages."""
        if not self._held:
            return
        failed = {failure.message_id: type(failure.error).__name__ for failure in failures}
        for group in acks:
            self._end(Operation.ACK, group.queue, group.message_ids, failed, began, ended)
        for nack in nacks:
            self._end(Operation.NACK, nack.queue, (nack.message_id,), failed, began, ended)

    def _end(
        self, operation: Operation, queue: str, ids: Iterable[str], failed: dict[str, str], began: int, ended: int
    ) -> None:
        held = self._held
        for message_id in ids:
            if message_id in held:
                parent, key = held.pop(message_id)
                self._note(Note(operation, parent, queue, message_id, key, began, ended, failed.get(message_id, "")))

    def _hold(self, message_id: str, held: Held) -> None:
        self._held.pop(message_id, None)
        if len(self._held) >= MAX_HELD:
            del self._held[next(iter(self._held))]
        self._held[message_id] = held

    def _note(self, note: Note) -> None:
        if len(self._notes) >= MAX_NOTES:
            self.dropped += 1
        else:
            self.noted += 1
            self._notes.append(note)
