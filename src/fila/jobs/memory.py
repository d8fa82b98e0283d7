"""The queue in this process's memory: two heaps, one lock, one condition.

Rules:
- `_ready` and `_scheduled` are apart, so that a job of the far future, however urgent, never stands before a ready one.
- Nobody polls: who waits is woken by a job, by the time of the next one, by the end of a claim or by shutdown.
- Of all who wait one is woken, and so has the watch. Who leaves, with a job or without, hands it on.
- Time comes from the clock that was given, so tests run whole timelines without waiting.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from fila.jobs.codec import JobCodec, JsonCodec
from fila.jobs.errors import ClaimLost, QueueClosed, QueueFull
from fila.jobs.intake import Clock, Intake, checked_delay
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.pressure import DepthWarning
from fila.jobs.queue import Snapshot
from fila.jobs.settings import QueueSettings

logger = logging.getLogger(__name__)

#: The wall clock may be set while somebody waits for a time of day, so nobody waits longer without looking.
_MAX_WAIT_SECONDS = 60.0

#: Dead jobs are kept for people to look at; the oldest make room.
_MAX_DEAD = 10_000


class PriorityDelayQueue:
    """Jobs in memory, gone with the process. Keeps the contract of `JobQueue`."""

    durable = False

    def __init__(
        self, settings: QueueSettings | None = None, *, codec: JobCodec | None = None, clock: Clock = time.time
    ) -> None:
        self._settings = settings or QueueSettings()
        self._intake = Intake(self._settings, codec or JsonCodec())
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
        self._shutdown = False
        self._depth_warning = DepthWarning(self._settings.warn_depth)

    @property
    def lease_seconds(self) -> float:
        return self._settings.lease_seconds

    def enqueue(
        self,
        job: Any,
        priority: str = "normal",
        delay_seconds: float = 0,
        *,
        correlation_id: str | None = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> QueueItem:
        item, text = self._intake.item(
            job, priority, delay_seconds, self._clock(), correlation_id=correlation_id, key=key, headers=headers
        )
        return self.put(replace(item, job=self._intake.codec.decode(text)))

    def put(self, item: QueueItem) -> QueueItem:
        """Take a checked item as it is, giving it the next sequence number. Raises QueueFull or QueueClosed."""
        with self._lock:
            if self._shutdown:
                raise QueueClosed("the queue was shut down")
            if self._depth() >= self._settings.max_in_memory:
                raise QueueFull(f"the queue holds {self._depth()} jobs, as many as max_in_memory allows")
            self._seq += 1
            item = replace(item, seq=self._seq)
            self._place(item)
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

    def retry(self, item: QueueItem, delay_seconds: float = 0, *, error: str = "") -> None:  # noqa: ARG002  no place
        self._return(item, delay_seconds, item.attempt + 1)

    def defer(self, item: QueueItem, delay_seconds: float = 0) -> None:
        self._return(item, delay_seconds, item.attempt)

    def bury(self, item: QueueItem, error: str) -> None:
        with self._lock:
            self._dead.append(DeadJob(self._settle(item), error, self._clock()))

    def extend(self, item: QueueItem) -> None:
        with self._lock:
            held = self._settle(item)
            self._hold(item.claim, held, self._clock())

    def dead_letters(self, limit: int = 100) -> list[DeadJob]:
        with self._lock:
            return [self._dead[n] for n in range(min(limit, len(self._dead)))]

    def redrive(self, limit: int | None = None) -> int:
        with self._lock:
            count = len(self._dead) if limit is None else min(limit, len(self._dead))
            for _ in range(count):
                item = self._dead.popleft().item
                self._place(replace(item, attempt=1, ready_at=self._clock()))
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
                backend="memory",
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
        """Put back what was taken out, at its old place."""
        with self._lock:
            for item in items:
                self._place(item)
            self._dead.extendleft(reversed(list(dead)))

    def wake(self) -> None:
        """Let everybody who waits look again."""
        with self._lock:
            self._changed.notify_all()

    def _depth(self) -> int:
        return len(self._ready_heap) + len(self._scheduled_heap)

    def _place(self, item: QueueItem) -> None:
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
        self._hold(claimed.claim, claimed, now)
        return claimed

    def _hold(self, claim: str, item: QueueItem, now: float) -> None:
        end = now + self._settings.lease_seconds
        self._claims[claim] = (item, end)
        heapq.heappush(self._claim_ends, (end, claim))

    def _settle(self, item: QueueItem) -> QueueItem:
        self._reclaim(self._clock())
        held = self._claims.pop(item.claim, None)
        if held is None:
            raise ClaimLost(f"job {item.id}: the claim has ended")
        return held[0]

    def _return(self, item: QueueItem, delay_seconds: float, attempt: int) -> None:
        delay_seconds = checked_delay(delay_seconds)
        with self._lock:
            held = self._settle(item)
            self._place(replace(held, attempt=attempt, ready_at=self._clock() + delay_seconds, claim=""))

    def _reclaim(self, now: float) -> None:
        """Take back what workers have been silent about. Entries of claims that ended otherwise are skipped."""
        while self._claim_ends and self._claim_ends[0][0] <= now:
            end, claim = heapq.heappop(self._claim_ends)
            held = self._claims.get(claim)
            if held is not None and held[1] <= end:
                del self._claims[claim]
                self._place(replace(held[0], attempt=held[0].attempt + 1, ready_at=now, claim=""))
                logger.warning("took a job back from a silent worker", extra={"job_id": held[0].id})

    def _wait_seconds(self, now: float) -> float:
        """Until the next job is due or the next claim ends."""
        moments = [self._scheduled_heap[0][0]] if self._scheduled_heap else []
        if self._claim_ends:
            moments.append(self._claim_ends[0][0])
        return min([_MAX_WAIT_SECONDS, *(max(0.0, moment - now) for moment in moments)])
