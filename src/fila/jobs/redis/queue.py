"""The queue in Redis, and what becomes of it while Redis is away.

Rules:
- Every change is one call of `queue.lua`, so nobody sees half of one.
- Either Redis is active, and everything goes there; or it is away, and jobs are taken into this process's memory
  (`on_outage = "memory"`) or refused. `_lock` guards the change from one to the other.
- A job whose taking was not answered may be in Redis. It is run by nobody until Redis can tell: then it is sent again
  under its id, which Redis takes once.
- What was settled while Redis was away is owed to it, and paid before anything is taken from it again.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fila.jobs.codec import JobCodec, JsonCodec
from fila.jobs.errors import ClaimLost, InvalidJob, QueueClosed, QueueFull, QueueUnavailable
from fila.jobs.events import Hook, RedisSeen, emit
from fila.jobs.intake import Clock, Intake, checked_delay
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.pressure import DepthWarning
from fila.jobs.queue import Snapshot
from fila.jobs.redis import record
from fila.jobs.redis.link import Away, Interrupted, NotSent, RedisLink, Script, Unanswered
from fila.jobs.settings import QueueSettings

logger = logging.getLogger(__name__)

QUEUE_SCRIPT = Script("queue.lua")

#: Claims of jobs that are in Redis; those of jobs in memory look otherwise.
_CLAIM_PREFIX = "redis-"

#: How many jobs move to Redis in one call.
_CHUNK = 200

#: How many answered enqueues are reported with the next one.
_MAX_KNOWN = 100

#: A waiter looks again this often, since the token of a waiter that died is lost with it.
_MAX_WAIT_SECONDS = 5.0

#: Every so many enqueues the depth is looked at, to warn of a backlog.
_DEPTH_EVERY = 100


@dataclass(frozen=True, slots=True)
class Sending:
    """One job on its way to Redis; with a failure, to its dead."""

    item: QueueItem
    text: str
    failure: str = ""


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
        self._intake = Intake(self._settings, codec or JsonCodec())
        self._clock = clock
        self._hooks = tuple(hooks)
        self._link = RedisLink(self._settings.redis_url, timeout=self._settings.redis_health_check_timeout)
        self._keys = _keys(self._settings)
        self._memory = PriorityDelayQueue(self._settings, codec=codec, clock=clock or time.time)
        self._lock = threading.RLock()
        self._active = True
        self._shutdown = False
        self._interrupts = 0
        self._closed = threading.Event()
        self._monitor: threading.Thread | None = None
        self._owed: deque[tuple[str, QueueItem, tuple[str | int, ...]]] = deque()
        self._uncertain: list[Sending] = []
        self._known: deque[str] = deque()
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
            self._call("probe")
        except Away as error:
            self._go_away(error)
            return False
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
        item, text = self._intake.item(
            job, priority, delay_seconds, self._now(), correlation_id=correlation_id, key=key, headers=headers
        )
        if self._shutdown:
            raise QueueClosed("the queue was shut down")
        sending = Sending(item, text)
        while True:
            if self._active:
                try:
                    [seq] = self._send([sending], self._settings.max_depth)
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
        deadline = None if timeout is None else time.monotonic() + timeout
        interrupts = self._interrupts
        while self._interrupts == interrupts:
            if self._active:
                try:
                    answer = self._call("claim", self._lease_ms(), token := _token(), 0 if self._clock else 1)
                    if answer[0]:
                        if (item := self._claimed(answer, token)) is not None:
                            return item
                        continue
                    if self._shutdown:
                        return None
                    wait = self._wait_seconds(answer[1], deadline)
                    if wait <= 0 and deadline is not None and time.monotonic() >= deadline:
                        return None
                    if wait > 0:
                        self._link.wait(
                            self._keys[-1],
                            wait,
                            lambda: self._shutdown or not self._active or self._interrupts != interrupts,
                        )
                except Interrupted:
                    self._pass_token()
                except Away as error:
                    self._go_away(error)
            else:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                held = self._memory.dequeue_unless(lambda: self._active or self._interrupts != interrupts, left)
                if held is not None or self._shutdown or (deadline is not None and time.monotonic() >= deadline):
                    return held
        return None

    def interrupt(self) -> None:
        self._interrupts += 1
        self._memory.wake()
        self._link.interrupt()

    def ack(self, item: QueueItem) -> None:
        if _in_redis(item):
            self._settle("ack", item)
        else:
            self._memory.ack(item)

    def retry(self, item: QueueItem, delay_seconds: float = 0, *, error: str = "") -> None:
        delay_seconds = checked_delay(delay_seconds)
        if _in_redis(item):
            self._settle("give", item, _ms(delay_seconds), item.attempt + 1)
        else:
            self._memory.retry(item, delay_seconds, error=error)
            self._move_if_active()

    def defer(self, item: QueueItem, delay_seconds: float = 0) -> None:
        delay_seconds = checked_delay(delay_seconds)
        if _in_redis(item):
            self._settle("give", item, _ms(delay_seconds), item.attempt)
        else:
            self._memory.defer(item, delay_seconds)
            self._move_if_active()

    def bury(self, item: QueueItem, error: str) -> None:
        if _in_redis(item):
            self._settle("bury", item, _storable(error))
        else:
            self._memory.bury(item, _storable(error))
            self._move_if_active()

    def extend(self, item: QueueItem) -> None:
        if not _in_redis(item):
            self._memory.extend(item)
        elif self._active:  # while Redis is away no claim ends: see feel_pulse in queue.lua
            try:
                if not self._call("extend", item.id, item.claim, self._lease_ms()):
                    raise _lost(item)
            except Away as error:
                self._go_away(error)

    def dead_letters(self, limit: int = 100) -> list[DeadJob]:
        if not self._active:
            return self._memory.dead_letters(limit)
        flat = self._call_or_refuse("dead", max(0, limit))
        return list(self._dead(flat))

    def redrive(self, limit: int | None = None) -> int:
        return int(self._call_or_refuse("redrive", -1 if limit is None else limit))

    def snapshot(self) -> Snapshot:
        memory = self._memory.snapshot()
        ready, scheduled, claimed, dead = memory["ready"], memory["scheduled"], memory["claimed"], memory["dead"]
        if self._active:
            try:
                counts = self._call("count")
            except Away as error:
                self._go_away(error)
            else:
                ready, scheduled = ready + counts[0], scheduled + counts[1]
                claimed, dead = claimed + counts[2], dead + counts[3]
        return Snapshot(
            depth=ready + scheduled,
            ready=ready,
            scheduled=scheduled,
            claimed=claimed,
            dead=dead,
            shutdown=self._shutdown,
            redis_active=self._active,
            backend="redis",
        )

    def purge(self) -> None:
        with self._lock:
            self._memory.purge()
            self._uncertain.clear()
            self._owed.clear()
            self._call_or_refuse("purge")

    def shutdown(self) -> None:
        self._shutdown = True
        self._memory.shutdown()
        self._link.interrupt()

    def close(self) -> None:
        self.shutdown()
        self._closed.set()
        if self._monitor is not None:
            self._monitor.join()
        if not self._active:
            self._try_to_return()
        kept = self._memory.snapshot()["depth"] + len(self._uncertain)
        if kept:
            logger.error("closed while Redis was away: jobs in memory are lost", extra={"jobs_lost": kept})
        self._link.close()

    # Redis is active.

    def _call(self, command: str, *args: str | int) -> Any:
        now = 0 if self._clock is None else _ms(self._clock())
        return self._link.call(QUEUE_SCRIPT, self._keys, command, now, *args)

    def _call_or_refuse(self, command: str, *args: str | int) -> Any:
        if self._active:
            try:
                return self._call(command, *args)
            except Away as error:
                self._go_away(error)
        raise QueueUnavailable("Redis is away")

    def _send(self, jobs: Sequence[Sending], limit: int = 0) -> list[int]:
        """Raises QueueFull, NotSent or Unanswered."""
        known = [self._known.popleft() for _ in range(min(_MAX_KNOWN, len(self._known)))]
        try:
            answer = self._call("add", limit, len(known), *known, *_flat(jobs, self._now()))
        except Away:
            self._known.extend(known)
            raise
        if not answer[0]:
            self._known.extend(known)
            raise QueueFull(f"the queue holds {answer[1]} jobs, as many as max_depth allows")
        self._known.extend(sending.item.id for sending in jobs)
        return [int(seq) for seq in answer[1:]]

    def _claimed(self, answer: list[Any], token: str) -> QueueItem | None:
        """The item that was handed out. One that cannot be read is buried, so that it does not come again for ever."""
        job_id, score, ready_at, attempt, body = answer[1:]
        try:
            return replace(record.decode(self._intake.codec, (job_id, score, ready_at, attempt, body)), claim=token)
        except InvalidJob as error:
            logger.exception("buried a job that cannot be read", extra={"job_id": job_id.decode(errors="replace")})
            self._call("bury", job_id.decode(errors="replace"), token, _storable(str(error)))
            return None

    def _dead(self, flat: list[bytes]) -> Iterator[DeadJob]:
        for n in range(0, len(flat), 6):
            job_id, score, died, attempt, failure, body = flat[n : n + 6]
            try:
                item = record.decode(self._intake.codec, (job_id, score, died, attempt, body))
            except InvalidJob:
                item = QueueItem(None, "unreadable", 0, 0.0, 0.0, 0, id=job_id.decode(errors="replace"))
            yield DeadJob(item, failure.decode(errors="replace"), float(died) / 1000)

    def _settle(self, command: str, item: QueueItem, *args: str | int) -> None:
        """Settle a claim, or owe it. Raises ClaimLost."""
        unanswered = False
        while True:
            with self._lock:
                if not self._active:
                    self._owed.append((command, item, args))
                    return
            try:
                if not self._call(command, item.id, item.claim, *args) and not unanswered:
                    raise _lost(item)
                return
            except Away as error:
                unanswered = unanswered or isinstance(error, Unanswered)
                self._go_away(error)

    def _wait_seconds(self, due_in_ms: int, deadline: float | None) -> float:
        waits = [_MAX_WAIT_SECONDS, self._settings.lease_seconds / 4]
        if due_in_ms >= 0:
            waits.append((due_in_ms + 1) / 1000)
        if deadline is not None:
            waits.append(deadline - time.monotonic())
        return min(waits)

    def _pass_token(self) -> None:
        """A wait that was ended may have taken the token with it: leave one for the others."""
        if self._active:
            try:
                self._call("wake")
            except Away as error:
                self._go_away(error)

    def _watch_depth(self) -> None:
        self._enqueued += 1
        if self._enqueued % _DEPTH_EVERY == 0:
            self._depth_warning.see(self.snapshot()["depth"])

    # Redis is away.

    def _go_away(self, error: Away) -> None:
        with self._lock:
            if not self._active or self._closed.is_set():
                return
            self._active = False
            mode = "going on in memory" if self._settings.on_outage == "memory" else "refusing jobs"
            logger.error(
                "Redis is away: %s", mode, extra={"redis": self._settings.redis_url_redacted, "reason": str(error)}
            )
            self._monitor = threading.Thread(target=self._await_return, name="fila-jobs-redis", daemon=True)
            self._monitor.start()
        self._link.interrupt()
        emit(self._hooks, RedisSeen(healthy=False))

    def _take_in_memory(self, sending: Sending) -> QueueItem | None:
        """None when Redis is back."""
        with self._lock:
            if self._active:
                return None
            if self._settings.on_outage == "refuse":
                raise QueueUnavailable("Redis is away, and on_outage is refuse")
            return self._memory.put(replace(sending.item, job=self._intake.codec.decode(sending.text)))

    def _hold(self, sending: Sending, error: Unanswered) -> QueueItem:
        if self._settings.on_outage == "refuse":
            raise QueueUnavailable("Redis did not answer: the job was taken or not", outcome_unknown=True) from error
        with self._lock:
            self._uncertain.append(sending)
            active = self._active
        if active:
            self._move_if_active()
        return sending.item

    def _await_return(self) -> None:
        while not self._closed.wait(self._settings.redis_health_check_interval):
            if self._try_to_return():
                return

    def _try_to_return(self) -> bool:
        try:
            self._call("probe")  # a write: a Redis that can only be read is still away
            self._pay()
            while True:
                self._move()
                with self._lock:
                    if not self._uncertain and not self._memory.snapshot()["depth"] and not self._owed:
                        self._active = True
                        break
                self._pay()
        except Away as error:
            logger.debug("Redis is still away", extra={"reason": str(error)})
            return False
        except Exception:
            logger.exception("moving jobs to Redis failed; trying again")
            return False
        logger.warning("Redis is back", extra={"redis": self._settings.redis_url_redacted})
        emit(self._hooks, RedisSeen(healthy=True))
        self._memory.wake()
        return True

    def _pay(self) -> None:
        """Settle what was settled meanwhile. Raises Away, with what is unpaid still owed."""
        while self._owed:
            command, item, args = self._owed[0]
            if not self._call(command, item.id, item.claim, *args):
                logger.warning(
                    "a job was settled while Redis was away, and its claim is gone", extra={"job_id": item.id}
                )
            self._owed.popleft()

    def _move_if_active(self) -> None:
        if self._active:
            try:
                self._move()
            except Away as error:
                self._go_away(error)

    def _move(self) -> None:
        """Send what memory holds to Redis, in the order in which it would be handed out. Raises Away.

        Nothing is in two places: a chunk that was not sent goes back to memory, one that was not answered is held.
        """
        with self._lock:
            uncertain, self._uncertain = self._uncertain, []
        encode = self._intake.codec.encode
        dead = self._memory.take_dead()
        sendings = uncertain + [Sending(each.item, encode(each.item.job), each.error) for each in dead]
        first = len(sendings)
        sendings += [Sending(item, encode(item.job)) for item in self._memory.take_all()]
        for start in range(0, len(sendings), _CHUNK):
            chunk = sendings[start : start + _CHUNK]
            try:
                self._send(chunk)
            except Away as error:
                sent_before = start if isinstance(error, NotSent) else start + len(chunk)
                with self._lock:
                    # Dead and uncertain ones are held in either case: nobody is to run them from here.
                    self._uncertain += sendings[start : max(sent_before, first)]
                    self._memory.restore(each.item for each in sendings[max(sent_before, first) :])
                raise
        if sendings:
            logger.info("moved jobs from memory to Redis", extra={"jobs": len(sendings)})

    def _now(self) -> float:
        return time.time() if self._clock is None else self._clock()

    def _lease_ms(self) -> int:
        return max(1, _ms(self._settings.lease_seconds))


def _keys(settings: QueueSettings) -> tuple[str, ...]:
    base = settings.redis_ready_key
    rest = (f"{base}:{name}" for name in ("jobs", "state", "claims", "dead", "taken", "meta", "wake"))
    return (base, settings.redis_scheduled_key, *rest)


def _flat(jobs: Iterable[Sending], now: float) -> Iterator[str | int]:
    for sending in jobs:
        item = sending.item
        delay_ms = max(0, _ms(item.ready_at - now))
        yield from (item.id, item.priority_value, delay_ms, item.attempt, sending.failure)
        yield record.encode(item, sending.text)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _token() -> str:
    return _CLAIM_PREFIX + uuid.uuid4().hex


def _in_redis(item: QueueItem) -> bool:
    return item.claim.startswith(_CLAIM_PREFIX)


def _storable(error: str) -> str:
    """Never empty, never too long, always UTF-8."""
    return (error[:2000] or "unknown").encode(errors="replace").decode()


def _lost(item: QueueItem) -> ClaimLost:
    return ClaimLost(f"job {item.id}: the claim has ended")
