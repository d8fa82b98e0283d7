"""Reading the messages of a queue into memory after a start.

A message goes where its state says: into a grant, the schedule, the suspects, or its lane. Most are in lanes, and there
may be fifty million of them. So a large queue is read while the broker works: the first messages before it serves, the
others some in each tick.

Rules of this file:
- messages are read in the order of their numbers. Up to which number they are known says `known`; nothing newer is
  delivered before all are. So the order of a lane is what it always is;
- messages that are leased, delayed or suspected are known before the broker serves, wherever they stand. What was
  staged then never counts as unread. So nobody else touches what is to be read;
- no message comes to a queue with an old number while it is read: dead letters do, so their queues are read whole at
  the start, and a redrive waits for both queues. All others are newer than what is read;
- the weight of a key is that of its newest message, whichever is read first;
- whoever needs all messages of a queue waits until they are known (`calls.all_known`), as he would for a start that
  reads them all.
"""

import struct
from array import array
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from operator import attrgetter

from fila.broker.lane_cache import USUAL
from fila.broker.queue import LARGE_BYTES, QueueState
from fila.core.drr import PARKED
from fila.core.errors import StoreCorrupt
from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.core.leases import Grant
from fila.core.transactions import Ranges
from fila.storage import codec, keys
from fila.storage.base import Family, Storage

LOADED_AT_ONCE = 1_000
"""Messages that are read in one tick: about 1 ms, or 5 ms where each has a key of its own"""
BYTES_AT_ONCE = 2 << 20
"""And so many bytes about, if they are large: some milliseconds"""
TURN = 20
"""For so many ticks the same queue is read, with one scan of the store, which reads some megabytes ahead"""
FINAL = 1 << 64
"""Newer than any message"""
_last_of = attrgetter("last")


@dataclass(slots=True)
class Apart:
    """What the store says of messages of one queue that may not be in their lanes."""

    held: dict[int, tuple[Grant, int]] = field(default_factory=dict)
    """The latest grant that lists it, and its attempts at that time"""
    due: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """When it is due, and the key that says so; of messages that were not met yet"""
    suspects: list[tuple[Lane, int, int]] = field(default_factory=list)
    """Messages that are delivered alone, once all weights are known: lane, sequence number, cost"""
    met: set[int] = field(default_factory=set)


