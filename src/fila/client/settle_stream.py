"""Acks, nacks and extensions: concurrent ones travel together, in batches on one stream.

An answer names only the failures, by queue and message id. So that it is clear whose failure it is, no batch holds the
same message twice: the second request waits for the next batch.

A batch whose answer was lost is sent again. If the broker then says that an acked message is gone for good, the ack
counts as done. If it does not, the message may be in its queue, with another consumer or among the dead letters: the
ack has failed. A broker that refuses the second sending for a while says neither, so the batch is sent once more.
"""

import asyncio
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fila.client.batch_stream import BatchStream
from fila.client.connection import Connection
from fila.client.errors import FilaError, from_error
from fila.client.in_flight import InFlight
from fila.client.reply import Reply
from fila.client.send_window import Batch
from fila.client.settlements import MAX_BATCH_IDS, Ack, Extend, Nack, Settlement
from fila.client.waiter import Waiter
from fila.v1 import errors_pb2, service_pb2

_GONE = errors_pb2.ERROR_KIND_MESSAGE_GONE


@dataclass(slots=True, eq=False)
class Settle(Waiter):
    """One caller's settlements. The answer is `Failures`."""

    settlements: Sequence[Settlement]


class SettleCodec:
    """Merges settlements into SettleRequests, and splits the answers."""

    #: A settlement names its lease, so it may be repeated for ever.
    repeatable_s = math.inf

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

    def answer(self, batch: Batch[Settle], response: bytes) -> FilaError | None:
        answer = service_pb2.SettleResponse.FromString(response)
        batch.check_answer(answer.sequence)
        if answer.HasField("error"):
            return batch.refuse(from_error(answer.error))
        answered = answer.failures
        failures = {(failure.queue, failure.message_id): from_error(failure.error) for failure in answered}
        if failures and batch.resent:
            gone = {(failure.queue, failure.message_id) for failure in answered if failure.error.kind == _GONE}
            failures = {message: failures[message] for message in failures.keys() - (_acks(batch) & gone)}
        for settle in batch.waiters:
            settle.answer(
                {message: failures[message] for message in _messages(settle) & failures.keys()} if failures else {}
            )
        return None


class SettleStream:
    """The stream on which a client settles messages. Belongs to one event loop."""

    def __init__(self, connection: Connection, in_flight: InFlight) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout_s = connection.timeout_s
        self._in_flight = in_flight
        self._stream = BatchStream(connection.open_settle, SettleCodec(), connection.timeout_s)
        self.close = self._stream.close

    def submit(self, settlements: Sequence[Settlement], reply: Reply) -> None:
        """Settle messages, each named once. `reply` gets `Failures`, or one exception for all."""
        forget_settled(self._in_flight, settlements)
        self._stream.submit(Settle(reply, self._loop.time() + self._timeout_s, settlements))


def forget_settled(in_flight: InFlight, settlements: Iterable[Settlement]) -> None:
    """Extend no longer the leases of messages that are about to be settled."""
    for settlement in settlements:
        if not isinstance(settlement, Extend):
            in_flight.forget(settlement.queue, settlement.lease_id, settlement.message_ids)


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
