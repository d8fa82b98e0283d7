"""Acks, nacks and extensions: coalesces concurrent ones into batches on one stream.

An answer names only the failures, by queue and message id. So that it is clear whose failure it is, no batch holds the
same message twice; the second request waits for the next batch.

A batch whose answer was lost is sent again. If the broker then says that an acked message is gone for good, the ack
counts as done. If it does not, the message may be in its queue, with another consumer or among the dead letters: the
ack has failed.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from fila.client.connection import Connection
from fila.client.errors import AckManyError, FilaError, InvalidArgumentError, from_number
from fila.client.held import HeldLeases
from fila.client.message import Delivery
from fila.client.outbox import Batch
from fila.client.reply import Reply
from fila.client.stream import BatchStream
from fila.client.waiter import Waiter
from fila.v1 import service_pb2

#: Messages of one batch: about 200 KB of ids.
MAX_BATCH_IDS = 5000

Failures: TypeAlias = Mapping[tuple[str, str], FilaError]


@dataclass(frozen=True, slots=True)
class Settlement:
    """What one caller wants done with messages of one queue under one lease; without a lease id, under any."""

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


@dataclass(slots=True, eq=False)
class Settle(Waiter):
    """One caller's settlements. The answer is a dictionary of those that failed."""

    settlements: Sequence[Settlement]


class SettleCodec:
    """Merges settlements into requests."""

    def __init__(self) -> None:
        self._sequence = 0

    def make_batch(self, gathered: deque[Settle]) -> Batch[Settle] | None:
        settles: list[Settle] = []
        messages: set[tuple[str, str]] = set()
        while gathered:
            if gathered[0].waits():
                more = _messages(gathered[0])
                if settles and (len(messages) + len(more) > MAX_BATCH_IDS or not messages.isdisjoint(more)):
                    break
                messages |= more
                settles.append(gathered[0])
            gathered.popleft()
        if not settles:
            return None
        self._sequence += 1
        return Batch(_request(settles, self._sequence).SerializeToString(), settles, self._sequence)

    def answer(self, batch: Batch[Settle], response: bytes) -> None:
        answer = service_pb2.SettleResponse.FromString(response)
        batch.check_answer(answer.sequence)
        answered = answer.failures
        failures = {
            (failure.queue, failure.message_id): from_number(failure.error.code, failure.error.message)
            for failure in answered
        }
        if failures and batch.resent:
            gone = {(failure.queue, failure.message_id) for failure in answered if failure.message_gone}
            failures = {message: failures[message] for message in failures.keys() - (_acks(batch) & gone)}
        for settle in batch.waiters:
            settle.answer(
                {message: failures[message] for message in _messages(settle) & failures.keys()} if failures else {}
            )


class Settler:
    """The settling half of a client. Lives on one event loop."""

    def __init__(self, connection: Connection, held: HeldLeases) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout_s = connection.timeout_s
        self._held = held
        self._stream = BatchStream(connection.open_settle, SettleCodec(), connection.timeout_s)
        self.close = self._stream.close

    def submit(self, settlements: Sequence[Settlement], reply: Reply) -> None:
        """Carry out settlements of messages that differ. `reply` gets `Failures`, or an exception for all."""
        forget_settled(self._held, settlements)
        self._stream.submit(Settle(reply, self._loop.time() + self._timeout_s, settlements))


def forget_settled(held: HeldLeases, settlements: Iterable[Settlement]) -> None:
    """What is about to be settled needs no lease that is kept alive."""
    for settlement in settlements:
        if not isinstance(settlement, Extend):
            held.forget(settlement.queue, settlement.lease_id, settlement.message_ids)


def ack(queue: str, message_id: str, lease_id: str | None) -> Ack:
    """Raises InvalidArgumentError when a value has the wrong type, as do `nack` and `extend`."""
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
    """A nack after which the message is dead."""
    return replace(nack(queue, message_id, error, 0, lease_id), dead_letter=True)


def extend(queue: str, message_id: str, lease_id: str | None, extend_ms: int) -> Extend:
    fields = {"queue": queue, "message_id": message_id, "lease_id": lease_id, "extend_ms": extend_ms}
    _check(service_pb2.ExtendLeaseRequest, **fields)
    return Extend(queue, lease_id or "", (message_id,), extend_ms)


def ack_groups(messages: Iterable[Delivery[Any]]) -> Iterator[list[Ack]]:
    """Acks of messages, each once, by lease, in portions that fit into one batch."""
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
    """Raises the error of the only message."""
    for error in failures.values():
        raise error


def check_all(outcomes: Iterable[Failures | BaseException]) -> None:
    """Raises AckManyError for messages that were refused, or the error that a whole portion met."""
    failed: dict[str, FilaError] = {}
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        failed.update({message_id: error for (_, message_id), error in outcome.items()})
    if failed:
        raise AckManyError(failed)


def _check(kind: Callable[..., object], **fields: object) -> None:
    try:
        kind(**fields)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(str(error)) from error


def _messages(settle: Settle) -> set[tuple[str, str]]:
    return {(part.queue, message_id) for part in settle.settlements for message_id in part.message_ids}


def _request(settles: Iterable[Settle], sequence: int) -> service_pb2.SettleRequest:
    acks: dict[tuple[str, str], list[str]] = {}
    request = service_pb2.SettleRequest(sequence=sequence)
    for settle in settles:
        for part in settle.settlements:
            match part:
                case Ack():
                    acks.setdefault((part.queue, part.lease_id), []).extend(part.message_ids)
                case Nack():
                    for message_id in part.message_ids:
                        request.nacks.add(
                            queue=part.queue,
                            message_id=message_id,
                            error=part.error,
                            lease_id=part.lease_id,
                            delay_ms=part.delay_ms,
                            release=part.release,
                            dead_letter=part.dead_letter,
                        )
                case Extend():
                    request.extends.add(
                        queue=part.queue,
                        lease_id=part.lease_id,
                        message_ids=part.message_ids,
                        extend_ms=part.extend_ms,
                    )
    for (queue, lease_id), message_ids in acks.items():
        request.acks.add(queue=queue, lease_id=lease_id, message_ids=message_ids)
    return request


def _acks(batch: Batch[Settle]) -> set[tuple[str, str]]:
    """The messages that a batch acks."""
    return {
        (part.queue, message_id)
        for settle in batch.waiters
        for part in settle.settlements
        if isinstance(part, Ack)
        for message_id in part.message_ids
    }
