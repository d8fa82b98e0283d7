"""FilaService: the hot path. Each handler decodes, calls the broker, encodes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fila.broker.admission import check_batch_size, check_settle_size
from fila.broker.broker import Broker
from fila.broker.commands import (
    NOBODY,
    AckGroup,
    Enqueue,
    ExtendGroup,
    Failure,
    Incoming,
    Nack,
    Outcome,
    Produced,
    Settle,
    StageEnqueue,
    count_ids,
)
from fila.broker.transactions import check_parts
from fila.config import KIB, MIB, LimitsConfig
from fila.core.errors import BrokerError, InvalidArgument
from fila.core.hands import Hands
from fila.server import codec
from fila.server.deliveries import Deliveries
from fila.server.reading import Reading
from fila.server.shape import excess_of_batch, excess_of_message, excess_of_settle
from fila.server.streams import Reply, Streams
from fila.server.trace import adopt_trace, caller_of
from fila.server.types import Context, Method, Methods, SmallMethod
from fila.telemetry.tracing import Parent, Tracer
from fila.v1 import service_pb2 as pb
from fila.wire.stream import EOF

DEFAULT_IN_FLIGHT = 100
MORE_BYTES = 64 * KIB
"""What a message may have besides payload and headers: names, keys, numbers."""
SETTLE_WORK = 64
"""How much work a byte of a settle is beside a byte of a batch: an id has 38 bytes, and one that nobody holds is looked
up in 60 us."""

Read = Callable[[bytes], Any]


class FilaService:
    """The handlers of the contract's FilaService."""

    def __init__(self, broker: Broker, streams: Streams, limits: LimitsConfig, tracer: Tracer | None = None) -> None:
        self._broker = broker
        self._tracer = tracer
        self._streams = streams
        self._limits = limits

    async def enqueue(self, request: pb.EnqueueRequest, context: Context) -> pb.EnqueueResponse:
        messages = [codec.read_message(request)]
        adopt_trace(messages, context, self._limits)
        (outcome,) = await self._enqueue(messages, context)
        if isinstance(outcome, BrokerError):
            raise outcome
        return pb.EnqueueResponse(message_id=self._broker.state.ids.text(outcome))

    async def enqueue_batch(self, batch: codec.Batch, context: Context) -> bytes:
        request = batch.request
        messages = self._read_batch(request)
        produced = Produced(request.producer_id, request.sequence, codec.digest(batch, messages))
        adopt_trace(messages, context, self._limits)  # after the digest: a retry may be of another trace
        outcomes = await self._enqueue(messages, context, produced)
        return codec.write_outcomes(self._broker.state.ids, outcomes, request.sequence)

    async def enqueue_stream(self, _: object, context: Context) -> None:
        await self._streams.serve(context, partial(self._take_batch, self._caller(context)))

    def _take_batch(self, caller: Parent | None, batch: codec.Batch, reply: Reply) -> None:
        request = batch.request
        messages, sequence = self._read_batch(request), request.sequence
        produced = Produced(request.producer_id, sequence, codec.digest(batch, messages))
        began = self._broker.now()

        def encode(outcomes: Sequence[Outcome]) -> bytes:
            if self._tracer is not None:
                self._tracer.enqueued(messages, outcomes, began, self._broker.now(), caller)
            return codec.write_outcomes(self._broker.state.ids, outcomes, sequence)

        traced = self._tracer is not None
        self._broker.submit(Enqueue(messages, partial(reply, encode), produced, traced))

    def _read_batch(self, request: pb.EncodedEnqueueBatch | pb.EncodedStageEnqueue) -> list[Incoming]:
        """Raises LimitExceeded for too many messages, before it looks at any, or InvalidArgument."""
        check_batch_size(len(request.messages), self._limits)
        return codec.read_batch(request, self._limits)

    def _caller(self, context: Context) -> Parent | None:
        return caller_of(context) if self._tracer is not None else None

    async def _enqueue(
        self, messages: list[Incoming], context: Context, produced: Produced = NOBODY
    ) -> Sequence[Outcome]:
        if self._tracer is None:
            return await self._broker.enqueue(messages, produced)
        began = self._broker.now()
        outcomes = await self._broker.enqueue(messages, produced, traced=True)
        self._tracer.enqueued(messages, outcomes, began, self._broker.now(), caller_of(context))
        return outcomes

    async def stage_enqueue(self, request: pb.EncodedStageEnqueue, _: Context) -> pb.StageEnqueueResponse:
        messages = self._read_batch(request)
        committed = await self._broker.stage(
            lambda reply: StageEnqueue(
                request.producer,
                request.transaction,
                request.part,
                request.sequence,
                messages,
                reply,
                request.ttl_ms,
            )
        )
        return pb.StageEnqueueResponse(committed=committed)

    async def commit_transaction(
        self, request: pb.CommitTransactionRequest, _: Context
    ) -> pb.CommitTransactionResponse:
        check_parts(len(request.parts))
        parts = [(part.part, part.messages) for part in request.parts]
        before = await self._broker.commit_transaction(request.producer, request.transaction, parts)
        return pb.CommitTransactionResponse(committed_before=before)

    async def lease(self, request: pb.LeaseRequest, context: Context) -> None:
        if request.max_in_flight > self._limits.max_in_flight:
            raise InvalidArgument(f"max_in_flight must not exceed {self._limits.max_in_flight}")
        deliveries = Deliveries(self._broker, context, self._tracer)
        await deliveries.serve(request.queue, request.max_in_flight or DEFAULT_IN_FLIGHT)

    async def consume(self, _: object, context: Context) -> None:
        request = await context.read()
        if request is EOF:
            raise InvalidArgument("the first request must name a queue")
        if request.max_in_flight > self._limits.max_in_flight:
            raise InvalidArgument(f"max_in_flight must not exceed {self._limits.max_in_flight}")
        deliveries = Deliveries(self._broker, context, self._tracer, Hands())
        await deliveries.serve(request.queue, request.max_in_flight or DEFAULT_IN_FLIGHT)

    async def ack(self, request: pb.AckRequest, context: Context) -> pb.AckResponse:
        group = AckGroup(request.queue, [request.message_id], request.lease_id)
        _raise_first(await self._settle(context, [group], []))
        return pb.AckResponse()

    async def nack(self, request: pb.NackRequest, context: Context) -> pb.NackResponse:
        nack: Nack = codec.read_nack(request)
        _raise_first(await self._settle(context, [], [nack]))
        return pb.NackResponse()

    async def extend_lease(self, request: pb.ExtendLeaseRequest, context: Context) -> pb.ExtendLeaseResponse:
        group = ExtendGroup(request.queue, [request.message_id], request.lease_id, request.extend_ms)
        _raise_first(await self._settle(context, [], [], [group]))
        return pb.ExtendLeaseResponse()

    async def settle(self, _: object, context: Context) -> None:
        await self._streams.serve(context, partial(self._settle_batch, self._caller(context)))

    def _check_settle(self, request: pb.SettleRequest) -> None:
        """Raises LimitExceeded for a batch that is too large, before anything of it is read."""
        check_settle_size(len(request.acks) + len(request.extends) + len(request.nacks), self._limits)
        named = count_ids(request.acks) + count_ids(request.extends)  # of few groups, as the line before has seen
        check_settle_size(len(request.nacks) + named, self._limits)

    def _settle_batch(self, caller: Parent | None, request: pb.SettleRequest, reply: Reply) -> None:
        self._check_settle(request)
        acks, extends = codec.read_acks(request.acks), codec.read_extends(request.extends)
        nacks = [codec.read_nack(nack) for nack in request.nacks]
        sequence, began = request.sequence, self._broker.now()
        settling = self._tracer.settling(acks, nacks, caller, began) if self._tracer is not None else None

        def encode(failures: list[Failure]) -> pb.SettleResponse:
            if self._tracer is not None:
                self._tracer.settled(acks, nacks, failures, began, self._broker.now(), settling)
            return codec.write_failures(failures, sequence)

        self._broker.submit(Settle(partial(reply, encode), acks, nacks, extends))

    async def _settle(
        self, context: Context, acks: list[AckGroup], nacks: list[Nack], extends: Sequence[ExtendGroup] = ()
    ) -> list[Failure]:
        began = self._broker.now()
        tracer = self._tracer
        settling = tracer.settling(acks, nacks, caller_of(context), began) if tracer is not None else None
        failures = await self._broker.settle(lambda reply: Settle(reply, acks, nacks, list(extends)))
        if tracer is not None:
            tracer.settled(acks, nacks, failures, began, self._broker.now(), settling)
        return failures


