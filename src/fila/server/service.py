"""FilaService: the hot path. Each handler decodes, calls the broker, encodes.

docs/changing.md says where to go to add an RPC.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fila.broker.admission import check_batch_size, check_settle_size
from fila.broker.broker import Broker
from fila.broker.commands import (
    NOBODY,
    AckGroup,
    Earlier,
    Enqueue,
    EnqueueResult,
    ExtendGroup,
    Failure,
    Incoming,
    Nack,
    Produced,
    Settle,
    StageEnqueue,
    count_ids,
)
from fila.broker.staging import check_parts
from fila.config import KIB, MIB, LimitsConfig
from fila.core.errors import BrokerError, InvalidArgument
from fila.core.hands import Hands
from fila.internal import wire_pb2
from fila.server import message_codec, settle_codec
from fila.server.access import Access, Gate
from fila.server.access_table import RULES
from fila.server.decode_limits import (
    BATCH_SEQUENCE,
    SETTLE_SEQUENCE,
    excess_of_batch,
    excess_of_message,
    excess_of_settle,
    sequence_of,
)
from fila.server.deliveries import Deliveries, check_credit
from fila.server.greeting import Greeting
from fila.server.reading import Reading
from fila.server.streams import RefusedRequest, Reply, Streams, Talk
from fila.server.trace import adopt_trace, caller_of
from fila.server.types import Method, Methods, ServerCall, SmallMethod
from fila.telemetry.tracing import Parent, Tracer
from fila.v1 import service_pb2 as pb
from fila.wire.stream import EOF

MORE_BYTES = 64 * KIB
"""What a message may have besides payload and headers: names, keys, numbers."""
SETTLE_WORK = 64
"""How much work a byte of a settle is beside a byte of a batch: an id has 38 bytes, and one that nobody holds is looked
up in 60 us."""

CONSUME = "/fila.v1.FilaService/Consume"

Read = Callable[[bytes], Any]


class FilaService:
    """The handlers of the contract's FilaService."""

    def __init__(
        self, broker: Broker, streams: Streams, limits: LimitsConfig, gate: Gate, tracer: Tracer | None = None
    ) -> None:
        self._broker = broker
        self._gate = gate
        self._tracer = tracer
        self._streams = streams
        self._limits = limits

    async def enqueue(self, request: pb.EnqueueRequest, call: ServerCall) -> pb.EnqueueResponse:
        messages = [message_codec.read_message(request)]
        adopt_trace(messages, call, self._limits)
        access = self._gate.of(call)
        if access.restricted:
            messages = access.screen(messages)
        (outcome,) = await self._enqueue(messages, call)
        if isinstance(outcome, BrokerError):
            raise outcome
        return pb.EnqueueResponse(
            message_id=self._broker.state.ids.text(outcome), duplicate=isinstance(outcome, Earlier)
        )

    async def enqueue_batch(self, batch: message_codec.Batch, call: ServerCall) -> bytes:
        request = batch.request
        messages = self._read_batch(request)
        produced = message_codec.produced(batch, messages)
        adopt_trace(messages, call, self._limits)  # after the digest: a retry may be of another trace
        access = self._gate.of(call)
        if access.restricted:
            messages = access.screen(messages)
        outcomes = await self._enqueue(messages, call, produced)
        return message_codec.write_outcomes(self._broker.state.ids, outcomes, request.sequence)

    async def enqueue_stream(self, _: object, call: ServerCall) -> None:
        ask = partial(self._take_batch, self._caller(call), self._gate.of(call))
        await self._streams.serve(call, Talk(ask, lambda batch: batch.request.sequence, message_codec.write_refused))

    def _take_batch(self, caller: Parent | None, access: Access, batch: message_codec.Batch, reply: Reply) -> None:
        self._take_messages(caller, access, batch, self._read_batch(batch.request), reply)

    def _take_messages(
        self, caller: Parent | None, access: Access, batch: message_codec.Batch, messages: list[Incoming], reply: Reply
    ) -> None:
        sequence = batch.request.sequence
        produced = message_codec.produced(batch, messages)
        if access.restricted:
            messages = access.screen(messages)
        began = self._broker.now()

        def encode(outcomes: Sequence[EnqueueResult]) -> bytes:
            if self._tracer is not None:
                self._tracer.enqueued(messages, outcomes, began, self._broker.now(), caller)
            return message_codec.write_outcomes(self._broker.state.ids, outcomes, sequence)

        traced = self._tracer is not None
        self._broker.submit(Enqueue(messages, partial(reply, encode), produced, traced))

    def _read_batch(self, request: wire_pb2.EncodedEnqueueBatch | wire_pb2.EncodedStageEnqueue) -> list[Incoming]:
        """Raises LimitExceeded for too many messages, before it looks at any, or InvalidArgument."""
        check_batch_size(len(request.messages), self._limits)
        return message_codec.read_batch(request, self._limits)

    def _caller(self, call: ServerCall) -> Parent | None:
        return caller_of(call) if self._tracer is not None else None

    async def _enqueue(
        self, messages: list[Incoming], call: ServerCall, produced: Produced = NOBODY
    ) -> Sequence[EnqueueResult]:
        if self._tracer is None:
            return await self._broker.enqueue(messages, produced)
        began = self._broker.now()
        outcomes = await self._broker.enqueue(messages, produced, traced=True)
        self._tracer.enqueued(messages, outcomes, began, self._broker.now(), caller_of(call))
        return outcomes

    async def stage_enqueue(self, request: wire_pb2.EncodedStageEnqueue, call: ServerCall) -> pb.StageEnqueueResponse:
        messages = self._read_batch(request)
        access = self._gate.of(call)
        if access.restricted:
            access.screen_all(messages)
        committed = await self._broker.stage(
            lambda reply: StageEnqueue(
                access.own(request.producer),
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
        self, request: pb.CommitTransactionRequest, call: ServerCall
    ) -> pb.CommitTransactionResponse:
        check_parts(len(request.parts))
        parts = [(part.part, part.messages) for part in request.parts]
        producer = self._gate.of(call).own(request.producer)
        before = await self._broker.commit_transaction(producer, request.transaction, parts)
        return pb.CommitTransactionResponse(committed_before=before)

    async def lease(self, request: pb.LeaseRequest, call: ServerCall) -> None:
        check_credit(request, self._limits)
        deliveries = Deliveries(self._broker, call, self._tracer)
        self._gate.of(call).on_end = deliveries.ended
        await deliveries.serve(request.queue, request.max_in_flight or None)

    async def consume(self, _: object, call: ServerCall) -> None:
        request = await call.read()
        if request is EOF:
            raise InvalidArgument("the first request must name a queue")
        self._gate.require_first(call, RULES[CONSUME], request)
        check_credit(request, self._limits)
        deliveries = Deliveries(self._broker, call, self._tracer, Hands())
        self._gate.of(call).on_end = deliveries.ended
        await deliveries.serve(request.queue, request.max_in_flight if request.HasField("max_in_flight") else None)

    async def ack(self, request: pb.AckRequest, call: ServerCall) -> pb.AckResponse:
        group = AckGroup(request.queue, [request.message_id], request.lease_id)
        _raise_first(await self._settle(call, [group], []))
        return pb.AckResponse()

    async def nack(self, request: pb.NackRequest, call: ServerCall) -> pb.NackResponse:
        nack: Nack = settle_codec.read_nack(request)
        _raise_first(await self._settle(call, [], [nack]))
        return pb.NackResponse()

    async def extend_lease(self, request: pb.ExtendLeaseRequest, call: ServerCall) -> pb.ExtendLeaseResponse:
        group = ExtendGroup(request.queue, [request.message_id], request.lease_id, request.extend_ms)
        _raise_first(await self._settle(call, [], [], [group]))
        return pb.ExtendLeaseResponse()

    async def settle(self, _: object, call: ServerCall) -> None:
        ask = partial(self._settle_batch, self._caller(call), self._gate.of(call))
        await self._streams.serve(call, Talk(ask, lambda request: request.sequence, settle_codec.write_refused))

    def _check_settle(self, request: pb.SettleRequest) -> None:
        """Raises LimitExceeded for a batch that is too large, before anything of it is read."""
        check_settle_size(len(request.acks) + len(request.extends) + len(request.nacks), self._limits)
        named = count_ids(request.acks) + count_ids(request.extends)  # of few groups, as the line before has seen
        check_settle_size(len(request.nacks) + named, self._limits)

    def _settle_batch(self, caller: Parent | None, access: Access, request: pb.SettleRequest, reply: Reply) -> None:
        self._check_settle(request)
        acks, extends = settle_codec.read_acks(request.acks), settle_codec.read_extends(request.extends)
        nacks = [settle_codec.read_nack(nack) for nack in request.nacks]
        denied = access.screen_settle(acks, nacks, extends) if access.restricted else []
        sequence, began = request.sequence, self._broker.now()
        settling = self._tracer.settling(acks, nacks, caller, began) if self._tracer is not None else None

        def encode(failures: list[Failure]) -> pb.SettleResponse:
            if self._tracer is not None:
                self._tracer.settled(acks, nacks, failures, began, self._broker.now(), settling)
            return settle_codec.write_failures(denied + failures, sequence)

        self._broker.submit(Settle(partial(reply, encode), acks, nacks, extends))

    async def _settle(
        self, call: ServerCall, acks: list[AckGroup], nacks: list[Nack], extends: Sequence[ExtendGroup] = ()
    ) -> list[Failure]:
        began = self._broker.now()
        tracer = self._tracer
        settling = tracer.settling(acks, nacks, caller_of(call), began) if tracer is not None else None
        failures = await self._broker.settle(lambda reply: Settle(reply, acks, nacks, list(extends)))
        if tracer is not None:
            tracer.settled(acks, nacks, failures, began, self._broker.now(), settling)
        return failures


def _raise_first(failures: list[Failure]) -> None:
    if failures:
        raise failures[0].error


def methods(service: FilaService, reading: Reading, greeting: Greeting, limits: LimitsConfig) -> Methods:
    """The service, by the names of its methods. What is encoded by hand goes out as it is."""

    def identity(encoded: bytes) -> bytes:
        return encoded

    def bounded(read: Callable[[bytes], Any], excess_of: Callable[[bytes, LimitsConfig], BrokerError | None]) -> Read:
        """Decodes a request, unless there is too much in it: then it is the refusal."""
        return lambda encoded: excess_of(encoded, limits) or read(encoded)

    def numbered(read: Read, tag: int) -> Read:
        """The same of a stream: the refusal has the number of the request, if that can be found."""

        def receive(encoded: bytes) -> Any:
            request = read(encoded)
            if not isinstance(request, BrokerError):
                return request
            sequence = sequence_of(encoded, tag, limits)
            return request if sequence is None else RefusedRequest(sequence, request)

        return receive

    batch = bounded(message_codec.receive_batch, excess_of_batch)
    batches = numbered(batch, BATCH_SEQUENCE)
    stage = bounded(wire_pb2.EncodedStageEnqueue.FromString, excess_of_batch)
    settle = bounded(pb.SettleRequest.FromString, excess_of_settle)
    settles = numbered(settle, SETTLE_SEQUENCE)
    message = bounded(pb.EnqueueRequest.FromString, excess_of_message)
    return {
        "Describe": SmallMethod(
            greeting.describe, pb.DescribeRequest.FromString, pb.DescribeResponse.SerializeToString
        ),
        "GetClusterMap": SmallMethod(
            greeting.get_cluster_map, pb.GetClusterMapRequest.FromString, pb.GetClusterMapResponse.SerializeToString
        ),
        "Enqueue": Method(
            service.enqueue,
            message,
            pb.EnqueueResponse.SerializeToString,
            max_request_bytes=limits.max_payload_bytes + limits.max_header_bytes + MORE_BYTES,
            bulk=1,
        ),
        "EnqueueBatch": Method(service.enqueue_batch, batch, identity, bulk=1),
        "EnqueueStream": Method(
            service.enqueue_stream, batches, identity, takes_stream=True, gives_stream=True, bulk=1
        ),
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
            settles,
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
