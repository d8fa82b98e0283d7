"""The job that is being run, for its handler and for its logs."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from fila.jobs.item import QueueItem


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a handler is given."""

    item: QueueItem
    #: This job's own database session, when the pool has a session factory. Committed when the handler returns,
    #: rolled back when it raises, closed in either case.
    session: Any = None

    @property
    def job(self) -> Any:
        return self.item.job

    @property
    def attempt(self) -> int:
        return self.item.attempt

    @property
    def correlation_id(self) -> str | None:
        return self.item.correlation_id


#: The job that this thread or task is running.
_current: ContextVar[JobContext | None] = ContextVar("fila_job", default=None)


def current_job() -> JobContext | None:
    """The job that is being run here, None outside of one."""
    return _current.get()


class CorrelationFilter(logging.Filter):
    """Gives every log record of a running job its `job_id` and `correlation_id`. Add it to a logging handler."""

    def filter(self, record: logging.LogRecord) -> bool:
        context = _current.get()
        if context is not None:
            if not hasattr(record, "job_id"):
                record.job_id = context.item.id
            if not hasattr(record, "correlation_id"):
                record.correlation_id = context.item.correlation_id
        return True
