"""The queue in Redis, and in memory while Redis is away.

Either Redis is active, and everything goes there; or it is away, and jobs are taken into the refuge, or refused
(`on_outage`). `_lock` guards the change from one to the other: what was settled meanwhile is told to Redis first, then
jobs move, and only when nothing is left here is Redis active again.

Each change is told last, and whether that succeeds does not matter: a log that cannot be written keeps nobody from what
is to be done.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fila.jobs.codec import JobCodec, JsonCodec
from fila.jobs.errors import ClaimLost, QueueClosed, QueueUnavailable
from fila.jobs.events import Hook, RedisSeen, complain, emit, tell
from fila.jobs.intake import Clock, Intake, checked_delay
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.pressure import DepthWarning
from fila.jobs.queue import Snapshot
from fila.jobs.redis.link import Away, Interrupted, NotSent, Unanswered
from fila.jobs.redis.refuge import Refuge
from fila.jobs.redis.remote import Counts, Remote, Sending, Settlement, is_claimed_in_redis, storable, to_ms
from fila.jobs.settings import QueueSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: A waiter looks again this often, since the token of a waiter that died is lost with it.
_MAX_WAIT_SECONDS = 5.0

#: Every so many enqueues the depth is looked at, to warn of a backlog.
_DEPTH_EVERY = 100


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


class RedisQueue:
    """Jobs in Redis. Keeps the contract of `JobQueue`."""

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
        self._settings = settings or QueueSettings(use_redis=True)
        codec = codec or JsonCodec()
        self._intake = Intake(self._settings, codec)
        self._remote = Remote(self._settings, codec, clock)
        self._memory = PriorityDelayQueue(self._settings, codec=codec, clock=clock or time.time)
        self._refuge = Refuge(self._memory, codec)
        self._hooks = tuple(hooks)
        self._lock = threading.RLock()
        self._active = True
        self._shutdown = False
        self._interrupts = 0
        self._closed = threading.Event()
        self._monitor: threading.Thread | None = None
        self._depth_warning = DepthWarning(self._settings.warn_depth)
        self._enqueued = 0

    @property
    def lease_seconds(self) -> float:
        return self._settings.lease_seconds

    @property
    def redis_active(self) -> bool:
        """Whether jobs are kept in Redis right now."""
        return self._active

    def health_check(self) -> bool:
        """Ask Redis now. When it does not answer, the queue counts it as away until it does."""
        try:
            self._remote.probe()
        except Away as error:
            self._go_away(error)
            return False
        emit(self._hooks, RedisSeen(healthy=True))
        return True

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
        now = self._remote.now()
        item, text = self._intake.item(
            job, priority, delay_seconds, now, correlation_id=correlation_id, key=key, headers=headers
        )
        if self._shutdown:
            raise QueueClosed("the queue was shut down")
        sending = Sending(item, text)
        while True:
            if self._active:
                try:
                    [seq] = self._remote.add([sending], self._settings.max_depth)
                except NotSent as error:
                    self._go_away(error)
                except Unanswered as error:
                    self._go_away(error)
                    return self._hold(sending, error)
                else:
                    self._watch_depth()
                    return replace(item, seq=seq)
            taken = self._take_in_memory(sending)
            if taken is not None:
                return taken

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
        self._remote.link.interrupt()

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
            self._move_if_active()

    def defer(self, item: QueueItem, delay_seconds: float = 0) -> None:
        delay_seconds = checked_delay(delay_seconds)
        if is_claimed_in_redis(item):
            self._settle(Settlement("give", item, (to_ms(delay_seconds), item.attempt)))
        else:
            self._memory.defer(item, delay_seconds)
            self._move_if_active()

    def bury(self, item: QueueItem, error: str) -> None:
        if is_claimed_in_redis(item):
            self._settle(Settlement("bury", item, (storable(error),)))
        else:
            self._memory.bury(item, storable(error))
            self._move_if_active()

    def extend(self, item: QueueItem) -> None:
        if not is_claimed_in_redis(item):
            self._memory.extend(item)
        elif self._active:  # while Redis is away no claim ends: see feel_pulse in queue.lua
            try:
                if not self._remote.extend(item):
                    raise _lost(item)
            except Away as error:
                self._go_away(error)

    def dead_letters(self, limit: int = 100) -> list[DeadJob]:
        return self._ask(lambda: self._remote.dead(max(0, limit)))

    def redrive(self, limit: int | None = None) -> int:
        return self._ask(lambda: self._remote.redrive(limit))

    def snapshot(self) -> Snapshot:
        counts = Counts()
        if self._active:
            try:
                counts = self._remote.count()
            except Away as error:
                self._go_away(error)
        memory = self._memory.snapshot()
        ready = counts.ready + memory["ready"] + self._refuge.held
        scheduled = counts.scheduled + memory["scheduled"]
        return Snapshot(
            depth=ready + scheduled,
            ready=ready,
            scheduled=scheduled,
            claimed=counts.claimed + memory["claimed"],
            dead=counts.dead + memory["dead"],
            shutdown=self._shutdown,
            redis_active=self._active,
            backend="redis",
        )

    def purge(self) -> None:
        with self._lock:
            self._refuge.clear()
            self._ask(self._remote.purge)

    def shutdown(self) -> None:
        self._shutdown = True
        self._memory.shutdown()
        self._remote.link.interrupt()

    def close(self) -> None:
        self.shutdown()
        self._closed.set()
        if self._monitor is not None:
            self._monitor.join()
        if not self._active:
            self._try_to_return()
        self._remote.link.close()
        if kept := self._refuge.waiting:
            logger.error("closed while Redis was away: jobs in memory are lost", extra={"jobs_lost": kept})

    def _ask(self, ask: Callable[[], T]) -> T:
        """Something that only Redis can answer. Raises QueueUnavailable."""
        if self._active:
            try:
                return ask()
            except Away as error:
                self._go_away(error)
        raise QueueUnavailable("Redis is away")

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
        if self._refuge.waiting:  # a worker that took its job from memory went silent
            self._move_if_active()
        try:
            item, due_in_seconds = self._remote.claim(woken=waiter.has_token)
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
                took = self._remote.wait(min(waits), lambda: waiter.stop() or self._shutdown or not self._active)
                waiter.has_token = waiter.has_token or took
        except Interrupted:
            self._pass_token()
        except Away as error:
            self._go_away(error)
        return None

    def _from_memory(self, waiter: _Waiter) -> QueueItem | None:
        return self._memory.dequeue_unless(lambda: self._active or waiter.stop(), waiter.seconds_left())

    def _settle(self, settlement: Settlement) -> None:
        """Settle a claim, or owe it. Raises ClaimLost."""
        unanswered = False
        while True:
            with self._lock:
                if not self._active:
                    self._refuge.owe(settlement)
                    return
            try:
                if not self._remote.settle(settlement) and not unanswered:
                    raise _lost(settlement.item)
                return
            except Away as error:
                unanswered = unanswered or isinstance(error, Unanswered)
                self._go_away(error)

    def _pass_token(self) -> None:
        if self._active:
            try:
                self._remote.pass_token()
            except Away as error:
                self._go_away(error)

    def _watch_depth(self) -> None:
        self._enqueued += 1
        if self._enqueued % _DEPTH_EVERY == 0:
            with suppress(QueueUnavailable):
                self._depth_warning.see(self.snapshot()["depth"])

    def _take_in_memory(self, sending: Sending) -> QueueItem | None:
        """None when Redis is back."""
        with self._lock:
            if self._active:
                return None
            if self._settings.on_outage == "refuse":
                raise QueueUnavailable("Redis is away, and on_outage is refuse: nothing is taken that could be lost")
            return self._refuge.take(sending)

    def _hold(self, sending: Sending, error: Unanswered) -> QueueItem:
        if self._settings.on_outage == "refuse":
            raise QueueUnavailable("Redis did not answer: the job was taken or not", outcome_unknown=True) from error
        self._refuge.hold(sending)
        self._move_if_active()
        return sending.item

    def _move_if_active(self) -> None:
        """What came to the refuge after Redis was back does not wait for the next outage."""
        if self._active:
            try:
                self._refuge.move(self._remote)
            except Away as error:
                self._go_away(error)

    def _go_away(self, error: Away) -> None:
        with self._lock:
            if not self._active:
                return
            self._active = False
            if not self._closed.is_set():
                self._monitor = threading.Thread(target=self._await_return, name="fila-jobs-redis", daemon=True)
                self._monitor.start()
        self._remote.link.interrupt()
        in_memory = "going on in memory, and jobs taken meanwhile are lost if this process ends before it is back"
        mode = in_memory if self._settings.on_outage == "memory" else "refusing jobs"
        emit(self._hooks, RedisSeen(healthy=False))
        self._tell(logging.ERROR, f"Redis is away: {mode}", reason=str(error))

    def _await_return(self) -> None:
        while not self._closed.wait(self._settings.redis_health_check_interval):
            if self._try_to_return():
                return

    def _try_to_return(self) -> bool:
        try:
            self._remote.probe()
            while not self._active:
                self._refuge.pay(self._remote)
                self._refuge.move(self._remote)
                with self._lock:
                    self._active = self._refuge.empty
        except Away as error:
            self._tell(logging.DEBUG, "Redis is still away", reason=str(error))
            return False
        except Exception:  # noqa: BLE001  it is logged
            complain(logger, "moving jobs to Redis failed; trying again")
            return False
        self._memory.wake()
        emit(self._hooks, RedisSeen(healthy=True))
        self._tell(logging.WARNING, "Redis is back")
        return True

    def _tell(self, level: int, message: str, **fields: Any) -> None:
        tell(logger, level, message, redis=self._settings.redis_url_redacted, **fields)


def _lost(item: QueueItem) -> ClaimLost:
    return ClaimLost(f"job {item.id}: the claim has ended")