class Loading:
    """The messages of one queue that are still to be read."""

    __slots__ = (
        "_apart",
        "_beyond",
        "_end",
        "_hidden",
        "_messages",
        "_newest",
        "_plain",
        "_store",
        "known",
        "queue",
        "turn",
    )

    def __init__(self, queue: QueueState, store: Storage, apart: Apart, hidden: Ranges) -> None:
        self.queue = queue
        self.turn = TURN
        """For how many ticks it is read yet before it is the turn of others"""
        self.known = 0
        """The newest message that was read in its order"""
        self._store = store
        self._apart = apart
        self._hidden = hidden
        self._newest: dict[str, tuple[int, int]] = {}
        """Of each key, the newest message that was met before its turn, and its weight"""
        self._plain: dict[bytes, Lane] = {}
        """Lanes without throttles, by the ends of the keys of their messages. Such a lane is right while messages wait
        in it: what is usual goes there at once."""
        self._beyond: list[tuple[int, int, FairKey]] = []
        """Parked keys by their oldest messages, which are newer than what is known; a heap"""
        self._end = keys.after(queue.prefix)
        self._messages: Iterator[tuple[bytes, bytes]] | None = None

    def read(self, most: int, most_bytes: int) -> bool:
        """Read some more, so many messages at most, and until there are so many bytes. Returns whether there may be
        others. Raises ValueError, struct.error or StoreFailed.
        """
        if self._messages is None:
            start = keys.message((self.queue.prefix, b""), self.known + 1)
            self._messages = self._store.scan(Family.MESSAGES, start, self._end)
        found, size = list[tuple[bytes, bytes]](), 0
        try:
            for message in islice(self._messages, most):
                found.append(message)
                size += len(message[1])
                if size >= most_bytes:
                    break
        except BaseException:
            self._messages = None  # it would end here, as if there were no more
            raise
        self._take_in(found, self._apart.met)
        if found:
            _, self.known = keys.read_message(found[-1][0])
        more = len(found) == most or size >= most_bytes
        self._let_in(self.known if more else FINAL)
        return more

    def put_off(self, parked: Iterable[FairKey]) -> None:
        """Let keys go on when it is known that nothing is older than what they have."""
        for key in parked:
            heappush(self._beyond, (key.oldest, id(key), key))

    def _let_in(self, upto: int) -> None:
        beyond = self._beyond
        while beyond and beyond[0][0] <= upto:
            key = heappop(beyond)[2]
            if key.ring == PARKED:
                self.queue.drr.activate(key)

    def go_on_later(self, last: int) -> bool:
        """Leave the rest to `read_some`, if nothing is newer than `last`, as in a store that has lost its clock: new
        messages would get such numbers. Returns whether that is so.
        """
        end = keys.message((self.queue.prefix, b""), last + 1)
        if self._store.has_any(Family.MESSAGES, end, self._end):
            return False
        self._end = end
        self.rest()
        return True

    def rest(self) -> None:
        """Let go of the store until it is this queue's turn again."""
        self._messages = None
        self.turn = TURN

    def read_apart(self, most: int) -> bool:
        """Read those that may not be in their lanes, wherever they stand, unless there are too many. Returns whether
        that is done. Raises as `read`.
        """
        apart = self._apart
        rest = (apart.held.keys() | apart.due.keys() | self.queue.suspicion.keys()) - apart.met
        if len(rest) > most:
            return False
        for seq in sorted(rest):
            start, end = (keys.message((self.queue.prefix, b""), number) for number in (seq, seq + 1))
            self._take_in(self._store.scan(Family.MESSAGES, start, end), set(), early=True)
        apart.met |= rest
        return True

    def take_in_suspects(self) -> None:
        """All messages that may not be in their lanes were met."""
        for lane, seq, cost in self._apart.suspects:
            self.queue.come_back(lane, seq, cost)
        self._apart.suspects.clear()

    def arrived(self, *owners: Iterable[FairKey]) -> None:
        """Keys have messages that are newer than all that is read, and their weights."""
        self._newest.update({key.name: (FINAL, key.weight) for some in owners for key in some})

    def _take_in(self, messages: Iterable[tuple[bytes, bytes]], known: set[int], *, early: bool = False) -> None:
        """Put messages where they belong, but for those that are known. `early`: before older ones."""
        queue, hidden, apart = self.queue, self._hidden, self._apart
        held, due, suspicion, measures = apart.held, apart.due, queue.suspicion, queue.capacity.sizes is not None
        at = len(queue.prefix)
        end = at + keys.SEQ_BYTES
        plain_lanes, usual = self._plain, USUAL.head
        seqs, lanes = list[int](), list[Lane]()
        gathered, weighed, count = dict[bytes, _Lane](), set[FairKey](), 0
        for key, value in messages:
            seq = int.from_bytes(key[at:end], "big")
            if (hidden.starts and seq in hidden) or seq in known:
                continue
            count += 1
            if len(value) > LARGE_BYTES:
                queue.large.add(seq)
            if measures:
                queue.capacity.measure(seq, codec.body_bytes(value))
            behind = key[end:]
            plain = plain_lanes.get(behind)
            is_apart = seq in held or seq in due or seq in suspicion
            if (
                plain is not None
                and (plain.fifo or plain.first)
                and plain.key.weight == 1
                and plain.key not in weighed
                and value.startswith(usual)
                and not is_apart
            ):
                seqs.append(seq)
                lanes.append(plain)
                continue
            lane = gathered.get(behind)
            if lane is None:
                lane = gathered[behind] = _Lane(queue, behind)
            if not value.startswith(lane.head):
                lane.read_head(value)
                weighed.add(lane.lane.key)
            if is_apart:
                self._put_apart(lane, seq)
            else:
                lane.ready.append(seq)
            lane.last = seq
        queue.capacity.messages += count
        queue.take_in(lanes, seqs, {})
        self._take_in_gathered(gathered.values(), early=early)

    def _take_in_gathered(self, gathered: Collection["_Lane"], *, early: bool) -> None:
        for lane in sorted(gathered, key=_last_of):  # the newest of a key has the last word
            self._weigh(lane, early=early)
        for lane in gathered:
            lane.take_in()
            if not lane.lane.throttles:
                self._plain[lane.lane.behind] = lane.lane
        self.queue.lane_cache.end_tick()

    def _put_apart(self, lane: "_Lane", seq: int) -> None:
        """Put a message that may not be in its lane into its grant, the schedule, or the suspects."""
        queue, apart, message = self.queue, self._apart, (lane.lane, seq, lane.cost)
        apart.met.add(seq)
        grant, attempts = apart.held.get(seq, (None, 0))
        if grant is not None and attempts == queue.attempts.get(seq, 0):
            grant.members[seq] = message
            for throttle in lane.lane.throttles:
                throttle.in_flight += 1
        elif seq in apart.due:
            queue.schedule.add((apart.due.pop(seq)[0], seq, lane.lane, lane.cost))
        elif seq in queue.suspicion:
            apart.suspects.append(message)
            return
        else:
            lane.ready.append(seq)
            return
        lane.lane.key.outside_lanes += 1

    def _weigh(self, lane: "_Lane", *, early: bool) -> None:
        key = lane.lane.key
        seq, weight = self._newest.get(key.name, (0, 1))
        if lane.last > seq:
            weight = lane.weight
            if early:
                self._newest[key.name] = (lane.last, weight)
        key.weight = weight
        cache = self.queue.lane_cache
        cache.weighted = cache.weighted or weight != 1


