"""How much may go out: token buckets and caps on what is in flight, by throttle key.

A throttle key is a name that messages carry ("provider:aws", "tenant:42"). What it allows is a `Limit`, set at runtime:
a rate of tokens, of which a message takes as many as it costs, and a cap on messages that consumers hold at one time.
A key without a limit allows everything.

Rules of this file:
- a message goes out when all of its throttles let it: first all are asked, then all are charged, so a refusal costs
  nothing;
- no more than `rate * seconds + burst` tokens are spent in any stretch of time; a message that costs more than the
  burst passes when its bucket is full and leaves a debt, which is paid back before anybody else passes;
- what is in flight is counted for every key, so that a cap that is set later is right from the start;
- time is an argument, in nanoseconds. A clock that steps back gives nobody tokens and makes nobody wait for it.

Tokens are whole numbers of a very small unit: nothing is rounded, so nothing drifts.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

from fila.core.errors import InvalidArgument, quoted

MIN_RATE, MAX_RATE = 1e-6, 1e12
"""Tokens a second: from one in eleven days."""
MAX_BURST = 1e12
MAX_IN_FLIGHT = 1_000_000_000

EVERYTHING = 1 << 62
"""How many messages pass where nothing limits them."""

MANY_DEAD = 64
"""So many alarms that do not count any more are always tolerated before the others are put in order anew."""

_PER_TOKEN = 10**18
_PER_RATE = 10**9  # rate * nanoseconds * this = units
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,20}", re.ASCII)
_BARE = ("rate", "burst")


def _part(lowest: float, highest: float, *, whole: bool = False) -> Any:
    """A part of a limit, which may be missing: a number from `lowest` to `highest`."""
    return field(default=None, metadata={"range": (lowest, highest), "whole": whole})


@dataclass(frozen=True, slots=True)
class Limit:
    """What a throttle key allows. Each part may be missing, but not all of them. Its text names them as the fields."""

    rate: float | None = _part(MIN_RATE, MAX_RATE)
    """Tokens a second."""
    burst: float | None = _part(1, MAX_BURST)
    """Tokens that can be saved up; one second's worth, and at least 1, unless given."""
    max_in_flight: int | None = _part(1, MAX_IN_FLIGHT, whole=True)
    """Messages that consumers hold at one time."""

    def __post_init__(self) -> None:
        """Raises InvalidArgument."""
        given = {name: value for name in _PARTS if (value := getattr(self, name)) is not None}
        if "burst" in given and "rate" not in given:
            raise InvalidArgument("a throttle's burst needs a rate")
        if not given:
            raise InvalidArgument("a throttle must have a limit: give a rate, a max_in_flight, or both")
        for name, value in given.items():
            lowest, highest = _PARTS[name]["range"]
            if not lowest <= value <= highest:  # also refuses NaN
                raise InvalidArgument(f"a throttle's {name} must be from {lowest:g} to {highest:g}, not {value:g}")

    @property
    def capacity(self) -> float:
        """How many tokens its bucket holds."""
        return self.burst if self.burst is not None else max(1.0, self.rate or 1.0)

    @classmethod
    def parse(cls, text: str) -> "Limit":
        """Read `rate=10,burst=20,max_in_flight=5`, or `10,20`: rate and burst. Raises InvalidArgument."""
        parts: dict[str, float | int] = {}
        for part in _named(text).split(","):
            name, given, value = (word.strip() for word in part.partition("="))
            if name not in _PARTS or not given:
                *others, last = _PARTS
                raise InvalidArgument(
                    f"unknown part {quoted(part)} in a throttle; allowed are {', '.join(others)} and {last}, "
                    "written like rate=10,burst=20,max_in_flight=5"
                )
            if name in parts:
                raise InvalidArgument(f"a throttle's {name} is given twice")
            whole = _PARTS[name]["whole"]
            if not (_WHOLE if whole else _NUMBER).fullmatch(value):
                kind = "whole number" if whole else "number"
                raise InvalidArgument(f"a throttle's {name} must be a positive {kind}, not {quoted(value)}")
            parts[name] = int(value) if whole else float(value)
        return cls(**parts)  # type: ignore[arg-type]  # what must be whole is

    def __str__(self) -> str:
        parts = [(name, getattr(self, name)) for name in _PARTS]
        return ",".join(f"{name}={repr(value).removesuffix('.0')}" for name, value in parts if value is not None)


_PARTS = {part.name: part.metadata for part in fields(Limit)}


def _named(text: str) -> str:
    """What is written as bare numbers, rate and then burst, with their names."""
    words = [word.strip() for word in text.split(",")]
    if len(words) != len(_BARE) or not all(_NUMBER.fullmatch(word) for word in words):
        return text
    return ",".join(f"{name}={word}" for name, word in zip(_BARE, words, strict=True))


