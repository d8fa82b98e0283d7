"""A broker in the test's own process that follows the wire contract and fails on command."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from fila.core.errors import BrokerError, InvalidArgument, Overloaded, QueueNotFound, QuotaExceeded, ShuttingDown
from fila.server.status import row_of, write_details, write_error
from fila.v1 import admin_pb2, admin_pb2_grpc, errors_pb2, service_pb2, service_pb2_grpc

PASSING = {"overloaded": Overloaded("too much waits"), "quota": QuotaExceeded("too many messages a second")}


class ScriptedBroker(service_pb2_grpc.FilaServiceServicer, admin_pb2_grpc.FilaAdminServicer):
    """One queue, "q". Commands in `script` are taken one for each batch; without one a batch is applied and answered.

    - "lose request": the stream breaks before the batch is applied
    - "lose answer": the stream breaks after the batch is applied
    - "ignore": applied, but never answered
    - "refuse": the stream ends with INVALID_ARGUMENT
    - "overloaded", "quota": refused for a while, before the broker looks at what it is; the stream goes on
    """

    def __init__(self, visibility_timeout_ms: int = 30_000) -> None:
        self.script: deque[str] = deque()
        self.enqueued: list[bytes] = []
        self.sequences: list[int] = []
        self.batches = 0
        self.answers: dict[tuple[str, int], service_pb2.EnqueueBatchResponse] = {}
        self.held: set[str] = set()
        self.extended: list[str] = []
        self.acked: list[str] = []
        self.nacked: list[str] = []
        self.to_deliver: asyncio.Queue[list[str] | None] = asyncio.Queue()
        self.handed: list[int] = []
        self.leases = 0
        self.open_leases = 0
        self.visibility_timeout_ms = visibility_timeout_ms

    async def EnqueueStream(self, requests: Any, context: Any) -> AsyncIterator[service_pb2.EnqueueBatchResponse]:  # noqa: N802
        async for request in requests:
            self.batches += 1
            self.sequences.append(request.sequence)
            command = await self._before(request, context)
            if command in PASSING:
                yield service_pb2.EnqueueBatchResponse(sequence=request.sequence, error=write_error(PASSING[command]))
                continue
            answer = self._enqueue(request)
            if await self._after(command, context):
                yield answer

    def _enqueue(self, request: service_pb2.EnqueueBatchRequest) -> service_pb2.EnqueueBatchResponse:
        key = (request.producer_id, request.sequence)
        if key not in self.answers:
            answer = self.answers[key] = service_pb2.EnqueueBatchResponse(sequence=request.sequence)
            for message in request.messages:
                if (message.queue or request.queue) != "q":
                    answer.results.add(error={"code": 5, "kind": errors_pb2.ERROR_KIND_QUEUE_NOT_FOUND})
                else:
                    self.enqueued.append(message.payload)
                    answer.results.add(message_id=f"id-{len(self.enqueued)}")
        return self.answers[key]

    async def Settle(self, requests: Any, context: Any) -> AsyncIterator[service_pb2.SettleResponse]:  # noqa: N802
        async for request in requests:
            command = await self._before(request, context)
            if command in PASSING:
                yield service_pb2.SettleResponse(sequence=request.sequence, error=write_error(PASSING[command]))
                continue
            answer = self._settle(request)
            if await self._after(command, context):
                yield answer

    def _settle(self, request: service_pb2.SettleRequest) -> service_pb2.SettleResponse:
        answer = service_pb2.SettleResponse(sequence=request.sequence)
        settled = [(group.queue, each, self.acked) for group in request.acks for each in group.message_ids]
        settled += [(each.queue, each.message_id, self.nacked) for each in request.nacks]
        for queue, message_id, done in settled:
            if message_id in self.held:
                self.held.discard(message_id)
                done.append(message_id)
            else:
                self._unknown(answer, queue, message_id)
        for group in request.extends:
            for message_id in group.message_ids:
                if message_id in self.held:
                    self.extended.append(message_id)
                else:
                    self._unknown(answer, group.queue, message_id)
        return answer

    def _unknown(self, answer: service_pb2.SettleResponse, queue: str, message_id: str) -> None:
        gone = message_id in self.acked
        kind = errors_pb2.ERROR_KIND_MESSAGE_GONE if gone else errors_pb2.ERROR_KIND_MESSAGE_NOT_FOUND
        error = {"code": 5, "message": f"message {message_id} is not leased", "kind": kind}
        answer.failures.add(queue=queue, message_id=message_id, error=error)

    async def Consume(self, requests: Any, context: Any) -> AsyncIterator[service_pb2.LeaseResponse]:  # noqa: N802
        request = await anext(aiter(requests))
        if request.queue != "q":
            await refuse(context, QueueNotFound(request.queue))
        await context.send_initial_metadata([("fila-visibility-timeout-ms", str(self.visibility_timeout_ms))])
        self.leases += 1
        self.open_leases += 1
        listening = asyncio.create_task(self._listen(requests))
        try:
            while (ids := await self.to_deliver.get()) is not None:
                response = service_pb2.LeaseResponse()
                for each in ids:
                    self.held.add(each)
                    response.messages.add(id=each, metadata={"lease_id": f"lease-{self.leases}"})
                yield response
        finally:
            listening.cancel()
            self.open_leases -= 1
        await refuse(context, ShuttingDown())

    async def _listen(self, requests: Any) -> None:
        async for request in requests:
            self.handed.append(request.handed)

    async def GetStats(self, request: Any, context: Any) -> admin_pb2.GetStatsResponse:  # noqa: N802
        return admin_pb2.GetStatsResponse(config={"visibility_timeout_ms": self.visibility_timeout_ms})

    async def ListQueues(self, request: Any, context: Any) -> admin_pb2.ListQueuesResponse:  # noqa: N802
        await asyncio.sleep(60)
        return admin_pb2.ListQueuesResponse()

    async def _before(self, request: Any, context: Any) -> str:
        command = self.script.popleft() if self.script else ""
        if command == "lose request":
            await context.abort(grpc.StatusCode.UNAVAILABLE, "connection lost")
        if command == "refuse" or any(m.payload == b"poison" for m in getattr(request, "messages", ())):
            await refuse(context, InvalidArgument("cannot be read"))
        return command

    @staticmethod
    async def _after(command: str, context: Any) -> bool:
        if command == "lose answer":
            await context.abort(grpc.StatusCode.UNAVAILABLE, "connection lost")
        return command != "ignore"


async def refuse(context: Any, error: BrokerError) -> None:
    """End a call as the real server does."""
    row, text = row_of(error), str(error)
    (code,) = (each for each in grpc.StatusCode if each.value[0] == row.code)
    await context.abort(code, text, trailing_metadata=write_details(row, text))


@asynccontextmanager
async def serving(broker: ScriptedBroker, addr: str = "127.0.0.1:0") -> AsyncIterator[str]:
    """The broker behind an address, until it is stopped hard."""
    server = grpc.aio.server()
    service_pb2_grpc.add_FilaServiceServicer_to_server(broker, server)
    admin_pb2_grpc.add_FilaAdminServicer_to_server(broker, server)
    port = server.add_insecure_port(addr)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
