"""Workers: threads that claim and run jobs, a heartbeat that extends their claims, and a loop for async handlers."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from fila.jobs.errors import JobsError, LeaseLost, NotAllowed
from fila.jobs.events import DepthSeen, JobTaken, emit, log_exception
from fila.jobs.item import QueueItem
from fila.jobs.loop import JobLoop
from fila.jobs.queue import JobQueue
from fila.jobs.retry import describe
from fila.jobs.runner import Handler, JobRunner, RunnerSettings
from fila.jobs.settings import JobsSection
from fila.settings import seconds, whole_number

logger = logging.getLogger(__name__)

#: How often a claim is extended within its lease.
_EXTENSIONS = 3
#: How often the depth is told to the hooks.
_DEPTH_SECONDS = 5.0
#: How often workers that wait for jobs are told to stop.
_INTERRUPT_SECONDS = 0.1
#: How long workers without a job may take to leave, whatever the grace. More than a queue needs to end a wait.
_LEAVE_SECONDS = 5.0
#: Backoff when the queue cannot be asked for jobs: it doubles from the first number up to the second.
_BACKOFF_SECONDS = (0.1, 5.0)


@dataclass(frozen=True, slots=True)
class PoolSettings(JobsSection):
    """How many workers, and how they wait and stop."""

    concurrency: int = whole_number(4, 1)
    #: How long a worker waits for a job before it checks whether to stop.
    poll_timeout: float = seconds(5.0)
    #: How long `stop` waits for jobs that are being run.
    grace_seconds: float = seconds(30.0, low=0)


class WorkerPool:
    """Runs the jobs of one queue on daemon threads.

        with WorkerPool(queue, handler, PoolSettings(concurrency=8)):
            ...

    Stopping is graceful: jobs that are being run are finished. A queue in memory is emptied first, since what is left
    in it is lost; a durable one keeps what is left for others.
    """

    def __init__(
        self,
        queue: JobQueue,
        handler: Handler,
        settings: PoolSettings | None = None,
        run: RunnerSettings | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._queue = queue
        self._settings = settings or PoolSettings()
        self._run = run or RunnerSettings()
        self._clock = clock
        self._loop = JobLoop()
        self._runner = JobRunner(queue, handler, self._run, await_=self._loop.run)
        self._stopping = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._busy: dict[threading.Thread, QueueItem] = {}
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the workers."""
        if self._threads:
            raise RuntimeError("the pool has already been started")
        self._threads = [
            threading.Thread(target=self._work, name=f"fila-worker-{self._run.name}-{n}", daemon=True)
            for n in range(self._settings.concurrency)
        ]
        for thread in (*self._threads, threading.Thread(target=self._beat, name="fila-worker-heartbeat", daemon=True)):
            thread.start()

    def stop(self, *, drain: bool | None = None, grace_seconds: float | None = None) -> bool:
        """Stop taking jobs and finish those that are being run. Returns whether all were finished in time.

        `drain` also runs everything that is ready; that is the default for a queue in memory.
        """
        if not self._queue.durable if drain is None else drain:
            self._queue.shutdown()
        else:
            self._stopping.set()
        self._await_end(self._alive, self._settings.grace_seconds if grace_seconds is None else grace_seconds)
        self._await_end(self._idle, _LEAVE_SECONDS)
        finished = not self.running
        self._stopping.set()
        self._stopped.set()
        with self._lock:
            job_ids = sorted(item.id for item in self._busy.values())
        self._loop.stop()
        if not finished:
            logger.error("stopped before these jobs were finished", extra={"job_ids": job_ids})
        return finished

    @property
    def busy(self) -> int:
        """How many jobs are running."""
        with self._lock:
            return len(self._busy)

    @property
    def running(self) -> bool:
        """Whether any worker runs a job or waits for one."""
        return bool(self._alive())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _work(self) -> None:
        backoff = _BACKOFF_SECONDS[0]
        while not self._stopping.is_set():
            try:
                item = self._queue.dequeue(self._settings.poll_timeout)
                if item is None and self._queue.is_shutdown:
                    return
                backoff = _BACKOFF_SECONDS[0]
            except Exception:  # noqa: BLE001  it is logged
                log_exception(logger, "cannot dequeue jobs", queue=self._run.name)
                self._stopping.wait(backoff)
                backoff = min(backoff * 2, _BACKOFF_SECONDS[1])
                continue
            if item is not None:
                self._run_one(item)

    def _alive(self) -> list[threading.Thread]:
        return [thread for thread in self._threads if thread.is_alive()]

    def _idle(self) -> list[threading.Thread]:
        with self._lock:
            return [thread for thread in self._alive() if thread not in self._busy]

    def _await_end(self, threads: Callable[[], list[threading.Thread]], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and (waiting := threads()):
            if self._stopping.is_set():
                self._queue.interrupt()  # again and again: a worker may have been about to wait
            waiting[0].join(min(left, _INTERRUPT_SECONDS))

    def _run_one(self, item: QueueItem) -> None:
        worker = threading.current_thread()
        with self._lock:
            self._busy[worker] = item
        try:
            emit(self._run.hooks, JobTaken(self._run.name, max(0.0, self._clock() - item.ready_at)))
            self._runner.run(item)
        except BaseException as error:  # noqa: BLE001  whatever went wrong, the worker is there for the next job
            self._give_back(item, error)
        finally:
            with self._lock:
                del self._busy[worker]

    def _give_back(self, item: QueueItem, error: BaseException) -> None:
        """Running or settling failed unexpectedly. Unless the job is settled, it is retried and counts an attempt."""
        log_exception(logger, "a job could not be run", job_id=item.id, queue=self._run.name)
        try:
            delay = self._run.retry.wait_seconds(item.attempt, random.random)
            self._queue.retry(item, delay, error=describe(error))
        except LeaseLost:
            pass  # it was settled
        except Exception:  # noqa: BLE001  it is logged
            log_exception(
                logger,
                "a job could not be returned; it comes back when its claim ends",
                job_id=item.id,
                queue=self._run.name,
            )

    def _beat(self) -> None:
        """The heartbeat: extend the claims of running jobs, and look at the depth."""
        lease = self._queue.lease_seconds / _EXTENSIONS
        due = {"lease": time.monotonic() + lease, "depth": time.monotonic()}
        while not self._stopped.wait(max(0.0, min(due.values()) - time.monotonic())):
            now = time.monotonic()
            try:
                if now >= due["lease"]:
                    due["lease"] = now + lease
                    self._extend()
                if now >= due["depth"]:
                    due["depth"] = now + _DEPTH_SECONDS
                    self._tell_depth()
            except Exception:  # noqa: BLE001  it is logged
                log_exception(logger, "the heartbeat failed; it goes on", queue=self._run.name)

    def _extend(self) -> None:
        with self._lock:
            busy = list(self._busy.values())
        for item in busy:
            try:
                self._queue.extend(item)
            except LeaseLost:
                with self._lock:
                    still = any(each is item for each in self._busy.values())
                if still:
                    logger.warning("the claim of a running job is lost", extra={"job_id": item.id})
            except Exception:  # noqa: BLE001  it is logged
                log_exception(logger, "a claim could not be extended", job_id=item.id)

    def _tell_depth(self) -> None:
        if self._run.hooks:
            try:
                emit(self._run.hooks, DepthSeen(self._run.name, self._queue.snapshot()["depth"]))
            except NotAllowed:
                pass  # the queue has said so, once
            except JobsError:
                logger.warning("the depth of the queue could not be read", extra={"queue": self._run.name})
