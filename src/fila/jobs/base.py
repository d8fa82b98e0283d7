"""What every backend does in the same way: check a job before it takes it, and warn of a backlog."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fila.jobs.codec import JobCodec, JsonCodec
from fila.jobs.errors import QueueUnavailable
from fila.jobs.intake import Intake
from fila.jobs.item import QueueItem
from fila.jobs.pressure import DepthWarning
from fila.jobs.queue import Snapshot
from fila.jobs.settings import QueueSettings

#: A backend that must ask for its depth does so once in so many enqueues.
_DEPTH_EVERY = 100


class BaseQueue(ABC):
    """The part of `JobQueue` that does not depend on where jobs are kept."""

    backend: str

    def __init__(self, settings: QueueSettings, codec: JobCodec | None) -> None:
        self._settings = settings
        self._intake = Intake(settings, codec or JsonCodec())
        self._depth_warning = DepthWarning(settings.warn_depth)
        self._enqueued = 0
        self._shutdown = False

    @property
    def is_shutdown(self) -> bool:
        return self._shutdown

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
            job, priority, delay_seconds, self._now(), correlation_id=correlation_id, key=key, headers=headers
        )
        return self._accept(item, text)

    @abstractmethod
    def snapshot(self) -> Snapshot: ...

    @abstractmethod
    def _now(self) -> float:
        """Seconds since the epoch, by the clock of the backend."""

    @abstractmethod
    def _accept(self, item: QueueItem, text: str) -> QueueItem:
        """Store a checked item whose job has this text. Returns it with its sequence number."""

    def _watch_depth(self) -> None:
        """Count one enqueue; look at the depth now and then, to warn of a backlog."""
        self._enqueued += 1
        if self._enqueued % _DEPTH_EVERY == 0:
            with suppress(QueueUnavailable):
                self._depth_warning.see(self.snapshot()["depth"])
