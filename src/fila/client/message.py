"""A message as a consumer receives it."""

from collections.abc import Awaitable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from fila.client.enums import name_of
from fila.client.tracing import processing_span
from fila.v1 import messages_pb2

#: What settling returns: None with `Client`, an awaitable with `AsyncClient`.
Settled_co = TypeVar("Settled_co", covariant=True)


class Settles(Protocol[Settled_co]):
    """The methods of a client with which a message settles itself."""

    def ack(self, queue: str, message_id: str, lease_id: str | None = None) -> Settled_co: ...
    def nack(
        self, queue: str, message_id: str, error: str = "", *, delay_ms: int = 0, lease_id: str | None = None
    ) -> Settled_co: ...
    def release(self, queue: str, message_id: str, *, delay_ms: int = 0, lease_id: str | None = None) -> Settled_co: ...
    def reject(self, queue: str, message_id: str, error: str = "", *, lease_id: str | None = None) -> Settled_co: ...
    def extend(self, queue: str, message_id: str, lease_id: str | None = None, extend_ms: int = 0) -> Settled_co: ...


#: The values of `isolation`, by their numbers in the protocol.
ISOLATION = ("", "suspect", "confirmed")


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One failed attempt to process a message."""

    #: Counts from 1.
    attempt: int
    failed_at: datetime
    #: "nacked", "expired", "returned" (the consumer left), "lost" or "lost_alone" (the consumer died).
    kind: str
    #: The error text of the consumer.
    error: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Where a dead letter comes from, and why it is one."""

    source_queue: str
    died_at: datetime
    #: "max_attempts", "on_failure", "rejected", "max_depth" or "max_bytes".
    reason: str
    #: The last failed attempts, oldest first.
    attempts: tuple[FailedAttempt, ...]


class ReadMessage:
    """A message that was read.

    Fields are decoded on access, so a reader that uses one or two does not pay for all.
    """

    __slots__ = ("_headers", "_message", "id", "lease_id", "queue")

    #: Assigned by the broker; ids increase in the order of enqueueing.
    id: str
    #: The queue that holds it.
    queue: str
    #: The lease under which it was delivered; empty for a message that was only read.
    lease_id: str

    def __init__(self, queue: str, message: messages_pb2.Message) -> None:
        self._message = message
        self._headers: dict[str, str] | None = None
        self.id = message.id
        self.lease_id = message.metadata.lease_id
        self.queue = queue

    @property
    def payload(self) -> bytes:
        return self._message.payload

    @property
    def headers(self) -> dict[str, str]:
        if self._headers is None:
            self._headers = dict(self._message.headers)
        return self._headers

    @property
    def fairness_key(self) -> str:
        """The fairness key under which the message was scheduled."""
        return self._message.metadata.fairness_key

    @property
    def weight(self) -> int:
        """The weight of its fairness key."""
        return self._message.metadata.weight

    @property
    def attempt_count(self) -> int:
        """How many attempts failed before this delivery."""
        return self._message.metadata.attempt_count

    @property
    def isolation(self) -> str:
        """Whether the message is delivered alone because a consumer died that held it: "suspect" when that consumer
        held other messages too, "confirmed" when it held no other; "" for a normal delivery.
        """
        return ISOLATION[self._message.metadata.isolation]

    @property
    def priority(self) -> int:
        """0 is the most urgent."""
        return self._message.metadata.priority

    @property
    def throttle_keys(self) -> list[str]:
        return list(self._message.metadata.throttle_keys)

    @property
    def cost(self) -> int:
        """How much of its key's quantum and of its throttles' tokens the delivery spent."""
        return self._message.metadata.cost

    @property
    def dead_letter(self) -> DeadLetter | None:
        """Why it is a dead letter, if it comes from a dead-letter queue."""
        metadata = self._message.metadata
        return dead_letter(metadata.dead_letter) if metadata.HasField("dead_letter") else None

    @property
    def enqueued_at(self) -> datetime:
        return self._message.timestamps.enqueued_at.ToDatetime(UTC)

    @property
    def enqueued_at_ns(self) -> int:
        """In nanoseconds since the epoch. Unique within the broker."""
        stamp = self._message.timestamps.enqueued_at
        return stamp.seconds * 1_000_000_000 + stamp.nanos

    @property
    def leased_at(self) -> datetime:
        return self._message.timestamps.leased_at.ToDatetime(UTC)

    def span(self) -> AbstractContextManager[Any]:
        """A span for processing the message, as a child of the producer's span: `with message.span(): ...`.

        Does nothing in a program that does not use OpenTelemetry.
        """
        return processing_span(self.queue, self.id, self.headers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, queue={self.queue!r}, attempt_count={self.attempt_count})"


class Delivery(ReadMessage, Generic[Settled_co]):
    """A delivered message. Settle it with `ack`, `nack`, `release` or `reject`."""

    __slots__ = ("_client",)

    def __init__(self, client: Settles[Settled_co], queue: str, message: messages_pb2.Message) -> None:
        super().__init__(queue, message)
        self._client = client

    def ack(self) -> Settled_co:
        """Remove the message for good. Raises MessageNotFoundError when its lease has ended."""
        return self._client.ack(self.queue, self.id, self.lease_id)

    def nack(self, error: str = "", *, delay_ms: int = 0) -> Settled_co:
        """Return the message as failed: it is retried after `delay_ms`. Raises as `ack`."""
        return self._client.nack(self.queue, self.id, error, delay_ms=delay_ms, lease_id=self.lease_id)

    def release(self, *, delay_ms: int = 0) -> Settled_co:
        """Return the message without counting an attempt. Raises as `ack`."""
        return self._client.release(self.queue, self.id, delay_ms=delay_ms, lease_id=self.lease_id)

    def reject(self, error: str = "") -> Settled_co:
        """Move the message to the dead-letter queue, regardless of the queue's settings. Raises as `ack`."""
        return self._client.reject(self.queue, self.id, error, lease_id=self.lease_id)

    def extend(self, extend_ms: int = 0) -> Settled_co:
        """Extend the lease to `extend_ms` from now; 0 means the queue's visibility timeout. Raises as `ack`."""
        return self._client.extend(self.queue, self.id, self.lease_id, extend_ms)


def dead_letter(letter: messages_pb2.DeadLetter) -> DeadLetter:
    attempts = failed_attempts(letter.attempts)
    return DeadLetter(
        letter.source_queue,
        letter.died_at.ToDatetime(UTC),
        name_of(messages_pb2.DeadLetterReason, letter.reason),
        attempts,
    )


def failed_attempts(attempts: Iterable[messages_pb2.FailedAttempt]) -> tuple[FailedAttempt, ...]:
    return tuple(
        FailedAttempt(one.attempt, one.failed_at.ToDatetime(UTC), name_of(messages_pb2.AttemptEnd, one.kind), one.error)
        for one in attempts
    )


class ConsumeMessage(Delivery[None]):
    """A message that `Client` delivered."""

    __slots__ = ()


class AsyncConsumeMessage(Delivery[Awaitable[None]]):
    """A message that `AsyncClient` delivered. Await its `ack`, `nack`, `release`, `reject` and `extend`."""

    __slots__ = ()
