"""Reading the records of messages: those that were just written from memory, all others from the store.

Records are read in pieces of about `READ_BYTES`, so that a slow reader holds leases, not memory.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter

from fila.broker.attempts import Death, death_of, failures_of
from fila.broker.queue import QueueState, store_keys
from fila.broker.recent import RecentRecords
from fila.core.errors import StoreFailed, StoreUnusable
from fila.core.lane import Lane, Taken
from fila.core.leases import Grant
from fila.storage.base import Family, Storage
from fila.storage.records import AttemptRecord

READ_FIRST = 16
"""Messages read from the store at first for one consumer; from then on as many as their size allows.
Large ones are read one at a time."""
READ_BYTES = 256 << 10

Piece = list[tuple[int, Lane, bytes]]
"""Messages: sequence number, lane, record"""


class Records:
    """Reads what the store has of messages."""

    __slots__ = ("_recent", "_store")

    def __init__(self, store: Storage, recent: RecentRecords) -> None:
        self._store = store
        self._recent = recent

    def read(self, queue: QueueState, grant: Grant, chosen_of: list[Taken] | None = None) -> Iterator[Piece]:
        """The messages of a grant, or some of them, without those that it no longer holds."""
        leased = grant.members

        def read(messages: list[Taken]) -> Piece:
            return self._read([message for message in messages if message[1] in leased])

        return _in_pieces(queue, list(leased.values()) if chosen_of is None else chosen_of, read)

    def read_waiting(self, queue: QueueState, messages: list[Taken]) -> Iterator[Piece]:
        """Messages that nobody holds."""
        return _in_pieces(queue, messages, self.look_up)

    def read_ahead(self, messages: list[Taken]) -> None:
        """What is dealt out in turn stands side by side in the store: read it once for all, as far as there is room."""
        recent = self._recent
        wanted = sorted([message for message in messages if message[1] not in recent], key=itemgetter(1))
        start, step = 0, READ_FIRST
        while start < len(wanted) and recent.room > 0:
            try:
                read = self.look_up(wanted[start : start + step])
            except (StoreFailed, StoreUnusable):
                return  # each will find out when it reads its own
            recent.add([(seq, record) for seq, _, record in read])
            start += step
            step = max(1, READ_BYTES // max([len(record) for _, _, record in read], default=READ_BYTES))

    def look_up(self, messages: list[Taken]) -> Piece:
        """Those of the messages that the store has."""
        records = self._store.get_many(Family.MESSAGES, store_keys(messages))
        return [
            (seq, lane, record) for (lane, seq, _), record in zip(messages, records, strict=True) if record is not None
        ]

    def failures_of(self, queue: QueueState, seq: int) -> list[tuple[int, AttemptRecord]]:
        """The failed attempts of a message that are remembered."""
        return failures_of(self._store, queue, seq)

    def death_of(self, queue: QueueState, seq: int) -> Death | None:
        """How a dead letter died; None for a message that did not."""
        return death_of(self._store, queue.name, seq)

    def _read(self, messages: list[Taken]) -> Piece:
        recent = self._recent
        found = recent.take([seq for _, seq, _ in messages]) if len(recent) else {}
        if not found:
            return self.look_up(messages)
        missing = [message for message in messages if message[1] not in found]
        found.update((seq, record) for seq, _, record in self.look_up(missing))
        return [(seq, lane, found[seq]) for lane, seq, _ in messages if seq in found]


def _in_pieces(queue: QueueState, messages: list[Taken], read: Callable[[list[Taken]], Piece]) -> Iterator[Piece]:
    """About `READ_BYTES` at a time, each piece when it is asked for."""
    start, step = 0, READ_FIRST
    while start < len(messages):
        chosen = messages[start : start + step]
        if queue.large:
            chosen = _up_to_large(chosen, queue.large)
        start += len(chosen)
        piece = read(chosen)
        if piece:
            step = max(1, READ_BYTES // max(len(record) for _, _, record in piece))
            pieces = [piece]
            del piece
            yield pieces.pop()  # and it is not kept here


def _up_to_large(messages: list[Taken], large: set[int]) -> list[Taken]:
    """The messages before the first large one, or that one alone."""
    for index, (_, seq, _) in enumerate(messages):
        if seq in large:
            return messages[: max(1, index)]
    return messages
