"""Where the wait of a delivered message went.

A delivery's wait begins when the message was enqueued, or, if it was delivered before, when it was handed out the last
time, or when it came back from the dead letters. Its parts follow each other and sum up to the whole:

    delay         until its time had come, for a message that was enqueued with a delay
    retry         until it was ready again, for a message that came back
    no_consumer   while no consumer of the queue had credit, or the queue was paused
    throttle      while one of its throttles held it up, by throttle key
    fair_share    the rest: while others had their turn, and its own key's earlier messages

One message in `SAMPLE` is accounted for, because accounting for all would cost more than it tells.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from fila.core.fair_key import FairKey
from fila.core.lane import Lane, Taken, ThrottledLane

SAMPLE = 32
"""One message in so many is accounted for."""

MAX_KEYS = 1000
"""Fairness keys of one queue of which the ledger knows; those that were not served for longest are forgotten first."""

FEW_WAITS = 8
"""Waits of a key that are kept as they are, before they are summed up."""

MAX_STEPS = 2048
"""Changes that a timeline remembers. What lies before them counts as if it had been as on average."""

MAX_RETURNED = 100_000
"""Messages that are ready at a time of their own of which that is remembered."""

MAX_ASKED = 10_000
"""Messages of a queue whose waits can be asked for, and waits that are kept until somebody fetches them."""

MAX_SEGMENTS = 64
"""Stretches in which a throttle held a lane up that are remembered."""

_NOBODY: Mapping[str, int] = MappingProxyType({})

PARTS = ("delay", "retry", "no_consumer", "throttle", "fair_share")


class Timeline:
    """For how long something was so, between any two points in time."""

    __slots__ = ("_since", "_sums", "_times", "began", "on")

    def __init__(self, now: int, *, on: bool) -> None:
        self.began = now
        self.on = on
        self._since = now
        self._times = [now]
        """The times at which it changed"""
        self._sums = [0]
        """For how long it had been on, in all, up to each of these times"""

    def set(self, on: bool, now: int) -> None:
        if on == self.on or now < self._since:
            return
        self._sums.append(self.total(now))
        self._times.append(now)
        self.on, self._since = on, now
        if len(self._times) > MAX_STEPS:
            del self._times[1 : MAX_STEPS // 2], self._sums[1 : MAX_STEPS // 2]

    def total(self, now: int) -> int:
        """Until now, which is not before the last change."""
        return self._sums[-1] + (max(0, now - self._since) if self.on else 0)

    def between(self, start: int, end: int) -> int:
        """The time from `start` to `end`, which is now or lies in the past."""
        return max(0, self._until(end) - self._until(start)) if end > start else 0

    def _until(self, when: int) -> int:
        if when >= self._since:
            return self.total(when)
        at = bisect_right(self._times, when) - 1
        if at < 0:
            return 0
        step = self._times[at + 1] - self._times[at]
        grown = self._sums[at + 1] - self._sums[at]
        return self._sums[at] + grown * (when - self._times[at]) // step if step else self._sums[at]


class Holdups:
    """The stretches in which throttles held a lane up, the latest at the end."""

    __slots__ = ("_by", "_since", "segments")

    def __init__(self) -> None:
        self.segments: list[tuple[int, int, str]] = []
        """Begin, end, throttle key"""
        self._by = ""
        self._since = 0

    def set(self, throttle: str, now: int) -> None:
        """From now on this throttle holds it up; empty for none."""
        if throttle == self._by:
            return
        if self._by and now > self._since:
            self._close(now)
        self._by, self._since = throttle, now

    def _close(self, now: int) -> None:
        last = self.segments[-1] if self.segments else None
        if last is not None and last[1:] == (self._since, self._by):
            self.segments[-1] = (last[0], now, self._by)
        else:
            self.segments.append((self._since, now, self._by))
            del self.segments[:-MAX_SEGMENTS]

    def within(self, start: int, now: int) -> list[tuple[int, int, str]]:
        """What lies between `start` and now."""
        found = [(max(begin, start), end, key) for begin, end, key in self.segments if end > start]
        if self._by and now > max(self._since, start):
            found.append((max(self._since, start), now, self._by))
        return found


class Wait(NamedTuple):
    """One delivery's wait in nanoseconds, split up. The parts sum up to the whole."""

    whole: int
    delay: int = 0
    retry: int = 0
    no_consumer: int = 0
    throttle: Mapping[str, int] = _NOBODY
    fair_share: int = 0


