"""Producers, consumers and a clock around a scheduler, for properties of everything that decides what goes next."""

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush

from fila.core.lane import Lane, Taken
from fila.core.throttle import Limit
from tests.support.scheduling import NORMAL, Rings

MS = 1_000_000
SECOND = 1000 * MS


@dataclass(frozen=True)
class Work:
    """One message to be sent."""

    key: str
    weight: int = 1
    cost: int = 1
    priority: int = NORMAL
    throttles: tuple[str, ...] = ()
    delay_ms: int = 0
    failures: int = 0
    """How often it is given back before it succeeds."""


@dataclass
class World:
    """Delivers work until all of it has succeeded, and checks every single delivery."""

    rings: Rings
    limits: dict[str, Limit] = field(default_factory=dict)
    works: dict[int, Work] = field(default_factory=dict)
    eligible: dict[tuple[str, int, tuple[str, ...]], set[int]] = field(default_factory=lambda: defaultdict(set))
    delayed: list[tuple[int, int, Lane]] = field(default_factory=list)
    held: list[tuple[int, int, Taken]] = field(default_factory=list)
    """What consumers work on, and until when."""
    failed: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    done: list[int] = field(default_factory=list)
    passed: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """When how many tokens of each throttle were spent."""
    spent: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """By fairness key"""
    work_ms: int = 30

    def limit(self, key: str, text: str) -> None:
        self.limits[key] = Limit.parse(text)
        self.rings.limit(**{key: text})

    def send(self, work: Work) -> None:
        if not work.delay_ms:
            seq = self.rings.push(
                work.key, 1, weight=work.weight, cost=work.cost, priority=work.priority, throttles=work.throttles
            )
            self.works[seq] = work
            self._lane_of(work).add(seq)
            return
        seq, lane = self.rings.make(work.key, work.weight, work.priority, work.throttles)
        self.works[seq] = work
        heappush(self.delayed, (self.rings.now + work.delay_ms * MS, seq, lane))

    def _lane_of(self, work: Work) -> set[int]:
        return self.eligible[work.key, work.priority, work.throttles]

    def step(self, count: int) -> int:
        """Do what is due at this time, then deliver. Returns how many messages went out."""
        now = self.rings.now
        while self.delayed and self.delayed[0][0] <= now:
            _, seq, lane = heappop(self.delayed)
            self.rings.put(lane, seq, self.works[seq].cost)
            self._lane_of(self.works[seq]).add(seq)
        while self.held and self.held[0][0] <= now:
            self._finish(heappop(self.held)[2])
        messages = self.rings.select(count).messages
        for message in messages:
            self._check(message)
            heappush(self.held, (now + self.work_ms * MS, message[1], message))
        return len(messages)

    def _finish(self, message: Taken) -> None:
        seq = message[1]
        work = self.works[seq]
        if self.failed[seq] == work.failures:
            self.rings.release(message)
            self.done.append(seq)
        elif self.failed[seq] % 2:
            self.failed[seq] += 1
            self.rings.release(message)
            heappush(self.delayed, (self.rings.now + 50 * MS, seq, message[0]))
        else:
            self.failed[seq] += 1
            self.rings.put_back(message)
            self._lane_of(work).add(seq)

    def _check(self, message: Taken) -> None:
        lane, seq, cost = message
        work = self.works[seq]
        names = tuple(throttle.name for throttle in lane.throttles)
        assert (lane.key.name, lane.priority, names, cost) == (work.key, work.priority, work.throttles, work.cost)
        waiting = self._lane_of(work)
        assert seq == min(waiting), "order inside a lane"
        waiting.remove(seq)
        self.spent[work.key] += cost
        for name in names:
            self.passed[name].append((self.rings.now, cost))
            throttle = self.rings.throttles.find(name)
            limit = self.limits.get(name)
            if limit is not None and limit.max_in_flight is not None:
                assert throttle.in_flight <= limit.max_in_flight

    def run(self, *, per_step: int = 10, step_ms: int = 10, patience_ms: int = 600_000) -> None:
        """Until everything has succeeded. Fails when that takes too long."""
        end = self.rings.now + patience_ms * MS
        while len(self.done) < len(self.works):
            assert self.rings.now < end, "somebody starves"
            self.step(per_step)
            self.rings.now += step_ms * MS
        assert sorted(self.done) == sorted(self.works), "each message succeeds once"

    def check_rates(self) -> None:
        """In no stretch of time were more tokens spent than come in it and had been saved before."""
        for name, spendings in self.passed.items():
            limit = self.limits.get(name)
            if limit is None or limit.rate is None:
                continue
            burst = limit.burst if limit.burst is not None else max(1.0, limit.rate)
            total, most = 0.0, -1e18  # the largest of what was spent before a time, less what comes until then
            for at, cost in spendings:
                come = limit.rate * at / SECOND
                most = max(most, come - total)
                total += min(cost, burst)
                assert total - come + most <= burst + 1e-6, f"{name} went above its rate"
                total += cost - min(cost, burst)
