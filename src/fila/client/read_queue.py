"""Reading the messages of a queue without leasing them."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, TypedDict

from fila.client.arguments import known_names, made
from fila.client.message import ReadMessage
from fila.client.retrying_calls import RetryingCalls
from fila.v1 import messages_pb2
from fila.v1 import service_pb2 as pb


class Packed(NamedTuple):
    """Messages that the broker sent together, as protobuf messages."""

    messages: Sequence[messages_pb2.Message]
    #: When each was enqueued, in nanoseconds since the epoch. Given for bare messages only, which have no such field.
    seqs: Sequence[int]


class ReadOptions(TypedDict, total=False):
    """Which messages of a queue to read."""

    #: The range of enqueue times, in nanoseconds since the epoch, both included; 0 for `high` means to the end.
    low: int
    high: int
    #: For readers that share the work: the number of this one, from 0, and how many there are.
    part: int
    parts: int
    #: 0 means all.
    max_messages: int
    #: Include messages that are in flight.
    leased: bool
    #: Leave out messages whose delay has not passed.
    ready_only: bool


async def read_queue(calls: RetryingCalls, queue: str, options: ReadOptions) -> AsyncIterator[list[ReadMessage]]:
    """The messages of a queue, oldest first, in lists. They are not leased."""
    async for packed in read_queue_packed(calls, queue, options):
        yield [ReadMessage(queue, message) for message in packed.messages]


async def read_queue_packed(
    calls: RetryingCalls, queue: str, options: ReadOptions, *, bare: bool = False
) -> AsyncIterator[Packed]:
    """As `read_queue`, as protobuf messages. Bare ones have headers and payload only."""
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