@dataclass(slots=True)
class WaitSums:
    """The waits of several deliveries together."""

    count: int = 0
    whole: int = 0
    parts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    throttles: dict[str, int] = field(default_factory=dict)
    histogram: dict[int, int] = field(default_factory=dict)
    """Deliveries by the bit length of their wait in microseconds: 10 means at least 512 and less than 1024."""

    def add(self, wait: Wait) -> None:
        self.count += 1
        self.whole += wait.whole
        self.parts["delay"] += wait.delay
        self.parts["retry"] += wait.retry
        self.parts["no_consumer"] += wait.no_consumer
        self.parts["fair_share"] += wait.fair_share
        for key, ns in wait.throttle.items():
            self.parts["throttle"] += ns
            if key in self.throttles or len(self.throttles) < MAX_SEGMENTS:
                self.throttles[key] = self.throttles.get(key, 0) + ns
        bucket = (wait.whole // 1000).bit_length()
        self.histogram[bucket] = self.histogram.get(bucket, 0) + 1

    def quantile(self, part: float) -> int:
        """A wait in nanoseconds that is not exceeded by this part of the deliveries, to a factor of two."""
        left = part * self.count
        for bucket, count in sorted(self.histogram.items()):
            left -= count
            if left <= 0:
                return (1 << bucket) * 1000
        return 0


class Ledger:
    """The waits of one queue."""

    __slots__ = ("_asked", "_keys", "_returned", "_skip", "_told", "idle", "sums")

    def __init__(self, now: int) -> None:
        self.idle = Timeline(now, on=True)
        """While no consumer had credit."""
        self.sums = WaitSums()
        self._keys: OrderedDict[str, WaitSums | list[Wait]] = OrderedDict()
        """Of very many keys, most are forgotten after a few waits: sums are made when somebody asks, or for more."""
        self._returned: dict[int, tuple[int, int]] = {}
        """When the wait of a message began and when it was ready, where that is not when it was enqueued."""
        self._skip = SAMPLE
        self._asked: set[int] = set()
        """Messages that wait still and whose wait somebody wants to know."""
        self._told: OrderedDict[int, Wait] = OrderedDict()
        """Those waits, once they are over. Not all are fetched: some messages are delivered in a claim."""

    def ask(self, seq: int) -> None:
        """Account for a message whether or not it is one in `SAMPLE`."""
        if len(self._asked) < MAX_ASKED:
            self._asked.add(seq)

    def answer(self, seq: int) -> Wait | None:
        """How a message that was asked for had waited; None if it was not, or waits still."""
        return self._told.pop(seq, None)

    def of_key(self, name: str) -> WaitSums | None:
        """The waits of a fairness key. The same object as long as the key is known."""
        known = self._keys.get(name)
        if not isinstance(known, list):
            return known
        sums = self._keys[name] = WaitSums()
        for wait in known:
            sums.add(wait)
        return sums

    def came_back(self, seq: int, leased: int, ready: int) -> None:
        """A message that was delivered before is ready again, now or later."""
        if self._told and self._told.pop(seq, None) is not None:  # nobody fetched it: the next wait is asked for
            self.ask(seq)
        if len(self._returned) < MAX_RETURNED:
            self._returned[seq] = (leased, ready)

    def begin(self, seqs: Sequence[int], now: int) -> None:
        """Messages that have their numbers from earlier wait from now on."""
        room = max(0, MAX_RETURNED - len(self._returned))
        self._returned.update(dict.fromkeys(seqs[:room], (now, now)))

    def was_delayed(self, seq: int, due: int) -> None:
        """A message is ready because its time has come."""
        if seq not in self._returned and len(self._returned) < MAX_RETURNED:
            self._returned[seq] = (seq, due)

    def forget(self, seqs: Collection[int]) -> None:
        """Messages were taken away."""
        if self._asked:
            self._asked.difference_update(seqs)
        if self._returned:
            for seq in seqs:
                self._returned.pop(seq, None)

    def note_throttles(self, key: FairKey, now: int) -> None:
        """Take note of which lanes of a key its throttles hold up."""
        for lane in key.lanes.values():
            gate = lane.gate
            if not isinstance(lane, ThrottledLane):
                continue
            if lane.holdups is None:
                if gate is None:
                    continue
                lane.holdups = Holdups()
            lane.holdups.set(gate.throttle.name if gate is not None else "", now)

    def deliver(self, messages: list[Taken], attempts: dict[int, int], now: int) -> None:
        """Account for some of the messages that are delivered now."""
        at = self._skip
        while at <= len(messages):
            lane, seq, _ = messages[at - 1]
            wait = self.split(lane, seq, seq in attempts, now)
            self.sums.add(wait)
            self._add_to_key(lane.key.name, wait)
            at += SAMPLE
        self._skip = at - len(messages)
        if self._asked:
            for lane, seq, _ in messages:
                if seq in self._asked:
                    self._tell(seq, self.split(lane, seq, seq in attempts, now))
        if self._returned:
            for _, seq, _ in messages:
                self._returned.pop(seq, None)

    def _tell(self, seq: int, wait: Wait) -> None:
        self._asked.remove(seq)
        self._told[seq] = wait
        if len(self._told) > MAX_ASKED:
            self._told.popitem(last=False)

    def split(self, lane: Lane, seq: int, came_back: bool, now: int) -> Wait:
        """Where the wait of a message went that is delivered now."""
        began, ready = self._beginning(seq, now)
        before = ready - began
        idle = self.idle.between(ready, now)
        throttle = self._throttled(lane.holdups, ready, now) if lane.holdups is not None else _NOBODY
        return Wait(
            whole=now - began,
            delay=0 if came_back else before,
            retry=before if came_back else 0,
            no_consumer=idle,
            throttle=throttle,
            fair_share=max(0, now - ready - idle - sum(throttle.values())),
        )

    def _throttled(self, holdups: Holdups, ready: int, now: int) -> Mapping[str, int]:
        """For how long each throttle held a message up while a consumer had credit."""
        found: dict[str, int] = {}
        for start, end, key in holdups.within(ready, now):
            ns = end - start - self.idle.between(start, end)
            if ns > 0:
                found[key] = found.get(key, 0) + ns
        return found

    def held_up(self, lane: Lane, seq: int, now: int) -> int:
        """For how long throttles held up a message that is delivered now, whether or not a consumer had credit."""
        if lane.holdups is None:
            return 0
        _, ready = self._beginning(seq, now)
        return sum(end - start for start, end, _ in lane.holdups.within(ready, now))

    def _beginning(self, seq: int, now: int) -> tuple[int, int]:
        """When a wait that ends now began, and when the message was ready. Numbers of leases may be ahead of time."""
        began, ready = self._returned.get(seq, (seq, seq))
        began = min(began, now)
        return began, min(max(began, ready), now)

    def _add_to_key(self, name: str, wait: Wait) -> None:
        known = self._keys.get(name)
        if known is None:
            self._keys[name] = [wait]
            if len(self._keys) > MAX_KEYS:
                self._keys.popitem(last=False)
            return
        self._keys.move_to_end(name)
        if isinstance(known, WaitSums):
            known.add(wait)
            return
        known.append(wait)
        if len(known) == FEW_WAITS:
            self.of_key(name)
