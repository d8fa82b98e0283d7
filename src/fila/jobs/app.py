"""The application: functions become tasks, and workers run them.

    app = App("fila://localhost:5555")

    @app.task(queue="mail", priority="high", key=lambda tenant, text: tenant)
    def send(tenant: str, text: str) -> None: ...

    send.enqueue("acme", "hello")
    send.schedule(timedelta(minutes=30), "acme", "hello again")

`fila worker module:app` runs the workers. A task may be a coroutine function.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, overload

from fila.jobs.breaker import BreakerSettings, BreakerStore, CircuitBreaker
from fila.jobs.context import JobContext
from fila.jobs.errors import InvalidSettings, Reject, TaskNotFound
from fila.jobs.events import BreakerChanged, Hook, emit
from fila.jobs.factory import create_queue
from fila.jobs.intake import Clock
from fila.jobs.item import QueueItem
from fila.jobs.pool import PoolSettings, WorkerPool
from fila.jobs.queue import JobQueue
from fila.jobs.retry import RetryPolicy
from fila.jobs.runner import AttemptLog, RunnerSettings, Session, task_of
from fila.jobs.settings import URL_VARIABLE, QueueSettings
from fila.jobs.task import Task, TaskOptions, wall_clock

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_QUEUE = "default"


@dataclass(frozen=True, slots=True)
class AppSettings:
    """What the jobs of an app have in common."""

    #: Where jobs are kept, and how; instead of a URL.
    queue: QueueSettings | None = None
    #: For tasks that have no policy of their own.
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    session_factory: Callable[[], Session] | None = None
    attempts: AttemptLog | None = None
    hooks: Sequence[Hook] = ()


class App:
    """Tasks by name, and the queues that they go through. Connects on first use.

    The URL says where jobs are kept: `fila://host:port`, `redis://...`, or `memory://` for those that only this process
    runs. Without one, and without `settings.queue`, it is that of the environment, `FILA_JOBS_URL`, read on first use.
    """

    def __init__(self, url: str | None = None, settings: AppSettings | None = None) -> None:
        """Raises InvalidSettings."""
        self.settings = settings or AppSettings()
        if url is not None:
            if self.settings.queue is not None:
                raise InvalidSettings("a URL and settings.queue contradict each other: give only one")
            self.settings = replace(self.settings, queue=QueueSettings.at(url))
        self.tasks: dict[str, Task[..., Any]] = {}
        self._lock = threading.RLock()
        self._queues: dict[str, JobQueue] = {}
        self._make: Callable[[str], JobQueue] = self._create
        self._clock: Clock = wall_clock
        self._max_in_flight: int | None = None
        self._hooks: list[Hook] = list(self.settings.hooks)
        self._breakers: list[CircuitBreaker] = []

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: str = "normal",
        key: Callable[..., Any] | None = None,
        headers: Callable[..., Mapping[str, str]] | None = None,
        retry: RetryPolicy | None = None,
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def task(self, function: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Make a function a task. Its name is module and name of the function, unless another is given."""

        def make(function: Callable[..., Any]) -> Task[..., Any]:
            task: Task[..., Any] = Task(self, name or _name_of(function), function, TaskOptions(**options))
            if task.name in self.tasks:
                raise ValueError(f"task {task.name!r} exists already: choose another name")
            self.tasks[task.name] = task
            return task

        return make if function is None else make(function)

    def queue(self, name: str = DEFAULT_QUEUE) -> JobQueue:
        """The queue of that name, connected on first use."""
        with self._lock:
            if name not in self._queues:
                self._queues[name] = self._make(name)
            return self._queues[name]

    def queue_names(self) -> list[str]:
        """The queues that tasks use."""
        return sorted({task.choices.queue for task in self.tasks.values()})

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._clock()

    def handle(self, context: JobContext) -> Any:
        """Run the task that a job names. Raises TaskNotFound or Reject, or what the task raises."""
        job = context.job
        task = self.tasks.get(task_of(context.item) or "")
        if task is None:
            raise TaskNotFound(f"there is no task {task_of(context.item)!r} here")
        if not (isinstance(job.get("args"), list) and isinstance(job.get("kwargs"), dict)):
            raise Reject("the job has no arguments that can be read")
        return task.function(*job["args"], **job["kwargs"])

    def runner_settings(self, queue: str) -> RunnerSettings:
        """How the jobs of one queue are run."""
        return RunnerSettings(
            retry=self.settings.retry,
            session_factory=self.settings.session_factory,
            attempts=self.settings.attempts,
            policy_for=self._policy_for,
            hooks=tuple(self._hooks),
            name=queue,
        )

    def worker(self, settings: PoolSettings | None = None, queues: Sequence[str] | None = None) -> Worker:
        """Workers for these queues, or for all that tasks use. `concurrency` is for each queue."""
        return Worker(self, settings or PoolSettings(), queues)

    def breaker(
        self, name: str, settings: BreakerSettings | None = None, *, store: BreakerStore | None = None
    ) -> CircuitBreaker:
        """A circuit breaker that reports its state to the hooks of the app, including hooks that are added later."""
        breaker = CircuitBreaker(name, settings, store=store, hooks=[lambda event: emit(self._hooks, event)])
        self._breakers.append(breaker)
        return breaker

    def watch(self, hook: Hook) -> None:
        """Add a hook, for queues that are not connected yet and for workers that are made from now on."""
        self._hooks.append(hook)
        for breaker in self._breakers:
            emit([hook], BreakerChanged(breaker.name, breaker.last_seen))

    def hold_at_most(self, jobs: int) -> None:
        """How many jobs of each queue this process may hold. For queues that are not connected yet."""
        self._max_in_flight = jobs

    @contextmanager
    def using(self, make: Callable[[str], JobQueue], clock: Clock = wall_clock) -> Iterator[None]:
        """Use other queues for a while, and another clock for `schedule`. For tests."""
        with self._lock:
            before = (self._queues, self._make, self._clock)
            self._queues, self._make, self._clock = {}, make, clock
        try:
            yield
        finally:
            with self._lock:
                used = self._queues
                self._queues, self._make, self._clock = before
            for queue in used.values():
                queue.close()

    def close(self) -> None:
        """Close all queues. They are connected again on next use."""
        with self._lock:
            queues, self._queues = self._queues, {}
        for queue in queues.values():
            queue.close()

    def _create(self, name: str) -> JobQueue:
        settings = self._where()
        if self._max_in_flight is not None and settings.fila is not None:
            settings = replace(settings, fila=replace(settings.fila, max_in_flight=self._max_in_flight))
        if name != DEFAULT_QUEUE:
            settings = settings.named(name)
        return create_queue(settings, hooks=tuple(self._hooks))

    def _where(self) -> QueueSettings:
        """Raises InvalidSettings. Memory is never a default: jobs of another process would silently never arrive."""
        if self.settings.queue is not None:
            return self.settings.queue
        if not QueueSettings.chosen():
            raise InvalidSettings(
                'the app does not say where its jobs are kept: App("fila://localhost:5555"), App("redis://localhost:6379"),'
                f' App("memory://") for jobs that only this process runs, or the variable {URL_VARIABLE}'
            )
        return QueueSettings.from_env()

    def _policy_for(self, item: QueueItem) -> RetryPolicy | None:
        task = self.tasks.get(task_of(item) or "")
        return None if task is None else task.choices.retry


