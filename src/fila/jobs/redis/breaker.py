"""Circuit breakers that many processes share through Redis."""

from __future__ import annotations

import logging
from collections.abc import Callable

from fila.jobs.breaker import Answer, BreakerSettings, Circuit, LocalStore, Op, State
from fila.jobs.redis.client import RedisClient, RedisUnavailable, Script

logger = logging.getLogger(__name__)

BREAKER_SCRIPT = Script("breaker.lua")


class RedisBreakerStore:
    """Breakers in Redis. During an outage of Redis each process has breakers of its own."""

    def __init__(
        self,
        redis_url: str,
        settings: BreakerSettings | None = None,
        *,
        prefix: str = "fila:jobs:breaker:",
        timeout: float = 2.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Without a clock, time is that of the Redis server."""
        self._settings = settings or BreakerSettings()
        self._client = RedisClient(redis_url, timeout=timeout)
        self._prefix = prefix
        self._clock = clock
        self._local = LocalStore(self._settings) if clock is None else LocalStore(self._settings, clock=clock)
        self._unavailable = False

    def step(self, name: str, op: Op, epoch: int = 0, wait_seconds: float = 0.0) -> Answer:
        settings = self._settings
        now = 0 if self._clock is None else round(self._clock() * 1000)
        try:
            allowed, state, new_epoch, wait, changed = self._client.call(
                BREAKER_SCRIPT,
                [self._prefix + name],
                op.value,
                now,
                epoch,
                round(wait_seconds * 1000),
                round(settings.open_cooldown_seconds * 1000),
                settings.failure_threshold,
                settings.rate_limit_threshold,
                settings.half_open_probe_count,
            )
        except RedisUnavailable as error:
            self._note(unavailable=True, reason=str(error))
            return self._local.step(name, op, epoch, wait_seconds)
        self._note(unavailable=False)
        return Answer(bool(allowed), State(state.decode()), int(new_epoch), int(wait) / 1000, bool(changed))

    def read(self, name: str) -> Circuit:
        fields = ("state", "epoch", "failures", "rate_limits", "until", "probes", "successes")
        try:
            found = self._client.command("HMGET", self._prefix + name, *fields)
        except RedisUnavailable as error:
            self._note(unavailable=True, reason=str(error))
            return self._local.read(name)
        if found[0] is None:
            return Circuit()
        epoch, failures, rate_limits, until, probes, successes = (int(each) for each in found[1:])
        return Circuit(State(found[0].decode()), epoch, failures, rate_limits, until / 1000, probes, successes)

    def close(self) -> None:
        self._client.close()

    def _note(self, *, unavailable: bool, reason: str = "") -> None:
        if unavailable != self._unavailable:
            self._unavailable = unavailable
            if unavailable:
                logger.error("Redis is unavailable: circuit breakers are this process's own", extra={"reason": reason})
            else:
                logger.warning("Redis is back: circuit breakers are shared again")
