"""Platforms behind circuit breakers: one that keeps failing is left alone for a while, and nobody pays for it."""

import math
from collections.abc import Callable

from fila.jobs.breaker import CircuitBreaker, Permit
from fila.jobs.errors import CircuitOpen
from fila.reconcile.domain.models import Fetched, Post, Reason
from fila.reconcile.platforms.fetcher import Fetchers


class GuardedFetchers:
    """Asks a platform unless its breaker is open. BREAKER_OPEN then says how long to wait."""

    def __init__(self, fetchers: Fetchers, breaker: Callable[[str], CircuitBreaker]) -> None:
        """`breaker` makes the breaker of a platform; it is called once for each."""
        self._fetchers = fetchers
        self._make = breaker
        self._breakers: dict[str, CircuitBreaker] = {}

    def fetch(self, post: Post, now_ms: int) -> Fetched:
        breaker = self._breakers.get(post.platform)
        if breaker is None:
            breaker = self._breakers.setdefault(post.platform, self._make(post.platform))
        try:
            permit = breaker.acquire()
        except CircuitOpen as error:
            wait_ms = max(1, math.ceil(error.delay_seconds * 1000))
            return Fetched(failure=Reason.BREAKER_OPEN, retry_after_ms=wait_ms)
        try:
            fetched = self._fetchers.fetch(post, now_ms)
        except BaseException:
            permit.release()
            raise
        _tell(permit, fetched)
        return fetched

    def close(self) -> None:
        """Give back all connections."""
        self._fetchers.close()


def _tell(permit: Permit, fetched: Fetched) -> None:
    match fetched.failure:
        case Reason.UNREACHABLE:
            permit.failure()
        case Reason.RATE_LIMITED:
            permit.rate_limited(fetched.retry_after_ms / 1000)
        case Reason.AUTH_FAILED:
            permit.release()  # it is our credential that is wrong, and every report should say so
        case _:
            permit.success()
