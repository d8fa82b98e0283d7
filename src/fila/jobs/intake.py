"""The checks that a job passes before any backend takes it."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fila.jobs.codec import JobCodec
from fila.jobs.errors import InvalidJob, UnknownPriority
from fila.jobs.item import QueueItem
from fila.jobs.settings import QueueSettings

Clock = Callable[[], float]  #: seconds since the epoch

#: What the broker accepts by default, so that the same jobs are taken everywhere.
MAX_DELAY_SECONDS = 365 * 86_400.0
MAX_KEY_BYTES = 255
MAX_HEADER_BYTES = 8 * 1024

#: Headers that belong to the jobs layer itself.
RESERVED_PREFIX = "fila-job-"


@dataclass(frozen=True, slots=True)
class Intake:
    """Checks jobs against the settings and makes items of them."""

    settings: QueueSettings
    codec: JobCodec

    def item(
        self,
        job: Any,
        priority: str,
        delay_seconds: float,
        now: float,
        *,
        correlation_id: str | None,
        key: str | None,
        headers: Mapping[str, str] | None,
    ) -> tuple[QueueItem, str]:
        """The item, without its sequence number, and the job as text. Raises UnknownPriority or InvalidJob."""
        value = self.settings.priorities.get(priority)
        if value is None:
            known = ", ".join(self.settings.priorities)
            raise UnknownPriority(f"unknown priority {priority!r}: expected one of {known}")
        delay_seconds = checked_delay(delay_seconds)
        for name, text in (("correlation_id", correlation_id), ("key", key)):
            if text is not None:
                _check_text(name, text, MAX_KEY_BYTES)
        item = QueueItem(
            job=job,
            priority_label=priority,
            priority_value=value,
            enqueued_at=now,
            ready_at=now + delay_seconds,
            seq=0,
            id=uuid.uuid4().hex,
            correlation_id=correlation_id,
            key=key,
            headers=_checked_headers(headers or {}),
        )
        return item, self.codec.encode(job)


def checked_delay(delay_seconds: float) -> float:
    """The delay. Raises InvalidJob if it is not a number in range."""
    if not (math.isfinite(delay_seconds) and 0 <= delay_seconds <= MAX_DELAY_SECONDS):
        raise InvalidJob(f"delay_seconds is {delay_seconds!r}: expected 0 to {MAX_DELAY_SECONDS:.0f}")
    return float(delay_seconds)


def _checked_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    size = 0
    for name, value in headers.items():
        _check_text("the name of a header", name, MAX_KEY_BYTES)
        _check_text(f"header {name!r}", value, MAX_HEADER_BYTES)
        if name.startswith(RESERVED_PREFIX):
            raise InvalidJob(f"header {name!r}: names that begin with {RESERVED_PREFIX} are reserved")
        size += len(name) + len(value)
    if size > MAX_HEADER_BYTES or len(headers) > 32:
        raise InvalidJob(f"too many headers: at most 32, with {MAX_HEADER_BYTES} bytes in all")
    return dict(headers)


def _check_text(name: str, text: object, limit: int) -> None:
    if not isinstance(text, str):
        raise InvalidJob(f"{name} must be text, not {type(text).__name__}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidJob(f"{name} is text that UTF-8 cannot hold") from error
    if not 0 < size <= limit:
        raise InvalidJob(f"{name} has {size} bytes: expected 1 to {limit}")
