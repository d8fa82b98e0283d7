"""Idempotent producer: concurrent enqueues travel together, in numbered batches on one stream.

- A producer has a random producer id, and numbers its batches with a sequence from 1.
- A batch whose answer was lost is sent again under its sequence number. The broker remembers its last answers to each
  producer, so it enqueues nothing twice. That holds also when the broker refuses it for a while: it may have been
  carried out before, so it never gets another number.
- What was first sent longer ago than the broker remembers is not sent again: it fails as `stale_sequence`.
- A batch that timed out keeps its number and is not sent again: its messages were enqueued once, or not at all.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from uuid import uuid4

from fila.client.batch_stream import BatchStream
from fila.client.connection import Connection
from fila.client.encoding import MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, Chunk
from fila.client.errors import FilaError, InternalError, from_error
from fila.client.reply import Reply
from fila.client.send_window import Batch
from fila.client.waiter import Waiter
from fila.v1 import service_pb2


class DuplicateId(str):
    """The id of an earlier message with the same dedup_key: nothing was enqueued now.

    Only the answer to a batch that had to be sent again does not tell: there such an id is a plain text.
    """

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Enqueue(Waiter):
    """One caller's messages. The answer is a list with an id or an error for each message."""

    chunk: Chunk


class EnqueueCodec:
    """Numbers and encodes the batches of one producer, and splits the answers."""

    #: Less than the ten minutes for which the broker remembers a producer that is silent.
    repeatable_s = 540.0

    def __init__(self, producer_id: str) -> None:
        self._producer_id = producer_id
        self._sequence = 0

    def make_batch(self, gathered: deque[Enqueue]) -> Batch[Enqueue] | None:
        enqueues: list[Enqueue] = []
        queue = ""
        count = size = 0
        while gathered:
            chunk = gathered[0].chunk
            if gathered[0].waits():
                count += chunk.count
                size += len(chunk.frames)
                full = count > MAX_BATCH_MESSAGES or size > MAX_BATCH_BYTES
                if enqueues and (full or (queue and chunk.queue and chunk.queue != queue)):
                    break
                queue = queue or chunk.queue
                enqueues.append(gathered[0])
            gathered.popleft()
        if not enqueues:
            return None
        self._sequence += 1
        head = service_pb2.EnqueueBatchRequest(producer_id=self._producer_id, sequence=self._sequence, queue=queue)
        data = b"".join([*(enqueue.chunk.frames for enqueue in enqueues), head.SerializeToString()])
        return Batch(data, enqueues, self._sequence)

    def answer(self, batch: Batch[Enqueue], response: bytes) -> FilaError | None:
        answer = service_pb2.EnqueueBatchResponse.FromString(response)
        batch.check_answer(answer.sequence)
        if answer.HasField("error"):
            return batch.refuse(from_error(answer.error))
        results = _results(answer, resent=batch.resent)
        expected = sum(enqueue.chunk.count for enqueue in batch.waiters)
        start = 0
        for enqueue in batch.waiters:
            if len(results) != expected:
                enqueue.fail(InternalError(f"the broker sent {len(results)} results for {expected} messages"))
            enqueue.answer(results[start : start + enqueue.chunk.count])
            start += enqueue.chunk.count
        return None


class Producer:
    """The stream on which a client enqueues messages. Belongs to one event loop."""

    def __init__(self, connection: Connection) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout_s = connection.timeout_s
        self._stream = BatchStream(connection.open_enqueue, EnqueueCodec(uuid4().hex), connection.timeout_s)
        self.close = self._stream.close

    def submit(self, chunk: Chunk, reply: Reply) -> None:
        """Send messages. `reply` gets a list with an id or a FilaError for each, or one exception for all."""
        self._stream.submit(Enqueue(reply, self._loop.time() + self._timeout_s, chunk))


def _results(answer: service_pb2.EnqueueBatchResponse, *, resent: bool) -> list[str | FilaError]:
    results = answer.results
    ids: list[str | FilaError] = [result.message_id for result in results]
    if "" in ids:  # only a refused message has no id
        ids = [result.message_id or from_error(result.error) for result in results]
    if not resent and any(result.duplicate for result in results):  # of one sent again, all that was taken is duplicate
        return [
            DuplicateId(found) if result.duplicate and isinstance(found, str) else found
            for found, result in zip(ids, results, strict=True)
        ]
    return ids
