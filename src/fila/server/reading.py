"""Claims and looks on the wire. Each handler decodes, calls the broker, encodes."""

import asyncio
from collections.abc import Iterable
from functools import partial

from fila.broker.broker import Broker
from fila.broker.grants import token_text
from fila.broker.queue import QueueState
from fila.broker.reading import Wanted
from fila.broker.records import Piece
from fila.broker.search import NEWEST_POSSIBLE, Query
from fila.core.claims import Claim, ClaimState
from fila.core.lifecycle import State
from fila.server.access import Gate
from fila.server.deliveries import response_bytes
from fila.server.delivery_codec import BareWriter, DeliveryWriter
from fila.server.types import ServerCall
from fila.v1 import service_pb2 as pb
from fila.wire.server_call import RESPONSE_BYTES

_STATES = {ClaimState.OPEN: pb.CLAIM_STATE_OPEN, ClaimState.EXPIRED: pb.CLAIM_STATE_EXPIRED}


class Reading:
    """The handlers of FilaService that read without being a consumer."""

    def __init__(self, broker: Broker, gate: Gate) -> None:
        self._broker = broker
        self._gate = gate
        self._readers = broker.readers
        #: Who reads the store: one reader in a turn of the event loop, however many there are, so that consumers and
        #: producers have theirs in between. A response of 4 MiB takes some 5 ms.
        self._turn = asyncio.Lock()

    async def claim(self, request: pb.ClaimRequest, _: ServerCall) -> pb.ClaimResponse:
        claim = await self._readers.claim(
            Wanted(
                request.queue,
                request.group,
                request.after,
                request.max_messages,
                request.lease_ms,
                request.epoch,
                request.cap,
                request.wait_ms,
            )
        )
        ready = self._broker.state.queue(request.queue).ready
        return pb.ClaimResponse(claim=None if claim is None else self._write(claim), ready=ready)

    async def describe_claim(self, request: pb.DescribeClaimRequest, _: ServerCall) -> pb.DescribeClaimResponse:
        claim = self._readers.describe(request.queue, request.group, request.number)
        return pb.DescribeClaimResponse(claim=self._write(claim))

    async def read_claim(self, request: pb.ReadClaimRequest, call: ServerCall) -> None:
        claim, pieces = self._readers.read(request.queue, request.group, request.number, request.low, request.high)
        queue = self._broker.state.queue(request.queue)
        response = _Response(None if request.bare else self._writer(queue, claim.token, claim.made_at))
        await call.send_initial_metadata(())
        behind = 0
        while True:
            await call.until_ready(response_bytes(self._broker, queue, RESPONSE_BYTES))
            async with self._turn:
                await asyncio.sleep(0)
                piece, position = next(pieces, ([], behind))
            if not piece:
                break
            size = _bytes(piece)
            if response.is_full_with(size):
                await call.write(response.take(pb.ReadClaimResponse(next=behind)))
            response.add(piece, size)
            behind = position
        if response.size:
            await call.write(response.take(pb.ReadClaimResponse(next=behind)))

    async def ack_claims(self, request: pb.AckClaimsRequest, _: ServerCall) -> pb.AckClaimsResponse:
        acked = await self._readers.ack(request.queue, request.group, request.upto, request.epoch)
        return pb.AckClaimsResponse(messages=acked.messages, expired=acked.expired)

    async def extend_claims(self, request: pb.ExtendClaimsRequest, _: ServerCall) -> pb.ExtendClaimsResponse:
        done = await self._readers.extend(request.queue, request.group, request.lease_ms, request.epoch)
        return pb.ExtendClaimsResponse(extended=done.extended, expired=done.expired)

    async def claim_floor(self, request: pb.ClaimFloorRequest, _: ServerCall) -> pb.ClaimFloorResponse:
        floor = await self._readers.floor(request.queue, request.group)
        return pb.ClaimFloorResponse(
            floor=floor.floor,
            last=floor.last,
            epoch=floor.epoch,
            newest=floor.newest,
            ready=floor.ready,
            delayed=floor.delayed,
        )

    async def drop_group(self, request: pb.DropGroupRequest, call: ServerCall) -> pb.DropGroupResponse:
        await self._readers.drop(request.queue, request.group, self._gate.of(call).origin)
        return pb.DropGroupResponse()

    async def read_queue(self, request: pb.ReadQueueRequest, call: ServerCall) -> None:
        queue = self._broker.state.queue(request.queue)
        states = {State.READY}
        states |= set() if request.ready_only else {State.DELAYED}
        states |= {State.LEASED} if request.leased else set()
        query = Query(low=request.low, high=request.high or NEWEST_POSSIBLE, states=frozenset(states))
        response = _Response(None if request.bare else self._writer(queue, None, 0))
        left = request.max_messages or NEWEST_POSSIBLE
        await call.send_initial_metadata(())
        behind = 0
        found = self._readers.look(request.queue, query, request.part, request.parts or 1)
        while True:
            await call.until_ready(response_bytes(self._broker, queue, RESPONSE_BYTES))
            async with self._turn:
                await asyncio.sleep(0)
                piece = await anext(found, None)
            if piece is None:
                break
            for some in _by_size(piece[:left]):
                size = _bytes(some)
                if response.is_full_with(size):
                    await call.write(response.take(pb.ReadQueueResponse(next=behind)))
                response.add(some, size)
                behind = some[-1][0] + 1
            left -= len(piece)
            if left <= 0:
                break
        if response.size:
            await call.write(response.take(pb.ReadQueueResponse(next=behind)))

    def _writer(self, queue: QueueState, token: int | None, leased_at: int) -> DeliveryWriter:
        death_of = partial(self._broker.records.death_of, queue) if queue.record.source else None
        return DeliveryWriter(self._broker.state.ids, token, leased_at, queue.attempts, death_of)

    def _write(self, claim: Claim) -> pb.ClaimInfo:
        state = claim.state(self._broker.now())
        info = pb.ClaimInfo(
            number=claim.number,
            messages=claim.size,
            held=claim.held if state is ClaimState.OPEN else 0,
            state=_STATES.get(state, pb.CLAIM_STATE_UNSPECIFIED),
            lease_id=token_text(claim.token),
        )
        info.made_at.FromNanoseconds(claim.made_at)
        info.expires_at.FromNanoseconds(claim.expires_at)
        return info


