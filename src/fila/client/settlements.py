"""Acks, nacks and extensions of leases, as values."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fila.client.errors import AckManyError, FilaError, InvalidArgumentError
from fila.client.message import Delivery
from fila.v1 import service_pb2

#: Messages of one batch: about 200 KB of ids.
MAX_BATCH_IDS = 5000

Failures: TypeAlias = Mapping[tuple[str, str], FilaError]
"""The errors of the messages that were not settled, by queue and message id."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What to do with messages of one queue that are held under one lease; without a lease id, under any lease."""

    queue: str
    lease_id: str
    message_ids: Sequence[str]


class Ack(Settlement):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Nack(Settlement):
    error: str
    delay_ms: int
    release: bool = False
    dead_letter: bool = False


@dataclass(frozen=True, slots=True)
class Extend(Settlement):
    extend_ms: int


def ack(queue: str, message_id: str, lease_id: str | None) -> Ack:
    """As `nack` and `extend`, raises InvalidArgumentError when an argument has the wrong type."""
    _check(service_pb2.AckRequest, queue=queue, message_id=message_id, lease_id=lease_id)
    return Ack(queue, lease_id or "", (message_id,))


def nack(queue: str, message_id: str, error: str, delay_ms: int, lease_id: str | None) -> Nack:
    fields = {"queue": queue, "message_id": message_id, "error": error, "delay_ms": delay_ms, "lease_id": lease_id}
    _check(service_pb2.NackRequest, **fields)
    return Nack(queue, lease_id or "", (message_id,), error, delay_ms)


def release(queue: str, message_id: str, delay_ms: int, lease_id: str | None) -> Nack:
    """A nack that counts no attempt."""
    return replace(nack(queue, message_id, "", delay_ms, lease_id), release=True)


def reject(queue: str, message_id: str, error: str, lease_id: str | None) -> Nack:
    """A nack that sends the message to the dead-letter queue."""
    return replace(nack(queue, message_id, error, 0, lease_id), dead_letter=True)


def extend(queue: str, message_id: str, lease_id: str | None, extend_ms: int) -> Extend:
    fields = {"queue": queue, "message_id": message_id, "lease_id": lease_id, "extend_ms": extend_ms}
    _check(service_pb2.ExtendLeaseRequest, **fields)
    return Extend(queue, lease_id or "", (message_id,), extend_ms)


def ack_groups(messages: Iterable[Delivery[Any]]) -> Iterator[list[Ack]]:
    """Acks of messages, each message once, grouped by lease, in portions that fit into one batch."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    count = 0
    for message in messages:
        if count == MAX_BATCH_IDS:
            yield [Ack(queue, lease_id, list(ids)) for (queue, lease_id), ids in groups.items()]
            groups, count = {}, 0
        groups.setdefault((message.queue, message.lease_id), {})[message.id] = None
        count += 1
    if groups:
        yield [Ack(queue, lease_id, list(ids)) for (queue, lease_id), ids in groups.items()]


def check_one(failures: Failures) -> None:
    """Raises the error of the only message, if it failed."""
    for error in failures.values():
        raise error


def check_all(outcomes: Iterable[Failures | BaseException]) -> None:
    """Raises AckManyError if messages were refused, or the error with which a whole portion failed."""
    failed: dict[str, FilaError] = {}
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        failed.update({message_id: error for (_, message_id), error in outcome.items()})
    if failed:
        raise AckManyError(failed)


def _check(request: Callable[..., object], **fields: object) -> None:
    try:
        request(**fields)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(str(error)) from error
