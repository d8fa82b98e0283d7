"""Transactions: messages are staged, and enqueued exactly once when the transaction is committed.

Every call is idempotent, so it is retried when the broker is away. A second call that stages the same part replaces the
first one, and a transaction that was committed before is not committed again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from uuid import uuid4

from fila.client.arguments import made
from fila.client.encoding import Chunk, OutgoingMessage, encode_all
from fila.client.loop_thread import LoopThread, result_of
from fila.client.retrying_calls import RetryingCalls
from fila.v1 import service_pb2 as pb

#: Calls in flight at once.
WINDOW = 4


@dataclass(frozen=True, slots=True)
class StagedPart:
    """Messages that were staged under one name. Pass it to `commit`, also from another process."""

    part: str
    messages: int


class AsyncTransaction:
    """One transaction of a producer. Made by `AsyncClient.transaction`.

    `producer` names a sequence of transactions, `number` counts them. The broker keeps the last number of each
    producer, so a transaction that is staged and committed again after a crash is enqueued once.
    """

    def __init__(self, calls: Callable[[], RetryingCalls], producer: str, number: int) -> None:
        self._calls = calls
        self.producer = producer
        self.number = number

    async def stage(
        self, queue: str, messages: Iterable[OutgoingMessage | bytes], *, part: str = "", ttl_ms: int = 0
    ) -> StagedPart:
        """Stage messages for the transaction. They are not delivered before it is committed.

        - `part`: a name that is unique to this attempt; by default a random one.
        - `ttl_ms`: the broker drops what is not committed so long after the last call of the transaction; 0 means an
          hour.

        If the broker refuses a message, it refuses the whole batch.
        """
        return await self.stage_encoded(encode_all(queue, messages), part=part, ttl_ms=ttl_ms)

    async def stage_encoded(self, chunks: Iterable[Chunk], *, part: str = "", ttl_ms: int = 0) -> StagedPart:
        """As `stage`, for messages that are already encoded."""
        name = part or uuid4().hex
        count = sequence = 0
        in_flight: set[asyncio.Task[bool]] = set()
        try:
            for sequence, chunk in enumerate(chunks, 1):
                if len(in_flight) >= WINDOW and await _first(in_flight):
                    break  # it was committed before: the broker needs no more
                in_flight.add(asyncio.create_task(self.send(name, sequence, chunk, ttl_ms)))
                count += chunk.count
                await asyncio.sleep(0)
            await asyncio.gather(*in_flight)
        finally:
            for task in in_flight:
                task.cancel()
        return StagedPart(name, count)

    async def send(self, part: str, sequence: int, chunk: Chunk, ttl_ms: int) -> bool:
        """Stage one chunk of a part; chunks count from 1. Returns whether the transaction was committed before."""
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
        """Enqueue these parts. Everything else that was staged for this transaction or earlier ones is dropped.

        Returns once all messages are enqueued: True, or False when this transaction or a later one was committed
        before. Raises NotStagedError when the broker lacks messages of a part: stage it again.
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
        """Stage messages for the transaction. They are not delivered before it is committed."""
        return self.stage_encoded(encode_all(queue, messages), part=part, ttl_ms=ttl_ms)

    def stage_encoded(self, chunks: Iterable[Chunk], *, part: str = "", ttl_ms: int = 0) -> StagedPart:
        """As `stage`, for messages that are already encoded.

        `chunks` is iterated on the calling thread, which makes the next chunks while the last ones are in flight.
        """
        name = part or uuid4().hex
        count = 0
        in_flight: deque[Future[bool]] = deque()
        try:
            for sequence, chunk in enumerate(chunks, 1):
                if len(in_flight) >= WINDOW and result_of(in_flight.popleft()):
                    break  # it was committed before: the broker needs no more
                in_flight.append(self._thread.start(self._transaction.send(name, sequence, chunk, ttl_ms)))
                count += chunk.count
            while in_flight:
                result_of(in_flight.popleft())
        finally:
            for future in in_flight:
                future.cancel()
        return StagedPart(name, count)

    def commit(self, parts: Iterable[StagedPart]) -> bool:
        """Enqueue these parts, exactly once. Returns False when this or a later transaction was committed before."""
        return self._thread.run(self._transaction.commit(parts))


async def _first(in_flight: set[asyncio.Task[bool]]) -> bool:
    """Wait for one of the calls. Returns whether the broker says that the transaction is committed."""
    done, _ = await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
    in_flight -= done
    return any(task.result() for task in done)