class _Lane:
    """The messages of one priority of a key, gathered so that the many ordinary ones are taken in together.

    Those that share weight, cost and throttles follow each other; `head` is the beginning of their records.
    """

    __slots__ = ("_key", "_queue", "_runs", "cost", "head", "lane", "last", "priority", "ready", "weight")

    lane: Lane

    def __init__(self, queue: QueueState, behind: bytes) -> None:
        """Raises ValueError."""
        self._queue = queue
        _, self._key, self.priority = keys.read_lane(queue.prefix + behind)
        self.head = b"\x00"  # begins no record
        self.weight = self.cost = 1
        self.last = 0
        self.ready = array("Q")
        self._runs: list[tuple[Lane, int, array[int]]] = []
        """Messages that are ready, with their lane and cost"""

    def read_head(self, record: bytes) -> None:
        queue = self._queue
        self.head = codec.head_of(record)
        self.weight, self.cost, throttle_keys = codec.read_head(self.head)
        if queue.record.source:  # dead letters keep their throttle keys, but nothing holds them up
            throttle_keys = ()
        self.lane = queue.lane_cache.lane(self._key, self.priority, throttle_keys)
        self.ready = array("Q")
        self._runs.append((self.lane, self.cost, self.ready))

    def take_in(self) -> None:
        for lane, cost, seqs in self._runs:
            self._queue.know(lane.key)
            if cost == 1:
                self._queue.make_many_ready(lane, seqs)
            else:
                for seq in seqs:
                    self._queue.make_ready(lane, seq, cost)


def read_some(loadings: dict[str, Loading]) -> QueueState:
    """Read some more of the queue whose turn it is, and return that queue. Between ticks.

    Raises StoreCorrupt or StoreFailed.
    """
    name, loading = next(iter(loadings.items()))
    with unreadable_as_corrupt():
        more = loading.read(LOADED_AT_ONCE, BYTES_AT_ONCE)
    loading.turn -= 1
    if not more or not loading.turn:
        del loadings[name]
    if more and not loading.turn:
        loading.rest()
        loadings[name] = loading
    return loading.queue


def let_go(loadings: dict[str, Loading]) -> None:
    """Hold nothing of the store until the next tick: it may have to be opened anew, and cannot be while it is read."""
    for loading in loadings.values():
        loading.rest()


@contextmanager
def unreadable_as_corrupt() -> Iterator[None]:
    """Raises StoreCorrupt for what the store cannot contain."""
    try:
        yield
    except (ValueError, LookupError, struct.error) as cause:
        raise StoreCorrupt("the store is damaged: it contains an entry that cannot be read") from cause
