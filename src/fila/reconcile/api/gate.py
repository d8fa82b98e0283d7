"""Who may send reports now. Two reasons to say "later": the queue is past its mark, or the affiliate floods."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from fila.jobs.pressure import backpressure
from fila.jobs.queue import JobQueue
from fila.reconcile.api.errors import Refused
from fila.reconcile.api.flood import FloodGuard
from fila.reconcile.api.settings import ApiSettings

LOOK_EVERY_S = 0.1
"""The depth of the queue is not counted for every request."""


class Gate:
    """Lets requests in, or refuses them with the time after which it is worth coming back."""

    def __init__(self, queue: JobQueue, settings: ApiSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._queue = queue
        self._settings = settings
        self._clock = clock
        self._flood = FloodGuard(settings.affiliate_per_minute, settings.affiliate_burst)
        self._lock = threading.Lock()
        self._depth = 0
        self._looked_at = float("-inf")

    def admit(self, affiliates: Sequence[str]) -> None:
        """Raises Refused (429), or QueueUnavailable."""
        counts = Counter(affiliates)
        affiliate, most = counts.most_common(1)[0]
        if most > self._settings.affiliate_burst:
            text = f"a request may hold {self._settings.affiliate_burst} reports of one affiliate"
            raise Refused(422, "too_many", f"{text}; {affiliate} has {most}")
        now = self._clock()
        pressure = backpressure(self._seen_depth(now), self._settings.queue_mark)
        if pressure is not None:
            text = f"{pressure.depth} reports are waiting already"
            raise Refused(429, "backlog", text, retry_after_s=pressure.retry_after_seconds)
        flooding = self._flood.take(counts, now)
        if flooding is not None:
            who, wait_s = flooding
            raise Refused(429, "flooding", f"affiliate {who} sends too many reports", retry_after_s=wait_s)

    def _seen_depth(self, now: float) -> int:
        with self._lock:
            if now - self._looked_at >= LOOK_EVERY_S:
                self._depth = self._queue.snapshot()["depth"]
                self._looked_at = now
            return self._depth
