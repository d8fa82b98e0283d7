"""Runs one claimed job, from its session to its settlement. Threads, processes and clocks are elsewhere.

Rules:
- A session per job, closed in `finally`. What the handler did and the note that it was done are committed together,
  so a worker that dies in the middle has done nothing, and one that dies after it finds the note when the job returns.
- No exception of a handler ends here silently: it is logged, counted, kept in `LAST_EXCEPTIONS` and settled by policy.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from fila.jobs.context import JobContext, _current
from fila.jobs.errors import LeaseLost
from fila.jobs.events import Hook, JobEnded, Outcome, emit
from fila.jobs.item import QueueItem
from fila.jobs.queue import JobQueue
from fila.jobs.retry import Decision, DeferFor, GiveUp, RetryIn, RetryPolicy, describe, text_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Runs a handler: plainly, or as a coroutine.
Handler = Callable[[JobContext], Any]

#: What handlers raised lately, for tests: error, type, job_id, correlation_id, attempt, and `failure_fields`.
LAST_EXCEPTIONS: list[dict[str, Any]] = []
_MAX_EXCEPTIONS = 100


class Session(Protocol):
    """A database session, as far as running a job needs it. SQLAlchemy's is one."""

    def commit(self) -> None: ...
    def close(self) -> None: ...


class AttemptLog(Protocol):
    """Remembers which jobs were done, inside the database that holds their effects."""

    def finished(self, session: Any, key: str) -> bool:
        """Whether the job was done before."""

    def record(self, session: Any, key: str, attempt: int) -> None:
        """Note, in the session's transaction, that the job is done. Raises when another worker did it meanwhile."""


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """How jobs are run and what surrounds them."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    #: Makes a session for each job.
    session_factory: Callable[[], Session] | None = None
    #: With it, a job that was done is never done again, whatever becomes of its worker.
    attempts: AttemptLog | None = None
    #: What makes two deliveries the same piece of work; the job's id unless the job knows better.
    idempotency_key: Callable[[QueueItem], str] = lambda item: item.id
    #: A policy for this very job, when it has one.
    policy_for: Callable[[QueueItem], RetryPolicy | None] = lambda _item: None
    #: What `LAST_EXCEPTIONS` says of a job besides, for example {"order_id": 7}.
    failure_fields: Callable[[QueueItem], Mapping[str, Any]] = lambda _item: {}
    hooks: Sequence[Hook] = ()
    #: The name of the queue in logs and metrics.
    name: str = "jobs"


class JobRunner:
    """Runs claimed jobs of one queue with one handler."""

    def __init__(
        self,
        queue: JobQueue,
        handler: Handler,
        settings: RunnerSettings | None = None,
        *,
        await_: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """`await_` runs the coroutine of an async handler to its end."""
        self._queue = queue
        self._handler = handler
        self._settings = settings or RunnerSettings()
        self._await = await_
        self._timer = timer

    def run(self, item: QueueItem) -> Outcome:
        """Run the job and settle it. Raises nothing but what ends the process."""
        started = self._timer()
        error: BaseException | None = None
        policy = self._settings.retry
        try:
            policy = self._policy(item)
            if item.attempt > policy.max_attempts:
                outcome = self._bury_lost(item)
            else:
                done = self._attempt(item)
                self._queue.ack(item)
                outcome = "done" if done else "repeated"
        except LeaseLost as lost:
            # The work is done or was given up; whoever has the claim now finds that out by its own means.
            error, outcome = lost, "lost"
        except BaseException as raised:  # noqa: BLE001  a job must not take its worker with it
            outcome, error = self._settle_failure(item, raised, policy)
        seconds = self._timer() - started
        self._log(item, outcome, seconds, error)
        error_class = None if error is None else type(error).__name__
        emit(self._settings.hooks, JobEnded(self._settings.name, outcome, seconds, error_class))
        return outcome

    def _policy(self, item: QueueItem) -> RetryPolicy:
        return self._settings.policy_for(item) or self._settings.retry

    def _attempt(self, item: QueueItem) -> bool:
        """Whether there was anything to do."""
        make = self._settings.session_factory
        session = None if make is None else make()
        try:
            log, key = self._settings.attempts, self._settings.idempotency_key(item)
            if log is not None and log.finished(session, key):
                return False
            self._call(JobContext(item, session))
            if log is not None:
                log.record(session, key, item.attempt)
            if session is not None:
                session.commit()
            return True
        finally:
            if session is not None:
                session.close()

    def _call(self, context: JobContext) -> None:
        scope = contextvars.copy_context()
        scope.run(_current.set, context)
        result = scope.run(self._handler, context)
        if asyncio.iscoroutine(result):
            scope.run(self._await, result)

    def _bury_lost(self, item: QueueItem) -> Outcome:
        reason = f"its workers were lost: {item.attempt - 1} attempts and no end"
        self._queue.bury(item, reason)
        return "dead"

    def _settle_failure(
        self, item: QueueItem, error: BaseException, policy: RetryPolicy
    ) -> tuple[Outcome, BaseException]:
        """What became of the job, and over which error."""
        # A decision that fails is an error of the job like others; a policy that cannot decide about that is no help.
        decision, error = _decide(item, error, policy, policy, RetryPolicy())
        if not isinstance(decision, DeferFor):
            self._remember(item, error)
        try:
            return self._carry_out(item, decision, error), error
        except Exception:
            # The job is not lost: its claim ends, and it comes again.
            logger.exception("a failed job could not be settled", extra=self._fields(item))
            return "lost", error

    def _remember(self, item: QueueItem, error: BaseException) -> None:
        LAST_EXCEPTIONS.append(
            {
                "error": text_of(error),
                "type": type(error).__name__,
                "job_id": item.id,
                "correlation_id": item.correlation_id,
                "attempt": item.attempt,
                **self._settings.failure_fields(item),
            }
        )
        del LAST_EXCEPTIONS[:-_MAX_EXCEPTIONS]

    def _carry_out(self, item: QueueItem, decision: Decision, error: BaseException) -> Outcome:
        match decision:
            case DeferFor(delay):
                self._queue.defer(item, delay)
                return "deferred"
            case RetryIn(delay):
                self._queue.retry(item, delay, error=describe(error))
                return "retried"
            case GiveUp(reason):
                self._queue.bury(item, reason)
                return "dead"

    def _log(self, item: QueueItem, outcome: Outcome, seconds: float, error: BaseException | None) -> None:
        fields = {**self._fields(item), "outcome": outcome, "seconds": round(seconds, 6)}
        if error is not None:
            fields["error"] = describe(error)
        match outcome:
            case "done" | "repeated":
                logger.info("job %s", outcome, extra=fields)
            case "deferred":
                logger.warning("job deferred", extra=fields)
            case _:
                logger.error("job %s", outcome, extra=fields, exc_info=error)

    def _fields(self, item: QueueItem) -> dict[str, Any]:
        return {
            "queue": self._settings.name,
            "job_id": item.id,
            "correlation_id": item.correlation_id,
            "attempt": item.attempt,
            "task": task_of(item),
        }


def task_of(item: QueueItem) -> str | None:
    """The name of an app's task; None for other jobs."""
    name = item.job.get("task") if isinstance(item.job, Mapping) else None
    return name if isinstance(name, str) else None


def _decide(
    item: QueueItem, error: BaseException, policy: RetryPolicy, *others: RetryPolicy
) -> tuple[Decision, BaseException]:
    """A decision, and the error that it is about: an error raised while deciding replaces the first."""
    try:
        return policy.decide(item.attempt, error, random.random), error
    except Exception as failed:
        if not others:
            raise
        return _decide(item, failed, *others)
