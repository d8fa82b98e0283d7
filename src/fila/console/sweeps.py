"""Redrives and purges under way: they go on while the page is closed, and their progress is there when it is opened."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from fila.client import FilaError, LimitExceededError
from fila.console.limits import MAX_SWEEPS


@dataclass(slots=True)
class SweepJob:
    """One redrive or purge."""

    number: int
    verb: str
    queue: str
    total: int
    command: str
    done: int = 0
    error: str = ""
    ended: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def fraction(self) -> float:
        return min(1.0, self.done / self.total) if self.total else float(self.ended)


@dataclass(slots=True)
class Sweeps:
    """The sweeps of one key, oldest first."""

    jobs: dict[int, SweepJob] = field(default_factory=dict)
    _started: int = 0

    def start(
        self,
        verb: str,
        queue: str,
        total: int,
        command: str,
        act: Callable[[Callable[[int], object]], Awaitable[int]],
    ) -> SweepJob:
        """Run `act`, which reports how many are done. Raises LimitExceededError when too many run."""
        for number in [each.number for each in self.jobs.values() if each.ended][: len(self.jobs) - MAX_SWEEPS + 1]:
            del self.jobs[number]
        if len(self.jobs) >= MAX_SWEEPS:
            raise LimitExceededError(f"{MAX_SWEEPS} redrives and purges are running: wait for one to end, or stop it")
        self._started += 1
        job = SweepJob(self._started, verb, queue, total, command)
        self.jobs[job.number] = job
        job.task = asyncio.create_task(_run(job, act))
        return job

    def of(self, queue: str) -> list[SweepJob]:
        return [job for job in self.jobs.values() if job.queue == queue]

    def stop(self, number: int) -> SweepJob | None:
        """What was done stays done."""
        job = self.jobs.get(number)
        if job is not None and job.task is not None and not job.ended:
            job.task.cancel()
        return job

    async def close(self) -> None:
        for job in self.jobs.values():
            if job.task is not None and not job.task.done():
                job.task.cancel()
                with suppress(asyncio.CancelledError):
                    await job.task


async def _run(job: SweepJob, act: Callable[[Callable[[int], object]], Awaitable[int]]) -> None:
    def report(done: int) -> None:
        job.done = done

    try:
        job.done = await act(report)
        job.total = job.done
    except asyncio.CancelledError:
        job.error = "stopped"
    except FilaError as error:
        job.error = str(error)
    finally:
        job.ended = True
