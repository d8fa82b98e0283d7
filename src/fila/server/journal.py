"""ReadJournal: the journal in pieces, each read when the one before has been taken.

A reader costs the broker a piece of about `READ_BYTES` at a time and nothing while it is slow. What is dropped
meanwhile is missing from what it gets, and the numbers say so.
"""

import asyncio

from fila.broker.broker import Broker
from fila.core.errors import InvalidArgument, NotNow, ShuttingDown
from fila.server.types import ServerCall
from fila.storage.journal import Field, Record, Section
from fila.v1 import admin_pb2 as pb

READ_BYTES = 128 << 10
LOOK_AGAIN_S = 0.05
"""How often a reader that follows looks for more. It never looks while there is nothing new."""
JOURNAL = 0
"""The number of the only journal that a server without a cluster has."""

_COLUMNS = {
    Field.LANE: "lanes",
    Field.SEQ: "message_seqs",
    Field.ATTEMPT: "attempts",
    Field.SIZE: "sizes",
    Field.COST: "costs",
    Field.UNTIL: "until_ns",
    Field.THROTTLED: "throttled_ns",
    Field.COUNT: "counts",
    Field.CAUSE: "causes",
    Field.TARGET: "targets",
}


async def read_journal(broker: Broker, request: pb.ReadJournalRequest, call: ServerCall) -> None:
    """Raises InvalidArgument, NotNow or ShuttingDown."""
    journal = broker.journal
    start = _read_start(request)
    if request.follow and not journal.enabled:
        raise NotNow(
            "the journal is off, so there is nothing to follow; set journal.enabled in the server's configuration"
        )
    reading = _Reading(broker, request, start)
    await call.write(reading.header())
    while not reading.done:
        await call.until_ready()
        response = reading.next()
        await call.write(response)
        await asyncio.sleep(0)  # what the broker is there for goes first
        while reading.at_end and not reading.done:
            if not broker.ready:
                raise ShuttingDown
            await asyncio.sleep(LOOK_AGAIN_S)


def _read_start(request: pb.ReadJournalRequest) -> int:
    """The number of the first entry that is asked for; 0 for the oldest. Raises InvalidArgument."""
    if request.positions and request.last:
        raise InvalidArgument("positions and last cannot both be set")
    if len(request.positions) > 1 or any(position.journal != JOURNAL for position in request.positions):
        raise InvalidArgument(f"this server has one journal, {JOURNAL}: give one position of it, or none")
    return request.positions[0].seq if request.positions else 0


class _Reading:
    """How far one reader is."""

    def __init__(self, broker: Broker, request: pb.ReadJournalRequest, start: int) -> None:
        self._journal = broker.journal
        self._store = broker.state.ids.node
        self._queue = request.queue
        self._follow = request.follow
        self._left = request.max_entries or 1 << 64
        self._end = self._journal.next_entry
        start = start or (max(1, self._end - request.last) if request.last else 1)
        self._position = max(start, self._journal.first_entry)

    @property
    def at_end(self) -> bool:
        return self._position >= self._journal.next_entry

    @property
    def done(self) -> bool:
        return self._left <= 0 or (not self._follow and self._position >= self._end)

    def header(self) -> pb.ReadJournalResponse:
        return pb.ReadJournalResponse(
            first_available_seq=self._journal.first_entry,
            next_seq=self._journal.next_entry,
            position=self._position,
            store=self._store,
            enabled=self._journal.enabled,
            journal=JOURNAL,
        )

    def next(self) -> pb.ReadJournalResponse:
        """The next piece. Its position is behind what it holds."""
        records, found = [], False
        for first, record in self._journal.read(self._position, READ_BYTES):
            found = True
            if self.done:
                break
            written = self._write(first, record)
            if written.sections:
                records.append(written)
        if not found:  # numbers at the end that nothing has
            self._position = self._journal.next_entry
        response = self.header()
        response.records.extend(records)
        return response

    def _write(self, first: int, record: Record) -> pb.JournalRecord:
        written = pb.JournalRecord(at_ns=record.at)
        for section in record.sections:
            if self._left <= 0:
                break
            if not self._queue or record.queue_of(section) == self._queue:
                taken = section if section.rows <= self._left else section.cut(0, self._left)
                written.sections.append(_write_section(first, taken))
                self._left -= taken.rows
                self._position = first + taken.rows
            else:
                self._position = first + section.rows
            first += section.rows
        for lane in record.lanes if written.sections else ():
            written.lanes.add(
                queue=lane.queue, fairness_key=lane.fairness_key, priority=lane.priority, weight=lane.weight
            )
        return written


def _write_section(first: int, section: Section) -> pb.JournalSection:
    written = pb.JournalSection(
        kind=pb.JournalKind.Name(section.kind), first_seq=first, rows=section.rows, notes=section.texts
    )
    for field, column in section.columns.items():
        getattr(written, _COLUMNS[field]).extend(column)
    return written
