"""Who has the bucket of a throttle key: one worker at a time, in turn. Decided by worker 0.

Rules of this file:
- A key that one worker uses stays there: nothing is said. A worker that wants it asks; whoever has it and does not want
  it gives it back at once, and otherwise at the end of its turn.
- **In each turn all keys go to the workers in one order, which is drawn anew.** So a message with several keys gets
  them together, and tokens that come at regular times do not always come in the turn of the same worker.
- A worker that is lost gives its buckets back by silence. For `LEASE_NS` nobody gets them, by when it spends nothing
  more; then they go on empty. What it may have in flight counts until it says what it has.
- Nobody gets a key with a cap before all workers have said what they have in flight of it.

No I/O. Time is an argument, in nanoseconds; `send` takes a worker and what is said to it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from fila.core.shared_throttle import Given
from fila.core.throttle import Limit, TokenBucket

TURN_NS: Final = 50_000_000
LEASE_NS: Final = 2_000_000_000
_SOMEBODY: Final = -1
"""A worker to which an earlier worker 0 has given a key"""
GAINS_NS: Final = 1_500_000_000
"""How long a worker spends after it has begun to ask for a sign of life. Shorter than the lease, which begins later."""

Send = Callable[[int, dict[str, Any]], None]


@dataclass(slots=True)
class _Key:
    """One throttle key that has a limit."""

    limit: Limit | None
    """None: it was taken away, and whoever has the bucket has not given it back"""
    bucket: TokenBucket | None
    """While nobody has it"""
    holder: int | None = None
    lost: int | None = None
    """Who had it and was lost"""
    free_at: int = 0
    """Nobody gets it before"""
    anew: bool = False
    """The limit was taken away and set again: its bucket is full when it comes back"""
    asked_back: bool = False
    """Its holder was told that its turn has ended"""
    wanted: set[int] = field(default_factory=set)
    in_flight: dict[int, int] = field(default_factory=dict)
    """Of each worker that has said so; of the holder what it may have"""


class Turns:
    """The buckets of all keys."""

    def __init__(self, workers: int, send: Send, now: int, *, begins_empty: bool, random: Random | None = None) -> None:
        self._workers = workers
        self._send = send
        self._keys: dict[str, _Key] = {}
        self._wanted: set[str] = set()
        """Keys that somebody waits for"""
        self._known: set[int] = set()
        """Workers that have been here since this began"""
        self._settled_at = now + LEASE_NS if begins_empty else now
        """When those that an earlier worker 0 has given away gain no more tokens"""
        self._begins_empty = begins_empty
        self._random = random or Random()
        self._order = list(range(workers))

    # The limits.

    def limit(self, name: str, limit: Limit, now: int) -> None:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = _Key(limit, _bucket(limit, now))
            if self._begins_empty and now < self._settled_at:
                key.lost, key.free_at = _SOMEBODY, self._settled_at
            return
        before, key.limit = key.limit, limit
        if before is None:
            key.anew = True
        if key.holder is None:
            if key.bucket is None or limit.rate is None:
                key.bucket = _bucket(limit, now)
            else:
                key.bucket.change(limit.rate, limit.capacity, now)
        if limit.max_in_flight is not None and (before is None or before.max_in_flight is None):
            key.in_flight.clear()  # nobody has said it while it did not matter
            self._take_back(name, key)
        self._give(name, key, now)

    def unlimit(self, name: str) -> None:
        """A key whose bucket somebody has is kept until that is back: it may be limited again meanwhile."""
        key = self._keys.get(name)
        if key is None:
            return
        key.limit = key.bucket = None
        key.wanted.clear()
        if key.holder is None:
            del self._keys[name]
        else:
            self._take_back(name, key)

    # What workers say.

    def hello(self, worker: int, in_flight: Mapping[str, int], now: int) -> None:
        """A worker is here, and has no bucket."""
        self._known.add(worker)
        settled = len(self._known) == self._workers
        if settled:
            self._settled_at = min(self._settled_at, now)
        for name, key in list(self._keys.items()):
            if key.holder == worker:
                self._lose(name, key, worker, now)
            elif key.lost == worker or (key.lost == _SOMEBODY and settled):
                key.free_at = min(key.free_at, now)
            key.in_flight[worker] = in_flight.get(name, 0)
            self._give(name, key, now)

    def lost(self, worker: int, now: int) -> None:
        """A worker is not there any more."""
        for name, key in list(self._keys.items()):
            key.wanted.discard(worker)
            if key.holder == worker:
                most = key.limit.max_in_flight if key.limit is not None else None
                key.in_flight[worker] = 0 if most is None else most
                self._lose(name, key, worker, now + LEASE_NS)

    def want(self, worker: int, name: str, now: int) -> None:
        key = self._keys.get(name)
        if key is None or key.limit is None or key.holder == worker:
            return
        self._wants(worker, name, key)
        if key.holder is None:
            self._give(name, key, now)
        elif not key.asked_back:
            self._send(key.holder, {"recall": name, "if_idle": True})

    def gave(self, worker: int, name: str, given: Given, now: int) -> None:
        """A worker has given a bucket back, or says that it has none."""
        key = self._keys.get(name)
        if key is None:
            return
        key.in_flight[worker] = given.in_flight
        if given.wanted and key.limit is not None and key.holder == worker:
            self._wants(worker, name, key)
        if key.holder == worker:
            key.holder, key.asked_back = None, False
            key.bucket = _bucket(key.limit, now)
            if key.bucket is not None and not key.anew:
                key.bucket.hold(given.level or 0)
            key.anew = False
            self._give(name, key, now)
            self._forget(name, key)
        else:
            self._elsewhere_changed(name, key, now)

    def flies(self, worker: int, name: str, in_flight: int, now: int) -> None:
        """A worker has so many messages of a key in flight."""
        key = self._keys.get(name)
        if key is not None:
            key.in_flight[worker] = in_flight
            if key.holder != worker:
                self._elsewhere_changed(name, key, now)

    def _elsewhere_changed(self, name: str, key: _Key, now: int) -> None:
        if key.holder is None:
            self._give(name, key, now)
        elif key.limit is not None and key.limit.max_in_flight is not None:
            self._send(key.holder, {"elsewhere": name, "n": self._elsewhere(key, key.holder)})

    # Turns.

    @property
    def contested(self) -> bool:
        """Whether somebody waits for a key: then turns go on."""
        return bool(self._wanted)

    def next_turn(self, now: int) -> None:
        """The end of a turn: whoever has what another wants gives it back, unless it is first in the next turn too."""
        self._random.shuffle(self._order)
        for name in list(self._wanted):
            key = self._keys.get(name)
            if key is None or not key.wanted:
                self._wanted.discard(name)
            elif key.holder is None:
                self._give(name, key, now)
            elif self._first(key.wanted | {key.holder}) != key.holder:
                self._take_back(name, key)

    def _wants(self, worker: int, name: str, key: _Key) -> None:
        key.wanted.add(worker)
        self._wanted.add(name)

    def _take_back(self, name: str, key: _Key) -> None:
        if key.holder is not None and not key.asked_back:
            key.asked_back = True
            self._send(key.holder, {"recall": name})

    def _give(self, name: str, key: _Key, now: int) -> None:
        """Give a bucket to the first of those who want it, if it is here."""
        limit = key.limit
        if limit is None or key.holder is not None or not key.wanted or now < key.free_at:
            return
        if limit.max_in_flight is not None and len(key.in_flight) < self._workers:
            return
        if key.lost is not None:  # whoever had it may have spent until then
            key.bucket, key.lost = _bucket(limit, key.free_at), None
            if key.bucket is not None:
                key.bucket.hold(0)
        worker = self._first(key.wanted)
        key.wanted.discard(worker)
        level = 0
        if key.bucket is not None:
            key.bucket.tokens(now)  # those that have come until now
            level = key.bucket.level
        key.holder, key.asked_back = worker, False
        self._send(worker, {"grant": name, "level": level, "elsewhere": self._elsewhere(key, worker)})

    def _lose(self, name: str, key: _Key, worker: int, free_at: int) -> None:
        """Its holder is lost, and with it what the bucket holds."""
        key.holder, key.asked_back, key.lost, key.free_at = None, False, worker, free_at
        self._forget(name, key)

    def _forget(self, name: str, key: _Key) -> None:
        """A key whose limit was taken away, when nobody has its bucket."""
        if key.limit is None and key.holder is None:
            self._keys.pop(name, None)

    def _first(self, workers: set[int]) -> int:
        return next(worker for worker in self._order if worker in workers)

    def _elsewhere(self, key: _Key, worker: int) -> int:
        return sum(count for other, count in key.in_flight.items() if other != worker)


def _bucket(limit: Limit | None, now: int) -> TokenBucket | None:
    return None if limit is None or limit.rate is None else TokenBucket(limit.rate, limit.capacity, now)
