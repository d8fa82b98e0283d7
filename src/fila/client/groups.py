"""Reading a queue in claims: numbered batches that can be read again until they are acked.

Every call here may be sent twice without harm, so a broker that is away for a moment is asked again, until the client's
timeout has passed without an answer. A stream that is lost goes on where it was.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypedDict, TypeVar

from fila.client.arguments import known_names, made
from fila.client.backoff import Backoff
from fila.client.connection import Connection, Unary, read_until, was_lost
from fila.client.errors import ClientClosedError, InternalError, UnavailableError, no_answer
from fila.client.message import ReadMessage
from fila.client.thread import LoopThread
from fila.v1 import messages_pb2
from fila.v1 import service_pb2 as pb
from fila.wire.status import RpcError
from fila.wire.stream import EOF

Request = TypeVar("Request")
Response = TypeVar("Response")
R = TypeVar("R")


class Packed(NamedTuple):
    """Messages that the broker sent together, as they came."""

    messages: Sequence[messages_pb2.Message]
    #: When each was enqueued, in nanoseconds since the epoch; of bare ones only, which do not say so themselves.
    seqs: Sequence[int]


_STATES = {pb.CLAIM_STATE_OPEN: "open", pb.CLAIM_STATE_EXPIRED: "expired"}


@dataclass(frozen=True, slots=True)
class Claim:
    """Messages of a queue that a group holds under a number."""

    number: int
    #: How many it was made of: positions are from 0 up to this.
    messages: int
    #: How many of them it holds. Fewer when messages were settled one by one, none when it has expired.
    held: int
    #: "open", or "expired": then its messages went back to the queue and will be in a later claim.
    state: str
    made_at: datetime
    expires_at: datetime
    #: For whoever settles one of its messages by itself.
    lease_id: str


@dataclass(frozen=True, slots=True)
class AckedClaims:
    """What an ack did."""

    #: How many messages were removed for good.
    messages: int
    #: Claims that had expired, whose messages are not acked and will come again.
    expired: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExtendedClaims:
    """What a heartbeat did."""

    extended: tuple[int, ...]
    #: Claims that have expired and were not acked yet.
    expired: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupFloor:
    """Where a group stands, and what waits for it."""

    #: All claims up to this one are acked.
    floor: int
    #: The last claim that was made.
    last: int
    #: The highest that was seen.
    epoch: int
    #: No message that the queue holds was enqueued later: a cap for `claim`, a bound for `read_queue`.
    newest: int
    #: Messages that wait for nothing but their turn and their throttles.
    ready: int
    delayed: int


class Calls:
    """Calls that may be sent twice. Lives on one event loop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.stub = connection.methods(pb, "FilaService")

    async def call(self, method: Unary[Request, Response], request: Request, *, wait_s: float = 0) -> Response:
        """Raises FilaError; UnavailableError only when the broker was away for as long as the client waits.

        `wait_s` is how much longer the broker may take, because it was asked to wait.
        """
        loop = asyncio.get_running_loop()
        deadline, backoff = loop.time() + self._connection.timeout_s + wait_s, Backoff()
        while True:
            try:
                return await self._connection.call(method, request, timeout_s=deadline - loop.time())
            except UnavailableError:
                rest_s = backoff.next_wait_s()
                if loop.time() + rest_s > deadline:
                    raise
                await asyncio.sleep(rest_s)

    async def stage(self, request: bytes) -> pb.StageEnqueueResponse:
        return await self.call(self._connection.stage, request)

    def read_claim(self, make: Callable[[int], pb.ReadClaimRequest], low: int) -> AsyncIterator[pb.ReadClaimResponse]:
        return self._stream(self._connection.open_claim, make, low)

    def read_queue(self, make: Callable[[int], pb.ReadQueueRequest], low: int) -> AsyncIterator[pb.ReadQueueResponse]:
        return self._stream(self._connection.open_queue, make, low)

    async def _stream(
        self, open_call: Callable[[Request], Any], make: Callable[[int], Request], position: int
    ) -> AsyncIterator[Any]:
        """Responses that say in `next` where to go on. `make` makes a request that begins there."""
        loop = asyncio.get_running_loop()
        deadline, backoff = loop.time() + self._connection.timeout_s, Backoff()
        while True:
            call = open_call(make(position))
            try:
                while (response := await read_until(call, deadline)) is not EOF:
                    position = response.next
                    yield response
                    deadline, backoff = loop.time() + self._connection.timeout_s, Backoff()
                return
            except TimeoutError as error:
                raise no_answer(self._connection.timeout_s) from error
            except asyncio.CancelledError as error:
                if not self._connection.closed:
                    raise
                raise ClientClosedError("the client was closed") from error
            except RpcError as error:
                wait_s = backoff.next_wait_s()
                if not was_lost(error) or self._connection.closed or loop.time() + wait_s > deadline:
                    raise self._connection.translated(error) from error
                await asyncio.sleep(wait_s)
            finally:
                call.cancel()


