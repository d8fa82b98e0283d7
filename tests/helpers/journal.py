"""What the journal says, told again: a broker's state made of nothing but its history."""

import json
from dataclasses import dataclass, field
from typing import Any

from fila.broker.journal import Journal
from fila.storage.journal import Field, Kind, Record


@dataclass(frozen=True)
class Entry:
    """One entry, as a reader sees it."""

    number: int
    at: int
    kind: Kind
    queue: str
    key: str
    priority: int
    weight: int
    seq: int = 0
    attempt: int = 0
    size: int = 0
    cost: int = 0
    until: int = 0
    count: int = 0
    cause: int = 0
    target: str = ""
    note: Any = None
    throttled: int = 0


def entries_of(first: int, record: Record) -> list[Entry]:
    found: list[Entry] = []
    for section in record.sections:
        columns = {name: section.values(name) for name in Field}
        for row in range(section.rows):
            lane = record.lanes[columns[Field.LANE][row]]
            moved = Field.TARGET in section.columns
            found.append(
                Entry(
                    number=first + len(found),
                    at=record.at,
                    kind=section.kind,
                    queue=lane.queue,
                    key=lane.fairness_key,
                    priority=lane.priority,
                    weight=lane.weight,
                    seq=columns[Field.SEQ][row],
                    attempt=columns[Field.ATTEMPT][row],
                    size=columns[Field.SIZE][row],
                    cost=columns[Field.COST][row],
                    until=columns[Field.UNTIL][row],
                    count=columns[Field.COUNT][row],
                    cause=columns[Field.CAUSE][row],
                    target=record.lanes[columns[Field.TARGET][row]].queue if moved else "",
                    note=json.loads(section.texts[row]) if section.texts and section.texts[row] else None,
                    throttled=columns[Field.THROTTLED][row],
                )
            )
    return found


def read_all(journal: Journal, start: int = 1, step_bytes: int = 1 << 20) -> list[Entry]:
    """Everything from an entry on, a piece at a time."""
    found: list[Entry] = []
    while piece := [entry for first, record in journal.read(start, step_bytes) for entry in entries_of(first, record)]:
        found += piece
        start = piece[-1].number + 1
    return found


@dataclass
class Told:
    """One queue as its history tells it: messages as (place, key, priority, due), and attempts that failed."""

    messages: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    consumers: int = 0


class Replay:
    """Takes entries one after the other. Fails where they contradict each other."""

    def __init__(self) -> None:
        self.queues: dict[str, Told] = {}
        self.config: dict[str, str] = {}
        self.next = 1

    def take(self, entries: list[Entry]) -> None:
        for entry in entries:
            assert entry.number == self.next, "numbers follow each other"
            self.next += 1
            getattr(self, "on_" + entry.kind.name.lower())(entry)

    def on_started(self, _: Entry) -> None:
        for queue in self.queues.values():
            queue.consumers = 0

    def on_counted(self, entry: Entry) -> None:
        assert len(self.queues[entry.queue].messages) == entry.count

    def on_consumers(self, entry: Entry) -> None:
        self.queues[entry.queue].consumers = entry.count

    def on_enqueued(self, entry: Entry) -> None:
        messages = self.queues[entry.queue].messages
        assert entry.seq not in messages
        assert entry.attempt == 0
        messages[entry.seq] = _waiting(entry)

    def on_due(self, entry: Entry) -> None:
        self._leave(entry, "delayed")
        self.queues[entry.queue].messages[entry.seq] = ("ready", entry.key, entry.priority)

    def on_leased(self, entry: Entry) -> None:
        queue = self._leave(entry, "ready")
        assert entry.until > entry.at
        assert entry.attempt == queue.attempts.get(entry.seq, 0) + 1
        queue.messages[entry.seq] = ("leased", entry.key, entry.priority)

    def on_acked(self, entry: Entry) -> None:
        queue = self._leave(entry, "leased")
        assert entry.attempt == queue.attempts.pop(entry.seq, 0) + 1

    def on_nacked(self, entry: Entry) -> None:
        queue = self._leave(entry, "leased")
        queue.attempts[entry.seq] = queue.attempts.get(entry.seq, 0) + 1
        assert queue.attempts[entry.seq] == entry.attempt
        queue.messages[entry.seq] = _waiting(entry)

    on_expired = on_returned = on_nacked

    def on_released(self, entry: Entry) -> None:
        queue = self._leave(entry, "leased")
        assert queue.attempts.get(entry.seq, 0) == entry.attempt
        queue.messages[entry.seq] = _waiting(entry)

    def on_dead(self, entry: Entry) -> None:
        dropped = entry.cause == Kind.DROPPED  # its queue was full: that is no attempt
        queue = self._leave(entry, "ready" if dropped else "leased")
        graves = self.queues[entry.target]
        assert dropped or entry.cause in {Kind.NACKED, Kind.EXPIRED, Kind.RETURNED}
        assert entry.attempt == queue.attempts.pop(entry.seq, 0) + (not dropped)
        graves.messages[entry.seq] = ("ready", entry.key, entry.priority)
        graves.attempts[entry.seq] = entry.attempt

    def on_redriven(self, entry: Entry) -> None:
        graves = self._leave(entry, "ready", "delayed")
        assert entry.attempt == graves.attempts.pop(entry.seq, 0)
        self.queues[entry.target].messages[entry.seq] = ("ready", entry.key, entry.priority)

    def on_dropped(self, entry: Entry) -> None:
        queue = self._leave(entry, "ready", "delayed")
        assert entry.attempt == queue.attempts.pop(entry.seq, 0)

    def on_created(self, entry: Entry) -> None:
        assert entry.queue not in self.queues
        self.queues[entry.queue] = Told()

    def on_updated(self, entry: Entry) -> None:
        assert entry.queue in self.queues
        assert all(before != after for before, after in entry.note.values())

    def on_deleted(self, entry: Entry) -> None:
        assert len(self.queues.pop(entry.queue).messages) == entry.count

    def on_configured(self, entry: Entry) -> None:
        assert self.config.get(entry.note["key"]) == entry.note["before"]
        self.config[entry.note["key"]] = entry.note["value"]

    def _leave(self, entry: Entry, *places: str) -> Told:
        queue = self.queues[entry.queue]
        place, *whose = queue.messages.pop(entry.seq)[:3]
        assert place in places
        assert whose == [entry.key, entry.priority]
        return queue


def _waiting(entry: Entry) -> tuple[Any, ...]:
    place = ("delayed" if entry.until else "ready", entry.key, entry.priority)
    return (*place, entry.until) if entry.until else place
