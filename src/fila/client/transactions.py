"""Enqueueing by transaction: messages are staged, and enqueued once when the transaction is committed.

Every call may be sent twice without harm: a call that stages again takes the place of the first, and a transaction that
was committed before is not committed again. So a broker that is away for a moment is asked again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from uuid import uuid4

from fila.client.arguments import made
from fila.client.encoding import Chunk, OutgoingMessage, encode_all
from fila.client.groups import Calls
from fila.client.thread import LoopThread, result_of
from fila.v1 import service_pb2 as pb

#: Calls that are under way at once.
WINDOW = 4


@dataclass(frozen=True, slots=True)
class StagedPart:
    """What was staged under one name. To be handed to `commit`, perhaps by another process."""

    part: str
    messages: int


class AsyncTransaction:
    """One transaction of a producer. Made by `AsyncClient.transaction`.

    `producer` names a sequence of transactions, `number` counts them. The broker keeps the last number of each
    producer, so a transaction that is staged and committed again after a crash is enqueued once.
    """

    def __init__(self, calls: Callable[[], Calls], producer: str, number: int) -> None:
        self._calls = calls
        self.producer = producer
        self.number = number

    async def stage(
        self, queue: str, messages: Iterable[OutgoingMessage | bytes], *, part: str = "", ttl_ms: int = 0
    ) -> StagedPart:
        """Have messages kept for the transaction. Nobody sees them before it is committed.

        `part` is a name that no other attempt has; one is made up when it is left out. What is not committed `ttl_ms`
        after the last call for the transaction is dropped; 0 means an hour. If a message is refused, so is its batch.
        """
        return await self.stage_encoded(encode_all(queue, messages), part=part, ttl_ms=ttl_ms)

    async def stage_encoded(self, chunks: Iterable[Chunk], *, part: str = "", ttl_ms: int = 0) -> StagedPart:
        """As `stage`, for messages that are encoded already."""
        name = part or uuid4().hex
        count = sequence = 0
        under_way: set[asyncio.Task[bool]] = set()
        try:
            for sequence, chunk in enumerate(chunks, 1):
                if len(under_way) >= WINDOW and await _first(under_way):
                    break  # it was committed before: the rest is of no use
                under_way.add(asyncio.create_task(self.send(name, sequence, chunk, ttl_ms)))
                count += chunk.count
                await asyncio.sleep(0)
            await asyncio.gather(*under_way)
        finally:
            for task in under_way:
                task.cancel()
        return StagedPart(name, count)

    async def send(self, part: str, sequence: int, chunk: Chunk, ttl_ms: int) -> bool:
        """Stage a chunk of a part; they count from 1. Returns whether the transaction was committed before."""
        head = made(
            pb.StageEnqueueRequest,
            producer=self.producer,
            transaction=self.number,
            part=part,
            sequence=sequence,
            queue=chunk.queue,
            ttl_ms=ttl_ms,
        )
        response = await self._calls().stage(chunk.frames + head.SerializeToString())
        return response.committed

    async def commit(self, parts: Iterable[StagedPart]) -> bool:
        """Enqueue these parts; all else that was staged for this transaction or earlier ones is dropped.

        Returns once all is enqueued: True, or False when this transaction or a later one was committed before. Raises
        NotStagedError when a part is not there as it was staged: then it must be staged again.
        """
        calls = self._calls()
        request = made(
            pb.CommitTransactionRequest,
            producer=self.producer,
            transaction=self.number,
            parts=[pb.StagedPart(part=one.part, messages=one.messages) for one in parts if one.messages],
        )
        response = await calls.call(calls.stub.CommitTransaction, request)
        return not response.committed_before


class Transaction:
    """One transaction of a producer. Made by `Client.transaction`. As `AsyncTransaction`, for programs that block."""

    def __init__(self, thread: LoopThread, transaction: AsyncTransaction) -> None:
        self._thread = thread
        self._transaction = transaction

    @property
    def producer(self) -> str:
        return self._transaction.producer

    @property
    def number(self) -> int:
        return self._transaction.number

    def stage(
        self, queue: str, messages: Iterable[OutgoingMessage | bytes], *, part: str = "", ttl_ms: int = 0
    ) -> StagedPart:
        """Have messages kept for the transaction. Nobody sees them before it is committed."""
        return self.stage_encoded(encode_all(queue, messages), part=part, ttl_ms=ttl_ms)

    def stage_encoded(self, chunks: Iterable[Chunk], *, part: str = "", ttl_ms: int = 0) -> StagedPart:
        """As `stage`, for messages that are encoded already.

        `chunks` is walked on the calling thread: while it makes the next ones, the last ones are on their way.
        """
        name = part or uuid4().hex
        count = 0
        under_way: deque[Future[bool]] = deque()
        try:
            for sequence, chunk in enumerate(chunks, 1):
                if len(under_way) >= WINDOW and result_of(under_way.popleft()):
                    break  # it was committed before: the rest is of no use
                under_way.append(self._thread.start(self._transaction.send(name, sequence, chunk, ttl_ms)))
                count += chunk.count
            while under_way:
                result_of(under_way.popleft())
        finally:
            for future in under_way:
                future.cancel()
        return StagedPart(name, count)

    def commit(self, parts: Iterable[StagedPart]) -> bool:
        """Enqueue these parts, once. Returns False when this transaction or a later one was committed before."""
        return self._thread.run(self._transaction.commit(parts))


async def _first(under_way: set[asyncio.Task[bool]]) -> bool:
    """Wait for one of the calls, and whether it says that all is committed."""
    done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
    under_way -= done
    return any(task.result() for task in done)
