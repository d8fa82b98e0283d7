"""Moving dead letters back to their queue, and removing messages.

Many messages are moved or removed in bounded calls, one after another: the client's timeout applies to each of them,
progress can be reported, and a caller who stops it stops it soon.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Unpack

from fila.client.admin_service import AdminCalls, AdminService
from fila.client.arguments import made
from fila.client.errors import InvalidArgumentError
from fila.client.peek import MessageFilter, filter_request
from fila.v1 import admin_pb2

#: Messages of one call without a rate. The broker also ends a call by itself when it takes long.
_AT_ONCE = 10_000
#: Calls a second with a rate.
_STEPS_A_SECOND = 10

Progress = Callable[[int], object]
"""Called with the number of messages that are done so far."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """How many messages to move or remove, and how fast."""

    count: int | None
    dry_run: bool
    rate: float | None

    def check(self) -> None:
        """Raises InvalidArgumentError."""
        if self.count is not None and self.count < 1:
            raise InvalidArgumentError("count must be at least 1")
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise InvalidArgumentError("rate must be a finite number above 0")


class SweepCalls(AdminCalls):
    """The calls that move and remove messages, as `AsyncClient` has them."""

    async def redrive(
        self,
        dlq: str,
        *,
        count: int | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        on_progress: Progress | None = None,
        **chosen: Unpack[MessageFilter],
    ) -> int:
        """Move dead letters back to the queue that they came from, oldest first, and return how many.

        At most `count` messages, and no more than `rate` a second. With `dry_run` they are only counted. Leased
        messages stay. Raises QueueNotFoundError, or InvalidArgumentError when `dlq` is not a dead-letter queue.
        """
        steps = redrive_steps(self._admin(), dlq, Sweep(count, dry_run, rate), chosen)
        return await _last_of(steps, on_progress)

    async def purge(
        self,
        queue: str,
        *,
        count: int | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        any_queue: bool = False,
        on_progress: Progress | None = None,
        **chosen: Unpack[MessageFilter],
    ) -> int:
        """Remove messages for good, oldest first, and return how many. Options as for `redrive`.

        Leased messages stay. Raises QueueNotFoundError, or InvalidArgumentError when `queue` is not a dead-letter queue
        and `any_queue` is not set.
        """
        steps = purge_steps(self._admin(), queue, Sweep(count, dry_run, rate), chosen, any_queue=any_queue)
        return await _last_of(steps, on_progress)


def redrive_steps(admin: AdminService, dlq: str, sweep: Sweep, chosen: MessageFilter) -> AsyncIterator[int]:
    """Moves messages while it is iterated. Yields how many are done after each step."""
    request = made(
        admin_pb2.RedriveRequest,
        dlq_queue=dlq,
        filter=filter_request(chosen),
        dry_run=sweep.dry_run,
        bounded=True,
    )

    async def step(count: int, cursor: str, final: bool) -> tuple[int, str]:
        request.count, request.cursor, request.final = count, cursor, final
        response = await admin.call(admin.stub.Redrive, request)
        return response.redriven, response.cursor

    return _sweep(step, sweep)


def purge_steps(
    admin: AdminService, queue: str, sweep: Sweep, chosen: MessageFilter, *, any_queue: bool
) -> AsyncIterator[int]:
    """Removes messages while it is iterated. Yields how many are done after each step."""
    request = made(
        admin_pb2.PurgeRequest,
        queue=queue,
        filter=filter_request(chosen),
        any_queue=any_queue,
        dry_run=sweep.dry_run,
        bounded=True,
    )

    async def step(count: int, cursor: str, final: bool) -> tuple[int, str]:
        request.count, request.cursor, request.final = count, cursor, final
        response = await admin.call(admin.stub.Purge, request)
        return response.purged, response.cursor

    return _sweep(step, sweep)


async def _sweep(step: Callable[[int, str, bool], Awaitable[tuple[int, str]]], sweep: Sweep) -> AsyncIterator[int]:
    sweep.check()
    rate = None if sweep.dry_run else sweep.rate
    at_once = _AT_ONCE if rate is None else max(1, int(rate / _STEPS_A_SECOND))
    loop = asyncio.get_running_loop()
    began, done, cursor = loop.time(), 0, ""
    while True:
        left = at_once if sweep.count is None else min(at_once, sweep.count - done)
        count, cursor = await step(left, cursor, sweep.count == done + left)
        done += count
        yield done
        if not cursor or done == sweep.count:
            return
        if rate is not None:
            await asyncio.sleep(began + done / rate - loop.time())


async def _last_of(steps: AsyncIterator[int], on_progress: Progress | None) -> int:
    done, tell = 0, on_progress or _tell_nobody
    async for done in steps:
        tell(done)
    return done


def last_of(steps: Iterator[int], on_progress: Progress | None) -> int:
    """How many were done in the end. `on_progress` is called in the thread of the caller."""
    done, tell = 0, on_progress or _tell_nobody
    for done in steps:
        tell(done)
    return done


def _tell_nobody(_: int) -> None:
    pass
