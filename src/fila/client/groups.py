"""Reading a queue in claims: numbered batches that can be read again until they are acked."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from fila.client.arguments import made
from fila.client.errors import InternalError
from fila.client.loop_thread import LoopThread, blocking_iterator
from fila.client.message import ReadMessage
from fila.client.read_queue import Packed
from fila.client.retrying_calls import RetryingCalls
from fila.v1 import service_pb2 as pb

_STATES = {pb.CLAIM_STATE_OPEN: "open", pb.CLAIM_STATE_EXPIRED: "expired"}


@dataclass(frozen=True, slots=True)
class ClaimInfo:
    """One claim: messages of a queue that a group holds under a number."""

    number: int
    #: How many messages it was made with. Positions count from 0 up to, not including, this.
    messages: int
    #: How many of them it still holds: fewer when some were settled one by one, none when it has expired.
    held: int
    #: "open" or "expired". The messages of an expired claim went back to the queue, and will be in a later claim.
    state: str
    made_at: datetime
    expires_at: datetime
    #: For settling one of its messages by itself.
    lease_id: str


@dataclass(frozen=True, slots=True)
class AckedClaims:
    """The outcome of an ack."""

    #: How many messages were removed for good.
    messages: int
    #: Claims that had expired: their messages are not acked and will be delivered again.
    expired: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ExtendedClaims:
    """The outcome of a heartbeat."""

    extended: tuple[int, ...]
    #: Claims that have expired without an ack.
    expired: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupFloor:
    """The position of a group, and what waits for it."""

    #: All claims up to this one are acked.
    floor: int
    #: The last claim that was made.
    last: int
    #: The highest epoch that the broker has seen.
    epoch: int
    #: The enqueue time of the newest message, for `cap` of `claim` and `high` of `read_queue`.
    newest: int
    #: Messages whose delay has passed.
    ready: int
    delayed: int


class AsyncGroup:
    """Reads a queue in claims, for one group. Made by `AsyncClient.group`.

    `epoch` is a fencing number that grows with every start of the reader. The broker refuses calls with a lower epoch
    than it has seen (FencedError), so a reader that was thought dead does no harm.
    """

    def __init__(self, calls: Callable[[], RetryingCalls], queue: str, group: str, epoch: int) -> None:
        self._calls = calls
        self.queue = queue
        self.group = group
        self.epoch = epoch

    async def claim(
        self, after: int, *, max_messages: int = 0, lease_ms: int = 0, cap: int = 0, wait_ms: int = 0
    ) -> ClaimInfo | None:
        """Claim number `after + 1`, made now or found again; None when there is nothing to claim.

        - `max_messages`: the most messages to claim; 0 means as many as the broker allows.
        - `lease_ms`: how long the claim lasts; 0 means 15 minutes.
        - `cap`: claim no message that was enqueued later, such as the `newest` of a floor; 0 means no cap.
        - `wait_ms`: how long to wait for messages, up to 10 seconds.

        Raises ClaimLostError when the claim was acked or claim `after` was never made.
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

    async def describe(self, number: int) -> ClaimInfo:
        """The state of a claim. Raises ClaimLostError when it was acked or never made."""
        calls = self._calls()
        request = made(pb.DescribeClaimRequest, queue=self.queue, group=self.group, number=number)
        return _claim((await calls.call(calls.stub.DescribeClaim, request)).claim)

    async def read(self, number: int, low: int = 0, high: int = 0) -> AsyncIterator[list[ReadMessage]]:
        """The messages of a claim at the positions from `low` up to `high`, which is not included; 0 means to the end.

        Reading again yields the same messages in the same order. An expired claim yields none. Raises ClaimLostError
        when the claim was acked, or ends during the read.
        """
        async for packed in self.read_packed(number, low, high):
            yield [ReadMessage(self.queue, message) for message in packed.messages]

    async def read_packed(
        self, number: int, low: int = 0, high: int = 0, *, bare: bool = False
    ) -> AsyncIterator[Packed]:
        """As `read`, as protobuf messages, for callers that convert them to something else.

        Bare messages have headers and payload only, which is less work for both sides.
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
        """Ack all claims up to a number: their messages are removed for good. Expired claims are not touched."""
        calls = self._calls()
        request = made(pb.AckClaimsRequest, queue=self.queue, group=self.group, upto=upto, epoch=self.epoch)
        response = await calls.call(calls.stub.AckClaims, request)
        return AckedClaims(response.messages, tuple(response.expired))

    async def extend(self, lease_ms: int = 0) -> ExtendedClaims:
        """The heartbeat: let all open claims expire `lease_ms` from now. 0 means 15 minutes, 1 gives them up."""
        calls = self._calls()
        request = made(pb.ExtendClaimsRequest, queue=self.queue, group=self.group, lease_ms=lease_ms, epoch=self.epoch)
        response = await calls.call(calls.stub.ExtendClaims, request)
        return ExtendedClaims(tuple(response.extended), tuple(response.expired))

    async def floor(self) -> GroupFloor:
        """The position of the group. A group that the broker does not know is at 0."""
        calls = self._calls()
        response = await calls.call(
            calls.stub.ClaimFloor, made(pb.ClaimFloorRequest, queue=self.queue, group=self.group)
        )
        return GroupFloor(
            response.floor, response.last, response.epoch, response.newest, response.ready, response.delayed
        )

    async def drop(self) -> None:
        """Delete the group. Raises FailedPreconditionError while it has open claims."""
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
    ) -> ClaimInfo | None:
        """Claim number `after + 1`, made now or found again; None when there is nothing to claim."""
        return self._thread.run(
            self._group.claim(after, max_messages=max_messages, lease_ms=lease_ms, cap=cap, wait_ms=wait_ms)
        )

    def describe(self, number: int) -> ClaimInfo:
        """The state of a claim. Raises ClaimLostError when it was acked or never made."""
        return self._thread.run(self._group.describe(number))

    def read(self, number: int, low: int = 0, high: int = 0) -> Iterator[list[ReadMessage]]:
        """The messages of a claim at the positions from `low` up to `high`, which is not included; 0 means to the end.

        Raises ClaimLostError when the claim was acked, or ends during the read.
        """
        return blocking_iterator(self._thread, self._group.read(number, low, high))

    def read_packed(self, number: int, low: int = 0, high: int = 0, *, bare: bool = False) -> Iterator[Packed]:
        """As `read`, as protobuf messages, for callers that convert them to something else."""
        return blocking_iterator(self._thread, self._group.read_packed(number, low, high, bare=bare))

    def ack(self, upto: int) -> AckedClaims:
        """Ack all claims up to a number: their messages are removed for good. Expired claims are not touched."""
        return self._thread.run(self._group.ack(upto))

    def extend(self, lease_ms: int = 0) -> ExtendedClaims:
        """The heartbeat: let all open claims expire `lease_ms` from now. 0 means 15 minutes, 1 gives them up."""
        return self._thread.run(self._group.extend(lease_ms))

    def floor(self) -> GroupFloor:
        """The position of the group. A group that the broker does not know is at 0."""
        return self._thread.run(self._group.floor())

    def drop(self) -> None:
        """Delete the group. Raises FailedPreconditionError while it has open claims."""
        self._thread.run(self._group.drop())


def _claim(info: pb.ClaimInfo) -> ClaimInfo:
    state = _STATES.get(info.state)
    if state is None:
        raise InternalError(f"the broker sent a claim of unknown state {info.state}")
    return ClaimInfo(
        info.number,
        info.messages,
        info.held,
        state,
        info.made_at.ToDatetime(UTC),
        info.expires_at.ToDatetime(UTC),
        info.lease_id,
    )
