"""The queue in Redis, with a buffer for outages of Redis.

| Redis | jobs that are enqueued | settlements |
|---|---|---|
| active | go to Redis | go to Redis |
| unavailable | are refused, or go to the buffer (`on_outage`) | go to the buffer |

Rules:
- `_lock` guards the change from one to the other. On the way back settlements are sent first, then jobs; Redis is
  active again only when the buffer is empty.
- Hooks and logs hear of a change last, and it does not matter if they fail: a log that cannot be written keeps nobody
  from working.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fila.jobs.base import BaseQueue
from fila.jobs.codec import JobCodec
from fila.jobs.errors import LeaseLost, QueueClosed, QueueUnavailable
from fila.jobs.events import Hook, RedisSeen, emit, log_exception, log_safely
from fila.jobs.intake import Clock, checked_delay
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.queue import Snapshot
from fila.jobs.redis.client import NotExecuted, OutcomeUnknown, RedisUnavailable, WaitInterrupted
from fila.jobs.redis.commands import (
    Counts,
    OutgoingJob,
    QueueCommands,
    Settlement,
    is_claimed_in_redis,
    storable,
    to_ms,
)
from fila.jobs.redis.outage import OutageBuffer
from fila.jobs.settings import QueueSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: A waiter looks again this often, since the token of a waiter that died is lost with it.
_MAX_WAIT_SECONDS = 5.0


@dataclass(slots=True)
class _Waiter:
    """Somebody in `dequeue`."""

    deadline: float | None
    #: Whether the wait was interrupted.
    stop: Callable[[], bool]
    #: Whether others rely on this one to see what is due: see `wake` in queue.lua.
    has_token: bool = False

    def seconds_left(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class RedisQueue(BaseQueue):
    """Jobs in Redis. Implements `JobQueue`."""

    backend = "redis"
    durable = True

    def __init__(
        self,
        settings: QueueSettings | None = None,
        *,
        codec: JobCodec | None = None,
        clock: Clock | None = None,
        hooks: Sequence[Hook] = (),
    ) -> None:
        """Connects on first use. Without a clock, time is that of the Redis server."""
        super().__init__(settings or QueueSettings(use_redis=True), codec)
        codec = self._intake.codec
        self._commands = QueueCommands(self._settings, codec, clock)
        self._memory = PriorityDelayQueue(self._settings, codec=codec, clock=clock or time.time)
        self._buffer = OutageBuffer(self._memory, codec)
        self._hooks = tuple(hooks)
        self._lock = threading.RLock()
        self._active = True
        self._interrupts = 0
        self._closed = threading.Event()
        self._monitor: threading.Thread | None = None

    @property
    def redis_active(self) -> bool:
        """Whether jobs are kept in Redis right now."""
        return self._active

    def health_check(self) -> bool:
        """Ask Redis now. When it does not answer, an outage begins."""
        try:
            self._commands.probe()
        except RedisUnavailable as error:
            self._begin_outage(error)
            return False
        emit(self._hooks, RedisSeen(healthy=True))
        return True

    def dequeue(self, timeout: float | None = None) -> QueueItem | None:
        interrupts = self._interrupts
        deadline = None if timeout is None else time.monotonic() + timeout
        waiter = _Waiter(deadline, lambda: self._interrupts != interrupts)
        item = self._await_job(waiter)
        if item is None and waiter.has_token:
            self._pass_token()
        return item

    def interrupt(self) -> None:
        self._interrupts += 1
        self._memory.wake()
        self._commands.client.interrupt()

    def ack(self, item: QueueItem) -> None:
        if is_claimed_in_redis(item):
            self._settle(Settlement("ack", item))
        else:
            self._memory.ack(item)

    def retry(self, item: QueueItem, delay_seconds: float = 0, *, error: str = "") -> None:
        delay_seconds = checked_delay(delay_seconds)
        if is_claimed_in_redis(item):
            self._settle(Settlement("give", item, (to_ms(delay_seconds), item.attempt + 1)))
        else:
            self._memory.retry(item, delay_seconds, error=error)
            self._empty_buffer_if_active()

    def defer(self, item: QueueItem, delay_seconds: float = 0) -> None:
        delay_seconds = checked_delay(delay_seconds)
        if is_claimed_in_redis(item):
            self._settle(Settlement("give", item, (to_ms(delay_seconds), item.attempt)))
        else:
            self._memory.defer(item, delay_seconds)
            self._empty_buffer_if_active()

    def bury(self, item: QueueItem, error: str) -> None:
        if is_claimed_in_redis(item):
            self._settle(Settlement("bury", item, (storable(error),)))
        else:
            self._memory.bury(item, storable(error))
            self._empty_buffer_if_active()

    def extend(self, item: QueueItem) -> None:
        if not is_claimed_in_redis(item):
            self._memory.extend(item)
        elif self._active:  # during an outage no claim ends: see extend_claims_after_outage in queue.lua
            try:
                if not self._commands.extend(item):
                    raise _lost(item)
            except RedisUnavailable as error:
                self._begin_outage(error)

    def dead_letters(self, limit: int = 100) -> list[DeadJob]:
        return self._ask(lambda: self._commands.dead(max(0, limit)))

    def redrive(self, limit: int | None = None) -> int:
        return self._ask(lambda: self._commands.redrive(limit))

    def snapshot(self) -> Snapshot:
        counts = Counts()
        if self._active:
            try:
                counts = self._commands.count()
            except RedisUnavailable as error:
                self._begin_outage(error)
        memory = self._memory.snapshot()
        ready = counts.ready + memory["ready"] + self._buffer.uncertain
        scheduled = counts.scheduled + memory["scheduled"]
        return Snapshot(
            depth=ready + scheduled,
            ready=ready,
            scheduled=scheduled,
            claimed=counts.claimed + memory["claimed"],
            dead=counts.dead + memory["dead"],
            shutdown=self._shutdown,
            redis_active=self._active,
            backend=self.backend,
        )

    def purge(self) -> None:
        with self._lock:
            self._buffer.clear()
            self._ask(self._commands.purge)

    def shutdown(self) -> None:
        self._shutdown = True
        self._memory.shutdown()
        self._commands.client.interrupt()

    def close(self) -> None:
        self.shutdown()
        self._closed.set()
        if self._monitor is not None:
            self._monitor.join()
        if not self._active:
            self._try_to_end_outage()
        self._commands.client.close()
        if kept := self._buffer.waiting:
            logger.error("closed during an outage of Redis: jobs in memory are lost", extra={"jobs_lost": kept})

    def _now(self) -> float:
        return self._commands.now()

    def _accept(self, item: QueueItem, text: str) -> QueueItem:
        if self._shutdown:
            raise QueueClosed("the queue has been shut down")
        outgoing = OutgoingJob(item, text)
        while True:
            if self._active:
                try:
                    [seq] = self._commands.add([outgoing], self._settings.max_depth)
                except NotExecuted as error:
                    self._begin_outage(error)
                except OutcomeUnknown as error:
                    self._begin_outage(error)
                    return self._add_uncertain(outgoing, error)
                else:
                    self._watch_depth()
                    return replace(item, seq=seq)
            taken = self._add_to_buffer(outgoing)
            if taken is not None:
                return taken

    def _ask(self, ask: Callable[[], T]) -> T:
        """Something that only Redis can answer. Raises QueueUnavailable."""
        if self._active:
            try:
                return ask()
            except RedisUnavailable as error:
                self._begin_outage(error)
        raise QueueUnavailable("Redis is unavailable")

    def _await_job(self, waiter: _Waiter) -> QueueItem | None:
        while not waiter.stop():
            active, shut = self._active, self._shutdown
            item = self._from_redis(waiter) if active else self._from_memory(waiter)
            # A look that ended early because Redis went or came, or the queue was shut, is not the last.
            if item is not None or (shut and active == self._active) or waiter.seconds_left() == 0:
                return item
        return None

    def _from_redis(self, waiter: _Waiter) -> QueueItem | None:
        """A job, or None when there may be a reason to look again."""
        if self._buffer.waiting:  # a worker that took its job from memory went silent
            self._empty_buffer_if_active()
        try:
            item, due_in_seconds = self._commands.claim(woken=waiter.has_token)
            if item is not None or self._shutdown:
                return item
            waits = [_MAX_WAIT_SECONDS, self._settings.lease_seconds / 4]
            if due_in_seconds is None:
                waiter.has_token = False  # there is nothing to watch over
            else:
                waits.append(due_in_seconds + 0.001)
            if (left := waiter.seconds_left()) is not None:
                waits.append(left)
            if min(waits) > 0:
                took = self._commands.wait(min(waits), lambda: waiter.stop() or self._shutdown or not self._active)
                waiter.has_token = waiter.has_token or took
        except WaitInterrupted:
            self._pass_token()
        except RedisUnavailable as error:
            self._begin_outage(error)
        return None

    def _from_memory(self, waiter: _Waiter) -> QueueItem | None:
        return self._memory.dequeue_unless(lambda: self._active or waiter.stop(), waiter.seconds_left())

    def _settle(self, settlement: Settlement) -> None:
        """Settle a job, in Redis or in the buffer. Raises LeaseLost."""
        unknown = False
        while True:
            with self._lock:
                if not self._active:
                    self._buffer.add_settlement(settlement)
                    return
            try:
                if not self._commands.settle(settlement) and not unknown:
                    raise _lost(settlement.item)
                return
            except RedisUnavailable as error:
                unknown = unknown or isinstance(error, OutcomeUnknown)
                self._begin_outage(error)

    def _pass_token(self) -> None:
        if self._active:
            try:
                self._commands.pass_token()
            except RedisUnavailable as error:
                self._begin_outage(error)

    def _add_to_buffer(self, outgoing: OutgoingJob) -> QueueItem | None:
        """None when Redis is back. Raises QueueUnavailable, QueueFull or QueueClosed."""
        with self._lock:
            if self._active:
                return None
            if self._settings.on_outage == "refuse":
                raise QueueUnavailable(
                    "Redis is unavailable, and on_outage is refuse: no job is taken that could be lost"
                )
            return self._buffer.add(outgoing)

    def _add_uncertain(self, outgoing: OutgoingJob, error: OutcomeUnknown) -> QueueItem:
        if self._settings.on_outage == "refuse":
            raise QueueUnavailable(
                "no response from Redis: the job may have been taken", outcome_unknown=True
            ) from error
        self._buffer.add_uncertain(outgoing)
        self._empty_buffer_if_active()
        return outgoing.item

    def _empty_buffer_if_active(self) -> None:
        """What came to the buffer after Redis was back does not wait for the next outage."""
        if self._active:
            try:
                self._buffer.send_jobs(self._commands)
            except RedisUnavailable as error:
                self._begin_outage(error)

    def _begin_outage(self, error: RedisUnavailable) -> None:
        with self._lock:
            if not self._active:
                return
            self._active = False
            if not self._closed.is_set():
                self._monitor = threading.Thread(target=self._await_end_of_outage, name="fila-jobs-redis", daemon=True)
                self._monitor.start()
        self._commands.client.interrupt()
        in_memory = "jobs go to memory, and are lost if this process ends during the outage"
        mode = in_memory if self._settings.on_outage == "memory" else "refusing jobs"
        emit(self._hooks, RedisSeen(healthy=False))
        self._log(logging.ERROR, f"Redis is unavailable: {mode}", reason=str(error))

    def _await_end_of_outage(self) -> None:
        while not self._closed.wait(self._settings.redis_health_check_interval):
            if self._try_to_end_outage():
                return

    def _try_to_end_outage(self) -> bool:
        try:
            self._commands.probe()
            while not self._active:
                self._buffer.send_settlements(self._commands)
                self._buffer.send_jobs(self._commands)
                with self._lock:
                    self._active = self._buffer.empty
        except RedisUnavailable as error:
            self._log(logging.DEBUG, "Redis is still unavailable", reason=str(error))
            return False
        except Exception:  # noqa: BLE001  it is logged
            log_exception(logger, "moving jobs to Redis failed; trying again")
            return False
        self._memory.wake()
        emit(self._hooks, RedisSeen(healthy=True))
        self._log(logging.WARNING, "Redis is back")
        return True

    def _log(self, level: int, message: str, **fields: Any) -> None:
        log_safely(logger, level, message, redis=self._settings.redis_url_redacted, **fields)


def _lost(item: QueueItem) -> LeaseLost:
    return LeaseLost(f"job {item.id}: its lease has ended")
