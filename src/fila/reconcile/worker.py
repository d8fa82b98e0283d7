"""The worker: a pool of threads that reconcile reports, and the scheduler that enqueues what is due."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from fila.jobs.context import JobContext
from fila.jobs.errors import CircuitOpen, Reject
from fila.jobs.events import Hook
from fila.jobs.item import QueueItem
from fila.jobs.pool import PoolSettings, WorkerPool
from fila.jobs.queue import JobQueue
from fila.jobs.retry import RetryPolicy
from fila.jobs.runner import RunnerSettings
from fila.jobs.scheduler import RetryScheduler, SchedulerSettings
from fila.reconcile.dispatch import NotOurJob, ReconciliationJob, StoredRetries
from fila.reconcile.reconciler import Deferred, Reconciler
from fila.reconcile.store import Store
from fila.settings import Section, seconds, whole_number

NAME = "reconcile"


@dataclass(frozen=True, slots=True)
class WorkerSettings(Section):
    """How many work at once, and how they wait."""

    concurrency: int = whole_number(4, 1)
    poll_timeout: float = seconds(5.0)
    grace_seconds: float = seconds(30.0)
    #: How often the store is asked for what is due.
    schedule_every_seconds: float = seconds(1.0)
    #: What failed for reasons of our own (a database that is away) is tried again so often before it is buried.
    max_attempts: int = whole_number(5, 1)


def handler(reconciler: Reconciler) -> Callable[[JobContext], None]:
    """What the pool does with a job."""

    def handle(context: JobContext) -> None:
        try:
            job = ReconciliationJob.from_payload(context.job)
        except NotOurJob as error:
            raise Reject(str(error)) from error
        try:
            reconciler.attempt(job.affiliate_report_id, job.attempt)
        except Deferred as deferred:
            raise CircuitOpen(str(deferred), delay_seconds=deferred.wait_ms / 1000) from deferred

    return handle


def runner_settings(retry: RetryPolicy, hooks: Sequence[Hook] = ()) -> RunnerSettings:
    """How reconciliation jobs are run."""
    return RunnerSettings(retry=retry, failure_fields=_failure_fields, hooks=hooks, name=NAME)


def _failure_fields(item: QueueItem) -> dict[str, object]:
    return {"report_id": item.job.get("affiliate_report_id") if isinstance(item.job, Mapping) else None}


class Worker:
    """Runs from `start()` to `stop()`, or from entering to leaving as a context manager."""

    def __init__(
        self,
        queue: JobQueue,
        store: Store,
        reconciler: Reconciler,
        settings: WorkerSettings | None = None,
        *,
        hooks: Sequence[Hook] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        settings = settings or WorkerSettings()
        every = settings.schedule_every_seconds
        self.scheduler = RetryScheduler(
            StoredRetries(store, queue),
            queue,
            SchedulerSettings(interval_seconds=every, horizon_seconds=every),
            clock=clock,
        )
        self.pool = WorkerPool(
            queue,
            handler(reconciler),
            PoolSettings(settings.concurrency, settings.poll_timeout, settings.grace_seconds),
            runner_settings(RetryPolicy(max_attempts=settings.max_attempts), hooks),
            clock=clock,
        )

    def start(self) -> None:
        self.pool.start()
        self.scheduler.start()

    def stop(self) -> bool:
        """Finish running jobs. Returns whether they finished in time."""
        self.scheduler.stop(wait=False)  # both are told at once: neither goes on while the other ends
        finished = self.pool.stop(drain=False)
        self.scheduler.stop()
        return finished

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