def _raise_first(failures: list[Failure]) -> None:
    if failures:
        raise failures[0].error


def methods(service: FilaService, reading: Reading, limits: LimitsConfig) -> Methods:
    """The service, by the names of its methods. What is encoded by hand goes out as it is."""

    def identity(encoded: bytes) -> bytes:
        return encoded

    def bounded(read: Callable[[bytes], Any], excess_of: Callable[[bytes, LimitsConfig], BrokerError | None]) -> Read:
        """Decodes a request, unless there is too much in it: then it is the refusal."""
        return lambda encoded: excess_of(encoded, limits) or read(encoded)

    batch = bounded(codec.receive_batch, excess_of_batch)
    stage = bounded(pb.EncodedStageEnqueue.FromString, excess_of_batch)
    settle = bounded(pb.SettleRequest.FromString, excess_of_settle)
    message = bounded(pb.EnqueueRequest.FromString, excess_of_message)
    return {
        "Enqueue": Method(
            service.enqueue,
            message,
            pb.EnqueueResponse.SerializeToString,
            max_request_bytes=limits.max_payload_bytes + limits.max_header_bytes + MORE_BYTES,
            bulk=1,
        ),
        "EnqueueBatch": Method(service.enqueue_batch, batch, identity, bulk=1),
        "EnqueueStream": Method(service.enqueue_stream, batch, identity, takes_stream=True, gives_stream=True, bulk=1),
        "Lease": SmallMethod(service.lease, pb.LeaseRequest.FromString, identity, gives_stream=True),
        "Consume": SmallMethod(
            service.consume, pb.ConsumeRequest.FromString, identity, takes_stream=True, gives_stream=True
        ),
        "Ack": SmallMethod(service.ack, pb.AckRequest.FromString, pb.AckResponse.SerializeToString),
        "Nack": Method(
            service.nack, pb.NackRequest.FromString, pb.NackResponse.SerializeToString, max_request_bytes=MIB
        ),
        "ExtendLease": SmallMethod(
            service.extend_lease, pb.ExtendLeaseRequest.FromString, pb.ExtendLeaseResponse.SerializeToString
        ),
        "Settle": Method(
            service.settle,
            settle,
            pb.SettleResponse.SerializeToString,
            takes_stream=True,
            gives_stream=True,
            bulk=SETTLE_WORK,
        ),
        "StageEnqueue": Method(service.stage_enqueue, stage, pb.StageEnqueueResponse.SerializeToString, bulk=1),
        "CommitTransaction": Method(
            service.commit_transaction,
            pb.CommitTransactionRequest.FromString,
            pb.CommitTransactionResponse.SerializeToString,
            max_request_bytes=MIB,
        ),
        "Claim": SmallMethod(reading.claim, pb.ClaimRequest.FromString, pb.ClaimResponse.SerializeToString),
        "DescribeClaim": SmallMethod(
            reading.describe_claim, pb.DescribeClaimRequest.FromString, pb.DescribeClaimResponse.SerializeToString
        ),
        "ReadClaim": SmallMethod(reading.read_claim, pb.ReadClaimRequest.FromString, identity, gives_stream=True),
        "AckClaims": SmallMethod(
            reading.ack_claims, pb.AckClaimsRequest.FromString, pb.AckClaimsResponse.SerializeToString
        ),
        "ExtendClaims": SmallMethod(
            reading.extend_claims, pb.ExtendClaimsRequest.FromString, pb.ExtendClaimsResponse.SerializeToString
        ),
        "ClaimFloor": SmallMethod(
            reading.claim_floor, pb.ClaimFloorRequest.FromString, pb.ClaimFloorResponse.SerializeToString
        ),
        "DropGroup": SmallMethod(
            reading.drop_group, pb.DropGroupRequest.FromString, pb.DropGroupResponse.SerializeToString
        ),
        "ReadQueue": SmallMethod(reading.read_queue, pb.ReadQueueRequest.FromString, identity, gives_stream=True),
    }