class AsyncGroup:
    """Reads a queue in claims, for one group. Made by `AsyncClient.group`.

    `epoch` is a number that grows with every start of the reader: the broker refuses calls of a lower one than it has
    seen (FencedError), so that a reader which was thought dead does no harm.
    """

    def __init__(self, calls: Callable[[], Calls], queue: str, group: str, epoch: int) -> None:
        self._calls = calls
        self.queue = queue
        self.group = group
        self.epoch = epoch

    async def claim(
        self, after: int, *, max_messages: int = 0, lease_ms: int = 0, cap: int = 0, wait_ms: int = 0
    ) -> Claim | None:
        """Claim number `after + 1`, made now or found again; None when there is nothing to claim.

        `max_messages` of 0 means as many as the broker allows, `lease_ms` of 0 15 minutes. With a `cap`, which is the
        `newest` of a floor, no message is claimed that came later. `wait_ms`, up to 10 seconds, is how long to wait for
        messages. Raises ClaimLostError when the claim was acked or claim `after` was never made.
        """
        calls = self._calls()
        request = made(
            pb.ClaimRequest,
            queue=self.queue,
            group=self.group,
            after=after,
            max_messages=max_messages,
            lease_ms=lease_ms,
            epoch=self.epoch,
            cap=cap,
            wait_ms=wait_ms,
        )
        response = await calls.call(calls.stub.Claim, request, wait_s=wait_ms / 1000)
        return _claim(response.claim) if response.HasField("claim") else None

    async def describe(self, number: int) -> Claim:
        """What a claim is now. Raises ClaimLostError when it was acked or never made."""
        calls = self._calls()
        request = made(pb.DescribeClaimRequest, queue=self.queue, group=self.group, number=number)
        return _claim((await calls.call(calls.stub.DescribeClaim, request)).claim)

    async def read(self, number: int, low: int = 0, high: int = 0) -> AsyncIterator[list[ReadMessage]]:
        """The messages of a claim at the positions from `low` up to `high`, which is not included; 0 means to the end.

        The same ones in the same order, as often as it is asked for. Nothing when the claim has expired. Raises
        ClaimLostError when it was acked, or ends on the way.
        """
        async for packed in self.read_packed(number, low, high):
            yield [ReadMessage(self.queue, message) for message in packed.messages]

    async def read_packed(
        self, number: int, low: int = 0, high: int = 0, *, bare: bool = False
    ) -> AsyncIterator[Packed]:
        """As `read`, but messages as they came, for those who make something else of them than objects.

        Bare ones have headers and payload only, which is less work for both sides.
        """

        def request(position: int) -> pb.ReadClaimRequest:
            return made(
                pb.ReadClaimRequest,
                queue=self.queue,
                group=self.group,
                number=number,
                low=position,
                high=high,
                bare=bare,
            )

        async for response in self._calls().read_claim(request, low):
            yield Packed(response.messages, response.seqs)

    async def ack(self, upto: int) -> AckedClaims:
        """Remove for good what the claims up to a number hold. What expired is not touched."""
        calls = self._calls()
        request = made(pb.AckClaimsRequest, queue=self.queue, group=self.group, upto=upto, epoch=self.epoch)
        response = await calls.call(calls.stub.AckClaims, request)
        return AckedClaims(response.messages, tuple(response.expired))

    async def extend(self, lease_ms: int = 0) -> ExtendedClaims:
        """Let all open claims expire `lease_ms` from now; 0 means 15 minutes, 1 lets them go. The heartbeat."""
        calls = self._calls()
        request = made(pb.ExtendClaimsRequest, queue=self.queue, group=self.group, lease_ms=lease_ms, epoch=self.epoch)
        response = await calls.call(calls.stub.ExtendClaims, request)
        return ExtendedClaims(tuple(response.extended), tuple(response.expired))

    async def floor(self) -> GroupFloor:
        """Where the group stands. A group that nobody has heard of stands at 0."""
        calls = self._calls()
        response = await calls.call(
            calls.stub.ClaimFloor, made(pb.ClaimFloorRequest, queue=self.queue, group=self.group)
        )
        return GroupFloor(
            response.floor, response.last, response.epoch, response.newest, response.ready, response.delayed
        )

    async def drop(self) -> None:
        """Forget the group. Raises FailedPreconditionError while it has claims that are open."""
        calls = self._calls()
        await calls.call(calls.stub.DropGroup, made(pb.DropGroupRequest, queue=self.queue, group=self.group))


