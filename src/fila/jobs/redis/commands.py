"""The commands of `queue.lua` as methods. Each is one atomic change of the queue; each may raise RedisUnavailable."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fila.jobs.codec import JobCodec
from fila.jobs.errors import InvalidJob, QueueFull
from fila.jobs.intake import Clock
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.redis import record
from fila.jobs.redis.client import RedisClient, RedisUnavailable, Script
from fila.jobs.settings import QueueSettings

logger = logging.getLogger(__name__)

QUEUE_SCRIPT = Script("queue.lua")

#: Claims of jobs that are in Redis; those of jobs in memory look otherwise.
_CLAIM_PREFIX = "redis-"

#: How many acknowledged enqueues are reported with the next one.
_MAX_ACKNOWLEDGED = 100


@dataclass(frozen=True, slots=True)
class OutgoingJob:
    """A job on its way to Redis; with a failure, to the dead letters."""

    item: QueueItem
    text: str
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a worker says of a job that it has claimed: a command of the script, and what it needs."""

    command: str
    item: QueueItem
    args: tuple[str | int, ...] = ()


class Counts(NamedTuple):
    """How many jobs are where."""

    ready: int = 0
    scheduled: int = 0
    claimed: int = 0
    dead: int = 0


class QueueCommands:
    """The script's commands as methods. Safe for threads."""

    def __init__(self, settings: QueueSettings, codec: JobCodec, clock: Clock | None) -> None:
        """Connects on first use. Without a clock, time is that of the Redis server."""
        self.client = RedisClient(settings.redis_url, timeout=settings.redis_health_check_timeout)
        self._keys = _keys(settings)
        self._lease_ms = max(1, to_ms(settings.lease_seconds))
        self._codec = codec
        self._clock = clock
        self._watch = 1 if clock is None else 0
        self._lock = threading.Lock()
        self._acknowledged: deque[str] = deque()

    def now(self) -> float:
        """By this process's clock."""
        return time.time() if self._clock is None else self._clock()

    def probe(self) -> None:
        """Write something: a Redis that can only be read is unavailable."""
        self._call("probe")

    def add(self, jobs: Sequence[OutgoingJob], limit: int = 0) -> list[int]:
        """Take jobs, all or none, each under its id once. Returns their numbers. Raises QueueFull."""
        acknowledged = self._take_acknowledged()
        try:
            answer = self._call("add", limit, len(acknowledged), *acknowledged, *_flat(jobs, self.now()))
            if not answer[0]:
                raise QueueFull(f"the queue holds {answer[1]} jobs, as many as max_depth allows")
        except (RedisUnavailable, QueueFull):
            self._remember(acknowledged)
            raise
        self._remember(outgoing.item.id for outgoing in jobs)
        return [int(seq) for seq in answer[1:]]

    def claim(self, *, woken: bool = False) -> tuple[QueueItem | None, float | None]:
        """The next job; or None, and the seconds until something is due, if ever. `woken`: the caller has the token.

        A job that cannot be read is buried, so that it does not come again for ever.
        """
        while True:
            token = _CLAIM_PREFIX + uuid.uuid4().hex
            answer = self._call("claim", self._lease_ms, token, self._watch, int(woken))
            if not answer[0]:
                return None, None if answer[1] < 0 else answer[1] / 1000
            job_id = answer[1]
            try:
                return replace(record.decode(self._codec, tuple(answer[1:])), claim=token), None
            except InvalidJob as error:
                self._call("bury", job_id, token, storable(str(error)))
                logger.exception("buried a job that cannot be read", extra={"job_id": job_id.decode(errors="replace")})

    def settle(self, settlement: Settlement) -> bool:
        """Whether the claim was still good."""
        item = settlement.item
        return bool(self._call(settlement.command, item.id, item.claim, *settlement.args))

    def extend(self, item: QueueItem) -> bool:
        """Whether the claim was still good."""
        return bool(self._call("extend", item.id, item.claim, self._lease_ms, self._watch))

    def dead(self, limit: int) -> list[DeadJob]:
        flat = self._call("dead", limit)
        return [self._dead_job(*flat[n : n + 6]) for n in range(0, len(flat), 6)]

    def redrive(self, limit: int | None) -> int:
        return int(self._call("redrive", -1 if limit is None else limit))

    def count(self) -> Counts:
        return Counts(*self._call("count"))

    def purge(self) -> None:
        self._call("purge")

    def wait(self, seconds: float, unless: Callable[[], bool]) -> bool:
        """Wait until something may have happened. Returns whether this took the token. Raises WaitInterrupted."""
        return self.client.wait(self._keys[-1], seconds, unless)

    def pass_token(self) -> None:
        """Leave the token for the others. A wait that was ended may have taken it too."""
        self._call("wake")

    def _call(self, command: str, *args: str | int | bytes) -> Any:
        now = 0 if self._clock is None else to_ms(self._clock())
        return self.client.call(QUEUE_SCRIPT, self._keys, command, now, *args)

    def _take_acknowledged(self) -> list[str]:
        """Ids whose enqueue was acknowledged: Redis need not remember them any longer."""
        with self._lock:
            return [self._acknowledged.popleft() for _ in range(min(_MAX_ACKNOWLEDGED, len(self._acknowledged)))]

    def _remember(self, ids: Iterable[str]) -> None:
        with self._lock:
            self._acknowledged.extend(ids)

    def _dead_job(
        self, job_id: bytes, score: bytes, died: bytes, attempt: bytes, failure: bytes, body: bytes
    ) -> DeadJob:
        try:
            item = record.decode(self._codec, (job_id, score, died, attempt, body))
        except InvalidJob:
            item = QueueItem(None, "unreadable", 0, 0.0, 0.0, 0, id=job_id.decode(errors="replace"))
        return DeadJob(item, failure.decode(errors="replace"), float(died) / 1000)


def is_claimed_in_redis(item: QueueItem) -> bool:
    """Not in memory."""
    return item.claim.startswith(_CLAIM_PREFIX)


def to_ms(seconds: float) -> int:
    return round(seconds * 1000)


def storable(error: str) -> str:
    """Never empty, never too long, always UTF-8."""
    return (error[:2000] or "unknown").encode(errors="replace").decode()


def _keys(settings: QueueSettings) -> tuple[str, ...]:
    base = settings.redis_ready_key
    rest = (f"{base}:{name}" for name in ("jobs", "state", "claims", "dead", "taken", "meta", "wake"))
    return (base, settings.redis_scheduled_key, *rest)


def _flat(jobs: Iterable[OutgoingJob], now: float) -> Iterator[str | int]:
    for outgoing in jobs:
        item = outgoing.item
        delay_ms = max(0, to_ms(item.ready_at - now))
        yield from (item.id, item.priority_value, delay_ms, item.attempt, outgoing.failure)
        yield record.encode(item, outgoing.text)