class _Response:
    """A response that grows to about `RESPONSE_BYTES`. Without a writer its messages are bare, and it says which."""

    def __init__(self, writer: DeliveryWriter | None) -> None:
        self._writer = writer or BareWriter()
        self._bare = writer is None
        self._seqs: list[int] = []
        self._parts: list[bytes] = []
        self.size = 0

    def is_full_with(self, size: int) -> bool:
        """Whether a piece of so many bytes is too much."""
        return bool(self.size) and self.size + size > RESPONSE_BYTES

    def add(self, piece: Piece, size: int) -> None:
        self.size += size
        self._writer.write(piece, self._parts)
        if self._bare:
            self._seqs += [seq for seq, _, _ in piece]

    def take(self, rest: pb.ReadClaimResponse | pb.ReadQueueResponse) -> bytes:
        """What has grown, encoded, with the rest of the response."""
        rest.seqs.extend(self._seqs)
        self._parts.append(rest.SerializeToString())
        taken, self._parts, self._seqs, self.size = b"".join(self._parts), [], [], 0
        return taken


def _bytes(piece: Piece) -> int:
    return sum([len(record) for _, _, record in piece])


def _by_size(piece: Piece) -> Iterable[Piece]:
    """Pieces of a piece that are no larger than a response, or a single message."""
    some: Piece = []
    size = 0
    for message in piece:
        if some and size + len(message[2]) > RESPONSE_BYTES:
            yield some
            some, size = [], 0
        some.append(message)
        size += len(message[2])
    if some:
        yield some