class Group:
    """Reads a queue in claims, for one group. Made by `Client.group`. As `AsyncGroup`, for programs that block."""

    def __init__(self, thread: LoopThread, group: AsyncGroup) -> None:
        self._thread = thread
        self._group = group

    @property
    def queue(self) -> str:
        return self._group.queue

    @property
    def group(self) -> str:
        return self._group.group

    @property
    def epoch(self) -> int:
        return self._group.epoch

    def claim(
        self, after: int, *, max_messages: int = 0, lease_ms: int = 0, cap: int = 0, wait_ms: int = 0
    ) -> Claim | None:
        """Claim number `after + 1`, made now or found again; None when there is nothing to claim."""
        return self._thread.run(
            self._group.claim(after, max_messages=max_messages, lease_ms=lease_ms, cap=cap, wait_ms=wait_ms)
        )

    def describe(self, number: int) -> Claim:
        """What a claim is now. Raises ClaimLostError when it was acked or never made."""
        return self._thread.run(self._group.describe(number))

    def read(self, number: int, low: int = 0, high: int = 0) -> Iterator[list[ReadMessage]]:
        """The messages of a claim at the positions from `low` up to `high`, which is not included; 0 means to the end.

        Raises ClaimLostError when it was acked, or ends on the way.
        """
        return blocking(self._thread, self._group.read(number, low, high))

    def read_packed(self, number: int, low: int = 0, high: int = 0, *, bare: bool = False) -> Iterator[Packed]:
        """As `read`, but messages as they came, for those who make something else of them than objects."""
        return blocking(self._thread, self._group.read_packed(number, low, high, bare=bare))

    def ack(self, upto: int) -> AckedClaims:
        """Remove for good what the claims up to a number hold. What expired is not touched."""
        return self._thread.run(self._group.ack(upto))

    def extend(self, lease_ms: int = 0) -> ExtendedClaims:
        """Let all open claims expire `lease_ms` from now; 0 means 15 minutes, 1 lets them go. The heartbeat."""
        return self._thread.run(self._group.extend(lease_ms))

    def floor(self) -> GroupFloor:
        """Where the group stands. A group that nobody has heard of stands at 0."""
        return self._thread.run(self._group.floor())

    def drop(self) -> None:
        """Forget the group. Raises FailedPreconditionError while it has claims that are open."""
        self._thread.run(self._group.drop())


class ReadOptions(TypedDict, total=False):
    """Which messages of a queue to look at."""

    #: By the time of enqueueing, in nanoseconds since the epoch, both included; 0 for `high` means to the end.
    low: int
    high: int
    #: Of so many readers that share the work, which one this is: 0 up to, not including, `parts`.
    part: int
    parts: int
    #: 0 means all.
    max_messages: int
    #: Those too that somebody is at work on.
    leased: bool
    #: Leave out those whose delay is not over.
    ready_only: bool


async def read_queue(calls: Calls, queue: str, options: ReadOptions) -> AsyncIterator[list[ReadMessage]]:
    """Messages of a queue, oldest first, without leasing them."""
    async for packed in read_queue_packed(calls, queue, options):
        yield [ReadMessage(queue, message) for message in packed.messages]


async def read_queue_packed(
    calls: Calls, queue: str, options: ReadOptions, *, bare: bool = False
) -> AsyncIterator[Packed]:
    """As `read_queue`, but messages as they came; bare ones have headers and payload only."""
    known_names("option", options, ReadOptions.__annotations__)
    most = options.get("max_messages", 0)
    seen = 0

    def request(position: int) -> pb.ReadQueueRequest:
        fields = {**options, "low": position, "max_messages": most - seen if most else 0, "bare": bare}
        return made(pb.ReadQueueRequest, queue=queue, **fields)

    async for response in calls.read_queue(request, options.get("low", 0)):
        yield Packed(response.messages, response.seqs)
        seen += len(response.messages)
        if most and seen >= most:
            return


def blocking(thread: LoopThread, pieces: AsyncIterator[R]) -> Iterator[R]:
    """What an asynchronous iterator gives, for programs that block."""
    busy = asyncio.Lock()  # a piece that nobody waits for any more ends before the whole is closed

    async def piece() -> R | None:
        async with busy:
            return await anext(pieces, None)

    async def close() -> None:
        async with busy:
            await pieces.aclose()  # type: ignore[attr-defined]  # it is a generator

    try:
        while (given := thread.run(piece())) is not None:
            yield given
    finally:
        thread.finish(close)


def _claim(info: pb.ClaimInfo) -> Claim:
    state = _STATES.get(info.state)
    if state is None:
        raise InternalError(f"the broker answered with a claim of state {info.state}")
    return Claim(
        info.number,
        info.messages,
        info.held,
        state,
        info.made_at.ToDatetime(UTC),
        info.expires_at.ToDatetime(UTC),
        info.lease_id,
    )
