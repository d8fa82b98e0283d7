"""Looking at the messages of a queue without taking them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict, Unpack

from fila.client.admin_service import AdminCalls, moment
from fila.client.arguments import known_names, made, several
from fila.client.errors import InvalidArgumentError
from fila.client.message import DeadLetter, FailedAttempt, dead_letter, failed_attempts
from fila.v1 import admin_pb2

_STATES = {
    "ready": admin_pb2.MESSAGE_STATE_READY,
    "delayed": admin_pb2.MESSAGE_STATE_DELAYED,
    "leased": admin_pb2.MESSAGE_STATE_LEASED,
}
_STATE_NAMES = {number: name for name, number in _STATES.items()}

_MAX_PAGE = 1000


class MessageFilter(TypedDict, total=False):
    """Selects messages: those that match every given condition. One that is left out or None matches all."""

    #: The message has each of these headers, with this value; None matches any value.
    headers: Mapping[str, str | None] | None
    fairness_key: str | None
    #: One of its failed attempts has this text in its error; case does not matter.
    error: str | None
    #: The time since it was enqueued.
    min_age_ms: int | None
    max_age_ms: int | None
    #: Any of "ready", "delayed" and "leased".
    states: Sequence[str] | None
    message_ids: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class PeekedMessage:
    """A message as it is in its queue. It was not taken, so it cannot be settled."""

    id: str
    queue: str
    headers: dict[str, str]
    #: Its first `payload_bytes` bytes.
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
    #: The last failed attempts, oldest first.
    attempts: tuple[FailedAttempt, ...]
    #: Why it is a dead letter, if it is one.
    dead_letter: DeadLetter | None


@dataclass(frozen=True, slots=True)
class PeekPage:
    """One page of messages."""

    messages: tuple[PeekedMessage, ...]
    #: Where the next page begins; empty when this is the last one.
    cursor: str


class PeekCalls(AdminCalls):
    """The call that looks at messages, as `AsyncClient` has it."""

    async def peek(
        self,
        queue: str,
        *,
        limit: int = 100,
        newest: bool = False,
        payload_bytes: int = 0,
        cursor: str = "",
        **chosen: Unpack[MessageFilter],
    ) -> PeekPage:
        """Look at messages without taking them, oldest first, or newest first. Raises QueueNotFoundError.

        `payload_bytes` is how much of each payload to return. To continue behind a page, pass its `cursor`.
        """
        admin = self._admin()
        request = peek_request(queue, newest, payload_bytes, cursor, chosen)
        if limit < 1:
            raise InvalidArgumentError("limit must be at least 1")
        found: list[PeekedMessage] = []
        while True:
            request.limit = min(limit - len(found), _MAX_PAGE)
            page = await admin.call(admin.stub.Peek, request)
            found += [_peeked(message) for message in page.messages]
            if not page.cursor or len(found) >= limit:
                return PeekPage(tuple(found), page.cursor)
            request.cursor = page.cursor


def peek_request(
    queue: str, newest: bool, payload_bytes: int, cursor: str, chosen: MessageFilter
) -> admin_pb2.PeekRequest:
    """Raises InvalidArgumentError."""
    return made(
        admin_pb2.PeekRequest,
        queue=queue,
        filter=filter_request(chosen),
        newest_first=newest,
        payload_bytes=payload_bytes,
        cursor=cursor,
    )


def filter_request(chosen: MessageFilter) -> admin_pb2.MessageFilter:
    """Raises InvalidArgumentError."""
    known_names("filter", chosen, MessageFilter.__annotations__)
    states = chosen.get("states") or ()
    if isinstance(states, str) or any(state not in _STATES for state in states):
        raise InvalidArgumentError(f"states must be a list of any of {', '.join(_STATES)}")
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
        request.message_ids.append("")  # an empty list selects no message; leaving it out selects all
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
        enqueued_at=moment(message.timestamps.enqueued_at),
        state=_STATE_NAMES.get(peeked.state, ""),
        until=moment(peeked.until) if peeked.HasField("until") else None,
        attempts=death.attempts if death is not None else failed_attempts(peeked.attempts),
        dead_letter=death,
    )
