"""A function that can be run now, or by a worker later."""

from __future__ import annotations

import asyncio
import inspect
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

from fila.jobs.codec import json_problem
from fila.jobs.context import current_job
from fila.jobs.errors import InvalidJob
from fila.jobs.item import QueueItem
from fila.jobs.queue import JobQueue
from fila.jobs.retry import RetryPolicy

P = ParamSpec("P")
R = TypeVar("R")

#: Seconds or a timedelta from now, or a moment (a datetime with a time zone).
When = float | timedelta | datetime


class Queues(Protocol):
    """Where a task finds its queue: the app, as far as a task needs it."""

    def queue(self, name: str) -> JobQueue: ...
    def now(self) -> float: ...


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How the jobs of a task are enqueued and retried."""

    queue: str = "default"
    priority: str = "normal"
    #: Given the task's arguments, says whose job it is.
    key: Callable[..., Any] | None = None
    #: Given the task's arguments, headers of the job, for example {"platform": ...} for a throttle.
    headers: Callable[..., Mapping[str, str]] | None = None
    #: The app's own policy when it is None.
    retry: RetryPolicy | None = None
    #: That of the job which enqueues it, or a new one, when it is None.
    correlation_id: str | None = None


class Task(Generic[P, R]):
    """Made by `App.task`. Calling it runs the function here and now, as if it were not a task."""

    def __init__(self, queues: Queues, name: str, function: Callable[P, R], options: TaskOptions) -> None:
        self.name = name
        self.function = function
        self.choices = options
        self._queues = queues
        self._signature = inspect.signature(function)
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def options(self, **changes: Any) -> Self:
        """The same task with other options: `send.options(priority="high").enqueue(7)`."""
        return type(self)(self._queues, self.name, self.function, replace(self.choices, **changes))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> QueueItem:
        """Let a worker run it. Raises TypeError for wrong arguments, InvalidJob for those that are not JSON."""
        return self._enqueue(0.0, args, kwargs)

    def schedule(self, when: When, *args: P.args, **kwargs: P.kwargs) -> QueueItem:
        """Let a worker run it at that time. One in the past is now."""
        return self._enqueue(_delay_seconds(when, self._queues.now()), args, kwargs)

    async def enqueue_async(self, *args: P.args, **kwargs: P.kwargs) -> QueueItem:
        """As `enqueue`, without holding up the event loop."""
        return await asyncio.to_thread(self._enqueue, 0.0, args, kwargs)

    async def schedule_async(self, when: When, *args: P.args, **kwargs: P.kwargs) -> QueueItem:
        """As `schedule`, without holding up the event loop."""
        return await asyncio.to_thread(self._enqueue, _delay_seconds(when, self._queues.now()), args, kwargs)

    def _enqueue(self, delay_seconds: float, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> QueueItem:
        self._check(args, kwargs)
        options = self.choices
        key = options.key(*args, **kwargs) if options.key else None
        return self._queues.queue(options.queue).enqueue(
            {"task": self.name, "args": list(args), "kwargs": dict(kwargs)},
            options.priority,
            delay_seconds,
            correlation_id=options.correlation_id or _inherited() or uuid.uuid4().hex,
            key=None if key is None else str(key),
            headers=options.headers(*args, **kwargs) if options.headers else None,
        )

    def _check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"task {self.name}: {error}") from None
        for name, value in bound.arguments.items():
            kind = self._signature.parameters[name].kind
            plain = list(value) if kind is inspect.Parameter.VAR_POSITIONAL else value
            if problem := json_problem(plain, f"argument {name!r}"):
                raise InvalidJob(f"task {self.name}: {problem}")


def _inherited() -> str | None:
    context = current_job()
    return None if context is None else context.correlation_id


def _delay_seconds(when: When, now: float) -> float:
    match when:
        case datetime():
            if when.tzinfo is None:
                raise InvalidJob("schedule: a datetime needs a time zone, such as datetime.UTC")
            return max(0.0, when.timestamp() - now)
        case timedelta():
            return max(0.0, when.total_seconds())
        case _:
            return 0.0 if when < 0 else when  # what is no number is refused by the queue


def wall_clock() -> float:
    """Seconds since the epoch."""
    return time.time()
