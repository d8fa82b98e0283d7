"""Throttles that several processes share: at any time one of them lets the messages of a key pass.

Rules of this file:
- **There is one bucket for a key.** It goes from process to process with the tokens it holds, so together they spend
  what one would. A process that does not have it lets nothing pass.
- Whoever has it counts what the others have in flight against the cap. They can only have less of it as time goes on,
  and say so.
- Whoever has it must hear from the one who gives it away, or it spends nothing more (`LeasedBucket`): the bucket of a
  process that stands still is given to another.

Who has it when is decided in `fila.cluster.turns`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from fila.core.throttle import MIN_RATE, Limit, Throttle, ThrottleManager, TokenBucket

NO_END: Final = 1 << 62
LOOK_AGAIN_NS: Final = 50_000_000
"""When a bucket without a lease is looked at again; it is told when it has one."""
STICKY_NS: Final = 200_000_000
"""A key that was asked for is wanted for so long, although nothing waits for it now: a message with several keys waits
for one of them at a time."""


@dataclass(slots=True)
class Lease:
    """Until when a process may spend what its buckets hold."""

    until: int


class LeasedBucket(TokenBucket):
    """Is used as long as the lease of its process lasts."""

    __slots__ = ("_lease",)

    def __init__(self, limit: Limit, now: int, level: int, lease: Lease) -> None:
        super().__init__(limit.rate or MIN_RATE, limit.capacity, now)
        self._lease = lease
        self.hold(level)

    def messages(self, now: int) -> int:
        return super().messages(now) if now <= self._lease.until else 0

    def holds(self, n: int, now: int, besides: int = 0) -> bool:
        return now <= self._lease.until and super().holds(n, now, besides)

    def try_consume(self, n: int, now: int) -> bool:
        return now <= self._lease.until and super().try_consume(n, now)

    def ready_after(self, before: int, n: int, now: int) -> int:
        at = super().ready_after(before, n, now)
        return at if now <= self._lease.until else max(at, now + LOOK_AGAIN_NS)


class SharedThrottle(Throttle):
    """One key, as this process knows it."""

    __slots__ = ("away", "elsewhere", "wanted_at")

    def __init__(self, name: str, manager: "SharedThrottles") -> None:
        super().__init__(name, manager)
        self.away = False
        """It has a limit, and another process may have the bucket"""
        self.elsewhere = 0
        """What the others have in flight"""
        self.wanted_at = -STICKY_NS
        self._manager: SharedThrottles

    def ready_at(self, cost: int, now: int) -> int | None:
        if self.away:
            self._manager.want(self, now)
            return None
        return super().ready_at(cost, now)

    def release(self) -> None:
        super().release()
        if self.limit is not None and self.limit.max_in_flight is not None:
            self._manager.freed(self)


class Given(NamedTuple):
    """What a process gives back with the bucket."""

    level: int | None
    """The tokens; None: it did not have the bucket, or there is no rate"""
    in_flight: int
    wanted: bool


class SharedThrottles(ThrottleManager):
    """All throttles of one of several processes."""

    def __init__(self) -> None:
        super().__init__()
        self.on_want: Callable[[str], None] = _nothing
        """Told of a key that is wanted, and not here"""
        self.on_freed: Callable[[str], None] = _nothing
        """Told of a key of which less is in flight"""
        self.on_limited: Callable[[str], None] = _nothing
        """Told of a key whose limit was set"""
        self._lease = Lease(NO_END)
        self._held: dict[str, SharedThrottle] = {}
        self._asked: set[str] = set()

    def _make(self, key: str) -> SharedThrottle:
        return SharedThrottle(key, self)

    def _find(self, key: str) -> SharedThrottle:
        found = self.find(key)
        assert isinstance(found, SharedThrottle)
        return found

    def set(self, key: str, limit: Limit, now: int) -> None:
        throttle = self._find(key)
        self._limited[key] = throttle
        throttle.limit = limit
        if key in self._held:
            level = 0
            if throttle.bucket is not None:
                throttle.bucket.tokens(now)  # those that have come until now
                level = throttle.bucket.level
            self._open(throttle, level, now)
        else:
            self._shut(throttle)
        self.notify(throttle)
        self.on_limited(key)

    def remove(self, key: str) -> bool:
        self._held.pop(key, None)
        self._asked.discard(key)
        throttle = self._limited.get(key)
        if isinstance(throttle, SharedThrottle):
            throttle.away = False
        return super().remove(key)

    # What is said by whoever gives buckets away.

    def grant(self, key: str, level: int, elsewhere: int, now: int) -> bool:
        """Take the bucket. Returns False for a key that has no limit any more."""
        throttle = self._limited.get(key)
        if not isinstance(throttle, SharedThrottle):
            return False
        self._asked.discard(key)
        self._held[key] = throttle
        throttle.elsewhere = elsewhere
        self._open(throttle, level, now)
        self.notify(throttle)
        return True

    def recall(self, key: str, now: int, *, if_idle: bool) -> Given | None:
        """Give the bucket back. None: it is wanted here, and was asked for only if it is not."""
        throttle = self._find(key)
        wanted = bool(throttle.waiting) or now - throttle.wanted_at < STICKY_NS
        if key not in self._held:
            return Given(None, throttle.in_flight, wanted)
        if wanted and if_idle:
            return None
        bucket = throttle.bucket
        if bucket is not None:
            bucket.tokens(now)  # those that have come until now
        del self._held[key]
        self._shut(throttle)
        if wanted:
            self._asked.add(key)
        return Given(None if bucket is None else bucket.level, throttle.in_flight, wanted)

    def tell_elsewhere(self, key: str, elsewhere: int) -> None:
        """The others have so much in flight."""
        throttle = self._held.get(key)
        if throttle is not None and throttle.limit is not None:
            throttle.elsewhere = elsewhere
            self._cap(throttle)
            self.notify(throttle)

    def lose_all(self) -> None:
        """Nobody says any more who has what: let nothing pass until somebody does."""
        for throttle in self._held.values():
            self._shut(throttle)
        self._held.clear()
        self._asked.clear()

    def hold_until(self, until: int, now: int) -> None:
        """Buckets may be used until then."""
        stood_still, self._lease.until = self._lease.until < now, until
        if stood_still:
            for throttle in self._held.values():
                self.notify(throttle)

    @property
    def holds_any(self) -> bool:
        return bool(self._held)

    def capped(self) -> dict[str, int]:
        """What is in flight of every key whose limit has a cap."""
        limits = self._limited.items()
        return {
            key: throttle.in_flight
            for key, throttle in limits
            if throttle.limit is not None and throttle.limit.max_in_flight is not None
        }

    def ask_anew(self) -> list[str]:
        """The keys to ask for: messages wait for them here, and their buckets are not here. What was asked before was
        not heard.
        """
        keys = [key for key, throttle in self._limited.items() if throttle.away and throttle.waiting]
        self._asked = set(keys)
        return keys

    # What throttles say.

    def want(self, throttle: SharedThrottle, now: int) -> None:
        throttle.wanted_at = now
        if throttle.name not in self._asked:
            self._asked.add(throttle.name)
            self.on_want(throttle.name)

    def freed(self, throttle: SharedThrottle) -> None:
        if throttle.name not in self._held:
            self.on_freed(throttle.name)

    def _open(self, throttle: SharedThrottle, level: int, now: int) -> None:
        limit = throttle.limit
        assert limit is not None
        throttle.away = False
        throttle.bucket = None
        if limit.rate is not None:
            throttle.bucket = LeasedBucket(limit, now, level, self._lease)
        self._cap(throttle)

    def _cap(self, throttle: SharedThrottle) -> None:
        assert throttle.limit is not None
        most = throttle.limit.max_in_flight
        throttle.cap = None if most is None else max(0, most - throttle.elsewhere)

    def _shut(self, throttle: SharedThrottle) -> None:
        throttle.away = True
        throttle.bucket, throttle.cap = None, 0


def _nothing(_: str) -> None:
    pass
