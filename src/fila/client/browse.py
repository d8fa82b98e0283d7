"""Looking at the messages of a queue, and sending dead letters back or removing them.

What goes over many messages is done in bounded calls, one after another: so the timeout of the client holds for each of
them, progress can be told, and whoever stops it stops it soon.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict

from fila.client.arguments import known_names, made, several
from fila.client.connection import Connection
from fila.client.errors import InvalidArgumentError
from fila.client.message import DeadLetter, FailedAttempt, dead_letter, failed_attempts
from fila.v1 import admin_pb2

if TYPE_CHECKING:
    from fila.v1.admin_pb2_grpc import FilaAdminAsyncStub

_STATES = {
    "ready": admin_pb2.MESSAGE_STATE_READY,
    "delayed": admin_pb2.MESSAGE_STATE_DELAYED,
    "leased": admin_pb2.MESSAGE_STATE_LEASED,
}
_STATE_NAMES = {number: name for name, number in _STATES.items()}

#: Messages that one call moves or removes when there is no rate; a call also ends by itself when it took long.
_AT_ONCE = 10_000
#: Calls a second when there is a rate.
_STEPS_A_SECOND = 10
_MAX_PAGE = 1000

Progress = Callable[[int], object]
"""Called with the number of messages that are done so far."""


class MessageFilter(TypedDict, total=False):
    """Which messages are meant: those that fit in every way that is given. What is left out, or None, matters not."""

    #: Each of these headers, with this value; None means any.
    headers: Mapping[str, str | None] | None
    fairness_key: str | None
    #: A part of what was said of one of its attempts, in upper or lower case.
    error: str | None
    #: Since it was enqueued.
    min_age_ms: int | None
    max_age_ms: int | None
    #: Of "ready", "delayed" and "leased".
    states: Sequence[str] | None
    message_ids: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class PeekedMessage:
    """A message as it is in its queue. Nobody has taken it, and it cannot be settled."""

    id: str
    queue: str
    headers: dict[str, str]
    #: As much of it as was asked for.
    payload: bytes
    payload_size: int
    fairness_key: str
    weight: int
    priority: int
    cost: int
    throttle_keys: tuple[str, ...]
    attempt_count: int
    enqueued_at: datetime
    #: "ready", "delayed" or "leased".
    state: str
    #: When its delay or its lease ends; None when it is ready.
    until: datetime | None
    #: The last attempts that failed, oldest first.
    attempts: tuple[FailedAttempt, ...]
    #: How it died, if it is a dead letter.
    dead_letter: DeadLetter | None


@dataclass(frozen=True, slots=True)
class PeekPage:
    """Messages that were looked at."""

    messages: tuple[PeekedMessage, ...]
    #: Where to go on; empty when there is no more.
    cursor: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """How many messages to move or remove, and how."""

    count: int | None
    dry_run: bool
    rate: float | None

    def check(self) -> None:
        """Raises InvalidArgumentError."""
        if self.count is not None and self.count < 1:
            raise InvalidArgumentError("count must be at least 1")
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise InvalidArgumentError("rate must be above 0")


class Browser:
    """Calls about messages that wait. All of them raise FilaError."""

    def __init__(self, connection: Connection) -> None:
        self._call = connection.call
        self._stub: FilaAdminAsyncStub = connection.methods(admin_pb2, "FilaAdmin")

    async def peek(self, request: admin_pb2.PeekRequest, limit: int) -> PeekPage:
        """As many messages as there are, at most `limit`, in as many calls as it takes."""
        if limit < 1:
            raise InvalidArgumentError("limit must be at least 1")
        found: list[PeekedMessage] = []
        while True:
            request.limit = min(limit - len(found), _MAX_PAGE)
            page = await self._call(self._stub.Peek, request)
            found += [_peeked(message) for message in page.messages]
            if not page.cursor or len(found) >= limit:
                return PeekPage(tuple(found), page.cursor)
            request.cursor = page.cursor

    def redrive(self, request: admin_pb2.RedriveRequest, sweep: Sweep) -> AsyncIterator[int]:
        """Goes on for as long as somebody asks how many there are by now."""

        async def step(count: int, cursor: str) -> tuple[int, str]:
            request.count, request.cursor = count, cursor
            response = await self._call(self._stub.Redrive, request)
            return response.redriven, response.cursor

        request.dry_run, request.bounded = sweep.dry_run, True
        return _sweep(step, sweep)

    def purge(self, request: admin_pb2.PurgeRequest, sweep: Sweep) -> AsyncIterator[int]:
        """Goes on for as long as somebody asks how many there are by now."""

        async def step(count: int, cursor: str) -> tuple[int, str]:
            request.count, request.cursor = count, cursor
            response = await self._call(self._stub.Purge, request)
            return response.purged, response.cursor

        request.dry_run, request.bounded = sweep.dry_run, True
        return _sweep(step, sweep)


async def _sweep(step: Callable[[int, str], Awaitable[tuple[int, str]]], sweep: Sweep) -> AsyncIterator[int]:
    sweep.check()
    rate = None if sweep.dry_run else sweep.rate
    at_once = _AT_ONCE if rate is None else max(1, int(rate / _STEPS_A_SECOND))
    loop = asyncio.get_running_loop()
    began, done, cursor = loop.time(), 0, ""
    while True:
        left = at_once if sweep.count is None else min(at_once, sweep.count - done)
        count, cursor = await step(left, cursor)
        done += count
        yield done
        if not cursor or done == sweep.count:
            return
        if rate is not None:
            await asyncio.sleep(began + done / rate - loop.time())


async def aswept(steps: AsyncIterator[int], on_progress: Progress | None) -> int:
    """How many there were in the end, with each step told to who wants to know."""
    done = 0
    async for done in steps:
        if on_progress is not None:
            on_progress(done)
    return done


def swept(steps: Iterator[int], on_progress: Progress | None) -> int:
    """As `aswept`, for programs that block: told in their thread."""
    done = 0
    for done in steps:
        if on_progress is not None:
            on_progress(done)
    return done


def peek_request(
    queue: str, newest: bool, payload_bytes: int, cursor: str, chosen: MessageFilter
) -> admin_pb2.PeekRequest:
    """Raises InvalidArgumentError."""
    return made(
        admin_pb2.PeekRequest,
        queue=queue,
        filter=_filter(chosen),
        newest_first=newest,
        payload_bytes=payload_bytes,
        cursor=cursor,
    )


def redrive_request(dlq: str, chosen: MessageFilter) -> admin_pb2.RedriveRequest:
    """Raises InvalidArgumentError."""
    return made(admin_pb2.RedriveRequest, dlq_queue=dlq, filter=_filter(chosen))


def purge_request(queue: str, any_queue: bool, chosen: MessageFilter) -> admin_pb2.PurgeRequest:
    """Raises InvalidArgumentError."""
    return made(admin_pb2.PurgeRequest, queue=queue, filter=_filter(chosen), any_queue=any_queue)


def _filter(chosen: MessageFilter) -> admin_pb2.MessageFilter:
    known_names("filter", chosen, MessageFilter.__annotations__)
    states = chosen.get("states") or ()
    if isinstance(states, str) or any(state not in _STATES for state in states):
        raise InvalidArgumentError(f"states must be of {', '.join(_STATES)}")
    ids = chosen.get("message_ids")
    ids = None if ids is None else several("message_ids", ids)
    try:
        request = admin_pb2.MessageFilter(
            headers=[admin_pb2.HeaderMatch(name=name, value=value) for name, value in _headers(chosen)],
            fairness_key=chosen.get("fairness_key"),
            error=chosen.get("error") or "",
            min_age_ms=chosen.get("min_age_ms") or 0,
            max_age_ms=chosen.get("max_age_ms") or 0,
            states=[_STATES[state] for state in states],
            message_ids=ids or (),
        )
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(str(error)) from error
    if ids is not None and not ids:
        request.message_ids.append("")  # none of them, which is not the same as whichever
    return request


def _headers(chosen: MessageFilter) -> list[tuple[str, str | None]]:
    return list((chosen.get("headers") or {}).items())


def _peeked(peeked: admin_pb2.PeekedMessage) -> PeekedMessage:
    message, metadata = peeked.message, peeked.message.metadata
    death = dead_letter(metadata.dead_letter) if metadata.HasField("dead_letter") else None
    return PeekedMessage(
        id=message.id,
        queue=metadata.queue_id,
        headers=dict(message.headers),
        payload=message.payload,
        payload_size=peeked.payload_size,
        fairness_key=metadata.fairness_key,
        weight=metadata.weight,
        priority=metadata.priority,
        cost=metadata.cost,
        throttle_keys=tuple(metadata.throttle_keys),
        attempt_count=metadata.attempt_count,
        enqueued_at=message.timestamps.enqueued_at.ToDatetime(UTC),
        state=_STATE_NAMES.get(peeked.state, ""),
        until=peeked.until.ToDatetime(UTC) if peeked.HasField("until") else None,
        attempts=death.attempts if death is not None else failed_attempts(peeked.attempts),
        dead_letter=death,
    )
