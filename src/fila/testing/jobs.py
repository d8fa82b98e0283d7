"""Jobs inside the test process, on a clock that the test moves: days of retries in a moment, without a server.

def test_a_missing_report_is_retried():
with VirtualJobs(app) as jobs:
reconcile.enqueue("acme", 7)
assert jobs.run() == ["retried"]
assert jobs.advance(minutes=30) == ["done"]
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from types import TracebackType
from typing import Self

from fila.jobs import App, DeadJob, JobRunner, PriorityDelayQueue, QueueSettings
from fila.jobs.events import Outcome

#: More jobs in one call mean that jobs enqueue each other for ever.
_MAX_JOBS = 100_000


class VirtualClock:
    """A clock that stands still until the test moves it. Calling it returns seconds since the epoch."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self.now = start

    def __call__(self) -> float:
        return self.now


class VirtualJobs:
    """Replaces the queues of an app by queues in memory inside `with`, and runs their jobs on this thread."""

    def __init__(self, app: App, *, settings: QueueSettings | None = None, start: float = 1_700_000_000.0) -> None:
        self._app = app
        self._settings = settings or QueueSettings()
        self.clock = VirtualClock(start)
        self.queues: dict[str, PriorityDelayQueue] = {}
        self._stack = ExitStack()

    def run(self) -> list[Outcome]:
        """Run ready jobs, and the jobs that they enqueue, until none is ready. Returns their outcomes in order."""
        outcomes: list[Outcome] = []
        while (outcome := self._run_one()) is not None:
            outcomes.append(outcome)
            if len(outcomes) >= _MAX_JOBS:
                raise RuntimeError(f"stopped after {_MAX_JOBS:,} jobs: the jobs seem to enqueue each other for ever")
        return outcomes

    def advance(self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0) -> list[Outcome]:
        """Let time pass. Each job runs when it is due."""
        end = self.clock.now + timedelta(seconds=seconds, minutes=minutes, hours=hours).total_seconds()
        outcomes = self.run()
        while (due := self._next_due()) is not None and due <= end:
            self.clock.now = max(self.clock.now, due)
            outcomes += self.run()
        self.clock.now = max(self.clock.now, end)
        return outcomes + self.run()

    def dead_letters(self) -> list[DeadJob]:
        """The dead jobs of all queues."""
        return [dead for queue in self.queues.values() for dead in queue.dead_letters(_MAX_JOBS)]

    @property
    def waiting(self) -> int:
        """How many jobs of all queues are ready or scheduled."""
        return sum(queue.snapshot()["depth"] for queue in self.queues.values())

    def __enter__(self) -> Self:
        self._stack.enter_context(self._app.using(self._make, self.clock))
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for queue in self.queues.values():
            queue.purge()
        self._stack.close()

    def _make(self, name: str) -> PriorityDelayQueue:
        return self.queues.setdefault(name, PriorityDelayQueue(self._settings, clock=self.clock))

    def _run_one(self) -> Outcome | None:
        for name, queue in list(self.queues.items()):
            item = queue.dequeue(0)
            if item is not None:
                runner = JobRunner(queue, self._app.handle, self._app.runner_settings(name), timer=self.clock)
                return runner.run(item)
        return None

    def _next_due(self) -> float | None:
        due = [moment for queue in self.queues.values() if (moment := queue.next_due()) is not None]
        return min(due, default=None)