class TokenBucket:
    """Gains `rate` tokens a second, never holds more than `burst`. Full when new."""

    __slots__ = ("_at", "_full", "_level", "_rate")

    def __init__(self, rate: float, burst: float, now: int) -> None:
        self._rate = round(rate * _PER_RATE)
        self._full = self._level = round(burst * _PER_TOKEN)
        self._at = now

    @property
    def level(self) -> int:
        """What it holds, in its own small unit."""
        return self._level

    def hold(self, level: int) -> None:
        """Hold so much from now on, as far as it fits."""
        self._level = min(level, self._full)

    def change(self, rate: float, burst: float, now: int) -> None:
        """Go on at another rate with the tokens there are."""
        self._refill(now)
        self._rate = round(rate * _PER_RATE)
        self._full = round(burst * _PER_TOKEN)
        self._level = min(self._level, self._full)

    def tokens(self, now: int) -> float:
        """How many there are; less than 0 while a debt is paid back."""
        self._refill(now)
        return self._level / _PER_TOKEN

    def messages(self, now: int) -> int:
        """How many messages of cost 1 can be paid."""
        if now != self._at:
            self._refill(now)
        level = self._level
        return level // _PER_TOKEN if level > 0 else 0

    def holds(self, n: int, now: int, besides: int = 0) -> bool:
        """Whether `n` tokens can be taken while `besides` others are spoken for."""
        if now != self._at:
            self._refill(now)
        return self._level >= min(n * _PER_TOKEN, self._full) + besides * _PER_TOKEN

    def try_consume(self, n: int, now: int) -> bool:
        """Take `n` tokens if they are there, else nothing. More than the burst can be taken from a full bucket."""
        if now != self._at:
            self._refill(now)
        price = n * _PER_TOKEN
        if self._level < price and self._level < self._full:
            return False
        self._level -= price
        return True

    def spend(self, n: int) -> None:
        """Take tokens that were found to be there."""
        self._level -= n * _PER_TOKEN

    def refund(self, n: int) -> None:
        """Put tokens back that were taken and not used, as far as they fit: others may have come meanwhile."""
        self._level = min(self._full, self._level + n * _PER_TOKEN)

    def ready_at(self, n: int, now: int) -> int:
        """The first point in time at which `n` tokens can be taken, if nobody takes any before."""
        return self.ready_after(0, n, now)

    def ready_after(self, before: int, n: int, now: int) -> int:
        """The first point in time at which `n` tokens can be taken if `before` others are taken first."""
        self._refill(now)
        missing = before * _PER_TOKEN + min(n * _PER_TOKEN, self._full) - self._level
        return now - (-missing // self._rate) if missing > 0 else now

    def _refill(self, now: int) -> None:
        gained = (now - self._at) * self._rate
        if gained > 0:
            level = self._level + gained
            self._level = min(self._full, level)
        self._at = now


class Waiting(Protocol):
    """Messages of one queue that wait for a throttle."""

    def notice(self) -> str:
        """Take note that the throttle may let something pass. Returns the name of the queue."""


class Figures(NamedTuple):
    """All that a throttle counts: what operators are told, and what is as before when a passing is undone."""

    tokens: float | None
    """None without a rate"""
    in_flight: int
    passed: int
    held_up: int


class Throttle:
    """One throttle key: its limit, what it has let pass, and who waits for it.

    Kept alive by its limit and by the lanes that use it; forgotten with the last of them.
    """

    __slots__ = (
        "__weakref__",
        "_manager",
        "alarm",
        "bucket",
        "cap",
        "held_up",
        "in_flight",
        "limit",
        "name",
        "passed",
        "waiting",
    )

    def __init__(self, name: str, manager: "ThrottleManager") -> None:
        self.name = name
        self.limit: Limit | None = None
        self.bucket: TokenBucket | None = None
        self.cap: int | None = None
        self.in_flight = 0
        self.passed = 0
        """Messages that went through since the broker started."""
        self.held_up = 0
        """How often it did not let a fairness key go on."""
        self.waiting: dict[Waiting, None] = {}
        """One for each queue; who was let pass last stands last."""
        self.alarm: int | None = None
        """When those that wait will be told, as far as that is a matter of time."""
        self._manager = manager

    away = False
    """Whether another process lets its messages pass now, and this one none (`shared_throttle.py`)."""

    def __repr__(self) -> str:
        return f"Throttle({self.name!r}, {self.limit})"

    def figures(self, now: int) -> Figures:
        tokens = self.bucket.tokens(now) if self.bucket is not None else None
        return Figures(tokens, self.in_flight, self.passed, self.held_up)

    def room(self, now: int) -> int:
        """How many messages of cost 1 may pass."""
        bucket, cap = self.bucket, self.cap
        count = EVERYTHING if bucket is None else bucket.messages(now)
        return count if cap is None else max(0, min(count, cap - self.in_flight))

    def admits(self, cost: int, now: int, besides: int = 0) -> bool:
        """Whether a message may pass while `besides` others of cost 1 are about to."""
        if self.cap is not None and self.in_flight + besides >= self.cap:
            return False
        return self.bucket is None or self.bucket.holds(cost, now, besides)

    def ready_at(self, cost: int, now: int) -> int | None:
        """When a message may pass at the earliest; None when that is not a matter of time."""
        if self.cap is not None and self.in_flight >= self.cap:
            return None
        return now if self.bucket is None else self.bucket.ready_at(cost, now)

    def charge(self, count: int, cost: int) -> None:
        """Let messages pass that were found to be allowed."""
        self.in_flight += count
        self.passed += count
        bucket = self.bucket
        if bucket is not None:
            bucket.spend(count * cost)

    def refund(self, cost: int) -> None:
        """Undo that a message passed.

        Nobody is told: those that wait stand as they stood before it passed. A look that is undone each time would
        otherwise have its queue looked at again, without end.
        """
        if self.bucket is not None:
            self.bucket.refund(cost)
        self.passed -= 1
        self.in_flight -= 1

    def release(self) -> None:
        """A message that had passed is no longer in flight."""
        self.in_flight -= 1
        if self.waiting:
            self._manager.notify(self)


class ThrottleManager:
    """All throttles of a broker, by key, and the time at which each may let something pass again."""

    __slots__ = ("_alarms", "_changed", "_dead", "_known", "_last", "_limited", "_serial")

    def __init__(self) -> None:
        self._known: WeakValueDictionary[str, Throttle] = WeakValueDictionary()
        self._limited: dict[str, Throttle] = {}
        self._changed: dict[Throttle, None] = {}
        """Those that may let something pass now."""
        self._alarms: list[tuple[int, int, Throttle]] = []
        self._dead = self._serial = 0
        self._last = 0

    def find(self, key: str) -> Throttle:
        """The throttle of a key: the same one for as long as anybody uses it."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(key)
        return found

    def _make(self, key: str) -> Throttle:
        return Throttle(key, self)

    def find_all(self, keys: Iterable[str]) -> tuple[Throttle, ...]:
        return tuple([self.find(key) for key in keys])

    def set(self, key: str, limit: Limit, now: int) -> None:
        """Limit a key, from the next look at the queues on. Tokens that a bucket holds stay, as far as they fit."""
        throttle = self._limited[key] = self.find(key)
        throttle.limit = limit
        throttle.cap = limit.max_in_flight
        if limit.rate is None:
            throttle.bucket = None
        else:
            burst = limit.capacity
            if throttle.bucket is None:
                throttle.bucket = TokenBucket(limit.rate, burst, now)
            else:
                throttle.bucket.change(limit.rate, burst, now)
        self.notify(throttle)

    def remove(self, key: str) -> bool:
        """Let a key pass without limit. Returns whether it had one."""
        throttle = self._limited.pop(key, None)
        if throttle is None:
            return False
        throttle.limit = throttle.bucket = throttle.cap = None
        self.notify(throttle)
        return True

    def limited(self) -> list[Throttle]:
        """All throttles that have a limit."""
        return list(self._limited.values())

    def limits(self) -> dict[str, Limit]:
        """All limits that are set, by key."""
        return {key: throttle.limit for key, throttle in sorted(self._limited.items()) if throttle.limit is not None}

    def notify(self, throttle: Throttle) -> None:
        """Have those that wait for a throttle look at it again."""
        self._changed[throttle] = None

    def alarm(self, throttle: Throttle, at: int) -> None:
        """Have those that wait for a throttle look at it again at a point in time, or earlier."""
        if throttle.alarm is None or at < throttle.alarm:
            self._dead += throttle.alarm is not None
            throttle.alarm = at
            self._serial += 1
            heappush(self._alarms, (at, self._serial, throttle))
            if self._dead > max(MANY_DEAD, len(self._alarms) // 2):
                self._alarms = [entry for entry in self._alarms if entry[2].alarm == entry[0]]
                heapify(self._alarms)
                self._dead = 0

    def due(self, now: int) -> list[str]:
        """The queues that must be looked at, in turn for each throttle. Says each only once."""
        if now < self._last:  # the clock was set back: no alarm can be trusted
            self._changed.update((throttle, None) for _, _, throttle in self._alarms)
            self._clear_alarms()
        self._last = now
        alarms = self._alarms
        while alarms and alarms[0][0] <= now:
            at, _, throttle = heappop(alarms)
            if throttle.alarm == at:
                self._changed[throttle] = None
                throttle.alarm = None
            else:
                self._dead -= 1
        if not self._changed:
            return []
        queues = [waiting.notice() for throttle in self._changed for waiting in throttle.waiting]
        self._changed.clear()
        return list(dict.fromkeys(queues))

    def next_wakeup(self) -> int | None:
        """When `due` has something to say again as far as that is a matter of time."""
        alarms = self._alarms
        while alarms and alarms[0][2].alarm != alarms[0][0]:
            heappop(alarms)
            self._dead -= 1
        return alarms[0][0] if alarms else None

    def _clear_alarms(self) -> None:
        for _, _, throttle in self._alarms:
            throttle.alarm = None
        self._alarms.clear()
        self._dead = 0