class Worker:
    """A pool for each queue of an app."""

    def __init__(self, app: App, settings: PoolSettings, queues: Sequence[str] | None = None) -> None:
        self.queues = list(queues) if queues else app.queue_names()
        if not self.queues:
            raise TaskNotFound("the app has no tasks: define one with @app.task")
        app.hold_at_most(settings.concurrency)
        self._pools = [
            WorkerPool(app.queue(name), app.handle, settings, app.runner_settings(name)) for name in self.queues
        ]

    def start(self) -> None:
        for pool in self._pools:
            pool.start()

    def stop(self) -> bool:
        """Finish running jobs. Returns whether they finished in time."""
        stopping = [threading.Thread(target=pool.stop) for pool in self._pools[1:]]
        for thread in stopping:
            thread.start()
        finished = self._pools[0].stop()
        for thread in stopping:
            thread.join()
        return finished and not any(pool.running for pool in self._pools)

    @property
    def busy(self) -> int:
        """How many jobs are running."""
        return sum(pool.busy for pool in self._pools)


def _name_of(function: Callable[..., Any]) -> str:
    module = function.__module__
    if module == "__main__":  # the program that was started: workers import it by its name
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        module = spec.name if spec else Path(getattr(main, "__file__", None) or "__main__").stem
    return f"{module}.{function.__qualname__}".replace(".<locals>", "")
