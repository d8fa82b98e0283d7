"""What a consumer is granted, on its way out: read from the store as fast as the consumer takes it.

A caller of `Consume` says meanwhile how much of it its application was handed.

A lease is a promise of the whole cluster until it ends, and not longer: then another member may deliver what it covers,
and have it acked. So a broker that is not alone sends nothing whose lease has ended, also while it cannot write that it
has.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import repeat

from fila.broker.broker import Broker
from fila.broker.commands import Parting
from fila.broker.queue import QueueState
from fila.config import LimitsConfig
from fila.core.errors import InvalidArgument, KeyEnded
from fila.core.hands import Hands
from fila.core.leases import Grant
from fila.server.delivery_codec import DeliveryWriter
from fila.server.trace import caller_of
from fila.server.types import ServerCall
from fila.telemetry.tracing import Tracer
from fila.v1 import service_pb2
from fila.wire.server_call import RESPONSE_BYTES
from fila.wire.stream import EOF

VISIBILITY_TIMEOUT = "fila-visibility-timeout-ms"
"""The metadata by which a consumer learns how long its leases last."""


DEFAULT_IN_FLIGHT = 100


def check_credit(request: service_pb2.LeaseRequest | service_pb2.ConsumeRequest, limits: LimitsConfig) -> None:
    """Raises InvalidArgument."""
    if request.max_in_flight > limits.max_in_flight:
        raise InvalidArgument(f"max_in_flight must not exceed {limits.max_in_flight}")


def response_bytes(broker: Broker, queue: QueueState, usual: int) -> int:
    """How much memory a response with messages of a queue needs: a large message is a response by itself."""
    return max(usual, broker.state.limits.max_payload_bytes) if queue.large else usual


class Deliveries:
    """One Lease or Consume stream. Served by callbacks: what is granted leaves in the turn of its tick."""

    def __init__(self, broker: Broker, call: ServerCall, tracer: Tracer | None, hands: Hands | None = None) -> None:
        self.reason: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises why there will be no more."""
        self._broker = broker
        self._call = call
        self._tracer = tracer
        self._caller = caller_of(call) if tracer is not None else None
        self._responses: Iterator[bytes] = iter(())
        self._sending: Grant | None = None
        """What the responses are of"""
        self._sent: list[list[int]] = []
        """What of it was sent"""
        self._hands = hands
        self._told_ms = 0

    async def serve(self, queue: str, max_in_flight: int | None) -> None:
        """Deliver until the caller has gone. Raises QueueNotFound or ShuttingDown."""
        self._subscription = self._broker.subscribe(
            queue, DEFAULT_IN_FLIGHT if max_in_flight is None else max_in_flight, self, self._hands
        )
        parting = Parting.LEFT
        try:
            self._told_ms = self._subscription.queue.record.visibility_timeout_ms
            await self._call.send_initial_metadata(((VISIBILITY_TIMEOUT, str(self._told_ms)),))
            self._call.on_writable = self.granted
            if self._hands is not None:
                self._call.on_readable = self._heard
                self._heard()
            try:
                await self.reason
                parting = Parting.PAUSED
            except KeyEnded:  # a client whose key was exchanged comes back with the new one
                parting = Parting.KEPT
                raise
        finally:
            self._call.on_writable = self._call.on_readable = None
            how = Parting.LOST if self._call.connection_lost else parting
            self._broker.unsubscribe(self._subscription, how, self._unsent())

    def _unsent(self) -> set[int]:
        """What is left of what is being sent."""
        left = set() if self._sending is None else set(self._sending.members)
        return left.difference(*self._sent)

    def _heard(self) -> None:
        """The caller says how much its application was handed, how much it wants to hold, or that it wants no more."""
        assert self._hands is not None
        try:
            while not self.reason.done() and (request := self._call.take()) is not None:
                if request is EOF:
                    self.reason.set_result(None)
                else:
                    self._hands.report(request.handed)
                    if request.HasField("max_in_flight"):
                        check_credit(request, self._broker.state.limits)
                        self._broker.set_credit(self._subscription, request.max_in_flight)
        except Exception as error:  # noqa: BLE001  # whatever it is, it ends this stream and no other
            self.ended(error)

    def granted(self) -> None:
        """Send while the caller takes it."""
        try:
            while not self.reason.done() and self._call.ready_to_send(self._reserve()):
                response = next(self._responses, None)
                if response is not None:
                    self._call.send(response)
                    continue
                grant = self._subscription.take()
                if grant is None:
                    self._call.send_nothing()
                    return
                self._responses = self._encoded(grant)
        except asyncio.CancelledError:
            self.reason.cancel()
        except Exception as error:  # noqa: BLE001  # whatever it is, it ends this stream and no other
            self.ended(error)

    def _reserve(self) -> int:
        """Only large messages have to reserve memory: others never exceed the window by much."""
        return response_bytes(self._broker, self._subscription.queue, 0)

    def flush(self) -> None:
        self._call.flush()

    def ended(self, reason: Exception) -> None:
        if not self.reason.done():
            self.reason.set_exception(reason)

    def _encoded(self, grant: Grant) -> Iterator[bytes]:
        broker, queue = self._broker, self._subscription.queue
        death_of = partial(broker.records.death_of, queue) if queue.record.source else None
        leased_at = broker.now()
        isolation = max(map(queue.suspicion.get, grant.members, repeat(0))) if queue.suspicion else 0
        writer = DeliveryWriter(broker.state.ids, grant.token, leased_at, queue.attempts, death_of, isolation)
        size = 0
        self._sending, self._sent = grant, []
        parts = self._news()
        for messages in broker.records.read(queue, grant):
            if not broker.is_alone and grant.expires_at <= broker.now():
                break
            more = sum(len(record) for _, _, record in messages)
            if size and size + more > RESPONSE_BYTES:
                size = 0
                yield _joined(parts)
            size += more
            writer.write(messages, parts)
            seqs = [seq for seq, _, _ in messages]
            self._sent.append(seqs)  # what stands in `parts` leaves before anything else is asked
            if self._hands is not None:
                self._hands.send(grant.token, seqs)
            if self._tracer is not None:
                self._tracer.leased(queue, messages, leased_at, broker.now(), self._caller)
            del messages
        if parts:
            yield _joined(parts)

    def _news(self) -> list[bytes]:
        """How long leases last, if that was changed: the beginning of a response."""
        timeout_ms = self._subscription.queue.record.visibility_timeout_ms
        if timeout_ms == self._told_ms:
            return []
        self._told_ms = timeout_ms
        return [service_pb2.LeaseResponse(visibility_timeout_ms=timeout_ms).SerializeToString()]


def _joined(parts: list[bytes]) -> bytes:
    """A response. Nothing of it is kept beside it, for the caller may not take it for long, and it alone is counted."""
    response = b"".join(parts)
    parts.clear()
    return response
