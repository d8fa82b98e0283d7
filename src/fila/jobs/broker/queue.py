"""The queue on a Fila broker: durable, fair between keys, throttled by headers.

Rules:
- The broker keeps, leases and returns jobs; the SDK extends leases while this process lives.
- `retry` is a nack: the broker counts the attempt. `defer` is a release, which counts none, `bury` a rejection. Each
  is one step for the broker, so a crash leaves the job in one place.
- Priority orders jobs of one key and never crosses keys.
- The role `consumer` is enough for a worker, `producer` to enqueue. What needs more (creating the queue, counting its
  jobs) is left out without it, and the log says so once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from fila.client import (
    Client,
    ConsumeMessage,
    FilaError,
    FilaTimeoutError,
    InvalidArgumentError,
    LimitExceededError,
    MessageNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    QueueInfo,
    QueueNotFoundError,
    QueueStats,
)
from fila.jobs.base import BaseQueue
from fila.jobs.broker.deliveries import Deliveries
from fila.jobs.broker.message import KEY, DeliveryRef, dead_job_of, headers_of, item_of, seq_of
from fila.jobs.codec import JobCodec
from fila.jobs.errors import InvalidJob, LeaseLost, NotAllowed, QueueClosed, QueueFull, QueueUnavailable
from fila.jobs.intake import checked_delay
from fila.jobs.item import DeadJob, QueueItem
from fila.jobs.queue import Snapshot
from fila.jobs.settings import FilaSettings, QueueSettings

logger = logging.getLogger(__name__)

#: How long a count of the broker is good for when jobs are counted against `max_depth`.
_COUNT_SECONDS = 1.0
#: How long a refusal to tell counts is good for: rights may change, and need not be asked for each time.
_REFUSAL_SECONDS = 60.0
#: How long what the broker has sent may be on its way.
_ARRIVAL_SECONDS = 0.2
#: More than any payload may have.
_MAX_PAYLOAD_BYTES = 1 << 30
#: The broker keeps no more of an error.
_MAX_ERROR_CHARACTERS = 1000


class FilaQueue(BaseQueue):
    """Jobs in a queue of the broker. Implements `JobQueue`."""

    backend = "fila"
    durable = True

    def __init__(self, settings: QueueSettings | None = None, *, codec: JobCodec | None = None) -> None:
        """Connects, and creates the queue if it is not there and the API key may. Raises QueueUnavailable."""
        super().__init__(settings or QueueSettings(fila=FilaSettings()), codec)
        self._fila = self._settings.fila or FilaSettings()
        self._name = self._fila.queue
        self._client = Client(self._fila.addr, timeout=self._fila.timeout, tls=self._fila.tls)
        self._closed = False
        # A handler of signals may enqueue while the same thread does.
        self._lock = threading.RLock()
        self._room: tuple[int, float] = (0, 0.0)
        self._admitted = 0
        self._refusal: tuple[str, float] = ("", 0.0)
        self._told_refusal = False
        try:
            with _translated():
                self._create()
        except BaseException:
            self._client.close()
            raise
        self._deliveries = Deliveries(
            self._client, self._name, max_in_flight=self._fila.max_in_flight, on_missing=self._create
        )

    def dequeue(self, timeout: float | None = None) -> QueueItem | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            interrupts = self._deliveries.interrupts  # counted before `_shutdown` is looked at, so none is missed
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if self._shutdown:
                left = _ARRIVAL_SECONDS
            # What is ready takes a moment to come, the first time above all; who does not want to wait waits for that.
            left = left if left is None or left > 0 else self._arrival_seconds()
            message = self._deliveries.take(left, interrupts)
            if message is not None:
                item = self._readable(message)
                if item is not None:
                    return item
            elif not self._shutdown or self._is_empty():
                return None

    def interrupt(self) -> None:
        self._deliveries.interrupt()

    def ack(self, item: QueueItem) -> None:
        delivery = DeliveryRef.of(item)
        with _translated(item):
            self._client.ack(self._name, delivery.message_id, delivery.lease_id)

    def retry(self, item: QueueItem, delay_seconds: float = 0, *, error: str = "") -> None:
        delivery, delay_ms = DeliveryRef.of(item), _ms(checked_delay(delay_seconds))
        with _translated(item):
            self._client.nack(
                self._name, delivery.message_id, _short(error), delay_ms=delay_ms, lease_id=delivery.lease_id
            )

    def defer(self, item: QueueItem, delay_seconds: float = 0) -> None:
        delivery, delay_ms = DeliveryRef.of(item), _ms(checked_delay(delay_seconds))
        with _translated(item):
            self._client.release(self._name, delivery.message_id, delay_ms=delay_ms, lease_id=delivery.lease_id)

    def bury(self, item: QueueItem, error: str) -> None:
        delivery = DeliveryRef.of(item)
        with _translated(item):
            self._client.reject(self._name, delivery.message_id, _short(error) or "unknown", lease_id=delivery.lease_id)

    def extend(self, item: QueueItem) -> None:
        delivery = DeliveryRef.of(item)
        with _translated(item):
            self._client.extend(self._name, delivery.message_id, delivery.lease_id)

    def dead_letters(self, limit: int = 100) -> list[DeadJob]:
        found: list[DeadJob] = []
        cursor = ""
        with _translated():
            while len(found) < limit:
                page = self._client.peek(
                    self._dead_name, limit=limit - len(found), payload_bytes=_MAX_PAYLOAD_BYTES, cursor=cursor
                )
                found += [dead_job_of(message, self._intake.codec) for message in page.messages]
                cursor = page.cursor
                if not cursor:
                    break
        return sorted(found, key=lambda dead: dead.died_at)

    def redrive(self, limit: int | None = None) -> int:
        with _translated():
            return self._client.redrive(self._dead_name, count=limit)

    def snapshot(self) -> Snapshot:
        with _translated():
            info, dead = self._info(self._name), self._info(self._dead_name)
        here = self._deliveries.waiting
        ready = _ready(info) + here
        return Snapshot(
            depth=ready + info.delayed,
            ready=ready,
            scheduled=info.delayed,
            claimed=max(0, info.in_flight - here),
            dead=dead.depth + dead.in_flight,
            shutdown=self._shutdown,
            redis_active=False,
            backend=self.backend,
        )

    def purge(self) -> None:
        with _translated():
            with suppress(QueueNotFoundError):
                self._client.delete_queue(self._name, force=True)
            self._create()
        self._deliveries.begin_anew()
        with self._lock:
            self._room = (0, 0.0)

    def shutdown(self) -> None:
        self._shutdown = True
        self._deliveries.interrupt()

    def close(self) -> None:
        """Prefetched jobs that no worker has taken go back, with their attempts unchanged."""
        self.shutdown()
        self._closed = True
        with suppress(FilaError):
            self._deliveries.close()
        self._client.close()

    def _now(self) -> float:
        return time.time()

    def _accept(self, item: QueueItem, text: str) -> QueueItem:
        if self._shutdown:
            raise QueueClosed("the queue has been shut down")
        with _translated():
            self._make_room()
            message_id = self._client.enqueue(
                self._name,
                headers_of(item),
                text.encode(),
                delay_ms=_ms(item.ready_at - item.enqueued_at),
                priority=item.priority_value,
            )
        self._watch_depth()
        return replace(item, seq=seq_of(message_id))

    @property
    def _dead_name(self) -> str:
        return f"{self._name}.dlq"

    def _create(self) -> None:
        """Unless it exists, or the API key may not: then somebody else has to."""
        try:
            if self._ensure():
                return
        except PermissionDeniedError:
            self._client.auth.who_am_i()  # fails for somebody whom the broker does not know: that is no lack of rights
        with suppress(PermissionDeniedError):
            self._check_fairness()

    def _ensure(self) -> bool:
        """Whether the queue was created."""
        return self._client.ensure_queue(
            self._name,
            visibility_timeout_ms=max(1, _ms(self._settings.lease_seconds)),
            fairness_header=KEY,
            throttle_headers=self._fila.throttle_headers,
            max_attempts=0,  # workers decide, by their policy
        )

    def _check_fairness(self) -> None:
        found = self._stats(self._name).config.fairness_header
        if found != KEY:
            logger.warning(
                "the queue exists without fairness_header=%s, so job keys are ignored",
                KEY,
                extra={"queue": self._name, "fairness_header": found},
            )

    def _info(self, name: str) -> QueueInfo:
        return self._stats(name).summary

    def _stats(self, name: str) -> QueueStats:
        """Raises PermissionDeniedError, for a while without asking again."""
        text, until = self._refusal
        if time.monotonic() < until:
            raise PermissionDeniedError(text)
        try:
            return self._client.queue_stats(name, max_keys=1)
        except PermissionDeniedError as error:
            self._refusal = str(error), time.monotonic() + _REFUSAL_SECONDS
            self._tell_refusal(error)
            raise

    def _tell_refusal(self, error: PermissionDeniedError) -> None:
        if self._told_refusal:
            return
        self._told_refusal = True
        logger.log(
            logging.WARNING if self._settings.max_depth else logging.INFO,
            "the API key may not count jobs: depth, warn_depth and max_depth are left out (%s)",
            error,
            extra={"queue": self._name},
        )

    def _make_room(self) -> None:
        """Raises QueueFull. Asks the broker for its depth once in a while, and counts its own enqueues in between.

        A limit that cannot be watched, for want of rights, is none.
        """
        limit = self._settings.max_depth
        if not limit or self._take_room():
            return
        admitted = self._admitted
        try:
            depth = self._info(self._name).depth + self._deliveries.waiting
        except PermissionDeniedError:
            return
        if depth >= limit:
            raise QueueFull(f"the queue holds {depth} jobs, as many as max_depth allows")
        with self._lock:
            self._admitted += 1
            # What was let in during the count may be in it or not: if room is short, the next one counts again.
            self._room = (limit - depth - (self._admitted - admitted), time.monotonic())

    def _take_room(self) -> bool:
        """Whether the last count leaves room."""
        with self._lock:
            room, counted_at = self._room
            if room <= 0 or time.monotonic() - counted_at > _COUNT_SECONDS:
                return False
            self._admitted += 1
            self._room = (room - 1, counted_at)
            return True

    def _arrival_seconds(self) -> float:
        """How long `dequeue(0)` waits for a job that the broker is sending; 0 if the broker has none ready."""
        if self._deliveries.waiting:
            return 0.0
        return _ARRIVAL_SECONDS if self._has_ready(unknown=True) else 0.0

    def _is_empty(self) -> bool:
        return not self._has_ready(unknown=False) and not self._deliveries.waiting

    def _has_ready(self, *, unknown: bool) -> bool:
        """Whether the broker has a job to send, or `unknown`. To a queue that was closed it sends none."""
        try:
            with _translated():
                return _ready(self._info(self._name)) > 0
        except NotAllowed:
            return unknown
        except QueueUnavailable:
            if self._closed:
                return False
            raise

    def _readable(self, message: ConsumeMessage) -> QueueItem | None:
        """The item. A message that is not a job goes to the dead letters, so that it is not delivered for ever."""
        try:
            return item_of(message, self._intake.codec)
        except InvalidJob as error:
            with _translated(), suppress(MessageNotFoundError):
                message.reject(_short(str(error)))
            logger.exception("buried a message that is not a job", extra={"message_id": message.id})
            return None


@contextmanager
def _translated(item: QueueItem | None = None) -> Iterator[None]:
    """Translates errors of the SDK to those of the jobs layer."""
    try:
        yield
    except (MessageNotFoundError, QueueNotFoundError) as error:
        if item is None:
            raise QueueUnavailable(str(error)) from error
        raise LeaseLost(f"job {item.id}: its lease has ended") from error
    except (InvalidArgumentError, LimitExceededError) as error:
        raise InvalidJob(str(error)) from error
    except OverloadedError as error:
        raise QueueFull(str(error)) from error
    except FilaTimeoutError as error:
        raise QueueUnavailable(str(error), outcome_unknown=True) from error
    except PermissionDeniedError as error:
        raise NotAllowed(str(error)) from error
    except FilaError as error:
        raise QueueUnavailable(str(error)) from error


def _ready(info: QueueInfo) -> int:
    """Jobs that can be handed out: the broker's depth includes delayed ones."""
    return max(0, info.depth - info.delayed)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _short(error: str) -> str:
    return error[:_MAX_ERROR_CHARACTERS].encode(errors="replace").decode()
