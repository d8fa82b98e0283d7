"""The queue in this process's memory: two heaps, one lock, one condition.

Rules:
- Ready and scheduled jobs are in two heaps, so that a job of the far future, however urgent, is never ahead of a ready
  one.
- Nobody polls. A waiter is woken by a new job, the time of the next job, the end of a claim, or shutdown.
- One waiter is woken at a time. When it leaves, with a job or without, it wakes the next.
- Time comes from the clock that was given, so tests run whole timelines without waiting.
"""

from __future__ import annotations

import heapq
import logging
import math
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from fila.jobs.base import BaseQueue
from fila.jobs.codec import JobCodec
from fila.jobs.errors import LeaseLost, QueueClosed, QueueFull
from fila.jobs.intake import Clock, checked_delay
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.queue import Snapshot
from fila.jobs.settings import QueueSettings

logger = logging.getLogger(__name__)

#: The wall clock may be set while somebody waits for a time of day, so nobody waits longer without looking.
_MAX_WAIT_SECONDS = 60.0

#: Dead jobs are kept for people to look at; the oldest make room.
_MAX_DEAD = 10_000


class PriorityDelayQueue(BaseQueue):
    """Jobs in memory, gone with the process. Implements `JobQueue`."""

    backend = "memory"
    durable = False

    def __init__(
        self, settings: QueueSettings | None = None, *, codec: JobCodec | None = None, clock: Clock = time.time
    ) -> None:
        super().__init__(settings or QueueSettings(), codec)
        self._clock = clock
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._ready_heap: list[tuple[int, int, QueueItem]] = []
        self._scheduled_heap: list[tuple[float, int, int, QueueItem]] = []
        self._claims: dict[str, tuple[QueueItem, float]] = {}
        self._claim_ends: list[tuple[float, str]] = []
        self._dead: deque[DeadJob] = deque(maxlen=_MAX_DEAD)
        self._seq = 0
        self._interrupts = 0

    def put(self, item: QueueItem) -> QueueItem:
        """Take a checked item as it is, giving it the next sequence number. Raises QueueFull or QueueClosed."""
        with self._lock:
            if self._shutdown:
                raise QueueClosed("the queue has been shut down")
            if self._depth() >= self._settings.max_in_memory:
                raise QueueFull(f"the queue holds {self._depth()} jobs, as many as max_in_memory allows")
            self._seq += 1
            item = replace(item, seq=self._seq)
            self._insert(item)
            self._depth_warning.see(self._depth())
        return item

    def dequeue(self, timeout: float | None = None) -> QueueItem | None:
        interrupts = self._interrupts
        return self.dequeue_unless(lambda: self._interrupts != interrupts, timeout)

    def interrupt(self) -> None:
        with self._lock:
            self._interrupts += 1
            self._changed.notify_all()

    def dequeue_unless(self, given_up: Callable[[], bool], timeout: float | None) -> QueueItem | None:
        """As `dequeue`, but None as soon as `given_up`, which is asked again after each `wake`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            try:
                return self._await_job(given_up, deadline)
            finally:
                # Another watches over what else is ready, the next due time, and the end of a claim that was just made.
                self._changed.notify()

    def ack(self, item: QueueItem) -> None:
        with self._lock:
            self._settle(item)

    def retry(self, item: QueueItem, delay_seconds: float = 0, *, error: str = "") -> None:  # noqa: ARG002  memory does not keep it
        self._return(item, delay_seconds, item.attempt + 1)

    def defer(self, item: QueueItem, delay_seconds: float = 0) -> None:
        self._return(item, delay_seconds, item.attempt)

    def bury(self, item: QueueItem, error: str) -> None:
        with self._lock:
            self._dead.append(DeadJob(self._settle(item), error, self._clock()))

    def extend(self, item: QueueItem) -> None:
        with self._lock:
            self._start_lease(item.claim, self._settle(item), self._clock())

    def dead_letters(self, limit: int = 100) -> list[DeadJob]:
        with self._lock:
            return [self._dead[n] for n in range(min(limit, len(self._dead)))]

    def redrive(self, limit: int | None = None) -> int:
        with self._lock:
            count = len(self._dead) if limit is None else min(limit, len(self._dead))
            for _ in range(count):
                item = self._dead.popleft().item
                self._insert(replace(item, attempt=1, ready_at=self._clock()))
            return count

    def snapshot(self) -> Snapshot:
        with self._lock:
            now = self._clock()
            self._reclaim(now)
            self._promote(now)
            return Snapshot(
                depth=self._depth(),
                ready=len(self._ready_heap),
                scheduled=len(self._scheduled_heap),
                claimed=len(self._claims),
                dead=len(self._dead),
                shutdown=self._shutdown,
                redis_active=False,
                backend=self.backend,
            )

    def purge(self) -> None:
        with self._lock:
            self._ready_heap.clear()
            self._scheduled_heap.clear()
            self._claims.clear()
            self._claim_ends.clear()
            self._dead.clear()

    def shutdown(self) -> None:
        with self._lock:
            self._shutdown = True
            self._changed.notify_all()

    def close(self) -> None:
        self.shutdown()
        if waiting := self.snapshot()["depth"]:
            logger.warning("closed a queue in memory with jobs in it", extra={"jobs_lost": waiting})

    def next_due(self) -> float | None:
        """When the next scheduled job becomes ready."""
        with self._lock:
            return self._scheduled_heap[0][0] if self._scheduled_heap else None

    def take_all(self) -> list[QueueItem]:
        """Remove every job that waits, in the order in which they would be handed out."""
        with self._lock:
            self._reclaim(self._clock())
            items = [item for _, _, item in sorted(self._ready_heap, key=lambda entry: entry[:2])]
            items += [item for *_, item in sorted(self._scheduled_heap, key=lambda entry: entry[:3])]
            self._ready_heap.clear()
            self._scheduled_heap.clear()
            return items

    def take_dead(self) -> list[DeadJob]:
        """Remove every dead job."""
        with self._lock:
            dead = list(self._dead)
            self._dead.clear()
            return dead

    def restore(self, items: Iterable[QueueItem], dead: Iterable[DeadJob] = ()) -> None:
        """Put back what was taken out, in its old order."""
        with self._lock:
            for item in items:
                self._insert(item)
            self._dead.extendleft(reversed(list(dead)))

    def wake(self) -> None:
        """Wake all waiters, so that they look again."""
        with self._lock:
            self._changed.notify_all()

    def _now(self) -> float:
        return self._clock()

    def _accept(self, item: QueueItem, text: str) -> QueueItem:
        return self.put(replace(item, job=self._intake.codec.decode(text)))

    def _depth(self) -> int:
        return len(self._ready_heap) + len(self._scheduled_heap)

    def _insert(self, item: QueueItem) -> None:
        if item.ready_at <= self._clock():
            heapq.heappush(self._ready_heap, (item.priority_value, item.seq, item))
        else:
            heapq.heappush(self._scheduled_heap, (item.ready_at, item.priority_value, item.seq, item))
        self._changed.notify()

    def _promote(self, now: float) -> None:
        while self._scheduled_heap and self._scheduled_heap[0][0] <= now:
            _, priority, seq, item = heapq.heappop(self._scheduled_heap)
            heapq.heappush(self._ready_heap, (priority, seq, item))

    def _await_job(self, given_up: Callable[[], bool], deadline: float | None) -> QueueItem | None:
        while not given_up():
            now = self._clock()
            self._reclaim(now)
            self._promote(now)
            if self._ready_heap:
                return self._claim(heapq.heappop(self._ready_heap)[2], now)
            if self._shutdown:
                return None
            wait = self._wait_seconds(now)
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                wait = min(wait, left)
            self._changed.wait(wait)
        return None

    def _claim(self, item: QueueItem, now: float) -> QueueItem:
        claimed = replace(item, claim=uuid.uuid4().hex)
        self._start_lease(claimed.claim, claimed, now)
        return claimed

    def _start_lease(self, claim: str, item: QueueItem, now: float) -> None:
        end = now + self._settings.lease_seconds
        self._claims[claim] = (item, end)
        heapq.heappush(self._claim_ends, (end, claim))

    def _settle(self, item: QueueItem) -> QueueItem:
        self._reclaim(self._clock())
        found = self._claims.pop(item.claim, None)
        if found is None:
            raise LeaseLost(f"job {item.id}: its lease has ended")
        return found[0]

    def _return(self, item: QueueItem, delay_seconds: float, attempt: int) -> None:
        delay_seconds = checked_delay(delay_seconds)
        with self._lock:
            claimed = self._settle(item)
            self._insert(replace(claimed, attempt=attempt, ready_at=self._clock() + delay_seconds, claim=""))

    def _reclaim(self, now: float) -> None:
        """Return jobs whose claims have ended. Entries of claims that were settled or extended are skipped."""
        while self._claim_ends and self._claim_ends[0][0] <= now:
            end, claim = heapq.heappop(self._claim_ends)
            item, ends = self._claims.get(claim, (None, math.inf))
            if item is not None and ends <= end:
                del self._claims[claim]
                self._insert(replace(item, attempt=item.attempt + 1, ready_at=now, claim=""))
                logger.warning("took a job back from a silent worker", extra={"job_id": item.id})

    def _wait_seconds(self, now: float) -> float:
        """Until the next job is due or the next claim ends."""
        moments = [self._scheduled_heap[0][0]] if self._scheduled_heap else []
        if self._claim_ends:
            moments.append(self._claim_ends[0][0])
        return min([_MAX_WAIT_SECONDS, *(max(0.0, moment - now) for moment in moments)])
