"""Idempotent calls of FilaService: claims, transactions and reading a queue.

Each of these calls may be sent twice without harm. So when the broker is away they are retried with backoff, until the
client's timeout has passed without an answer. A response stream that is lost continues where it was.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from fila.client.backoff import Backoff
from fila.client.connection import Connection, Unary, read_until, was_lost
from fila.client.errors import ClientClosedError, UnavailableError, no_answer
from fila.v1 import service_pb2 as pb
from fila.wire.status import RpcError
from fila.wire.stream import EOF

Request = TypeVar("Request")
Response = TypeVar("Response")


class RetryingCalls:
    """Idempotent calls, retried while the broker is away. Belongs to one event loop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.stub = connection.methods(pb, "FilaService")

    async def call(self, method: Unary[Request, Response], request: Request, *, wait_s: float = 0) -> Response:
        """Raises FilaError; UnavailableError only when the broker was away for the whole timeout of the client.

        `wait_s` is how much longer the broker may take, because the request tells it to wait.
        """
        loop = asyncio.get_running_loop()
        deadline, backoff = loop.time() + self._connection.timeout_s + wait_s, Backoff()
        while True:
            try:
                return await self._connection.call(method, request, timeout_s=deadline - loop.time())
            except UnavailableError:
                pause_s = backoff.next_wait_s()
                if loop.time() + pause_s > deadline:
                    raise
                await asyncio.sleep(pause_s)

    async def stage(self, request: bytes) -> pb.StageEnqueueResponse:
        return await self.call(self._connection.stage, request)

    def read_claim(self, make: Callable[[int], pb.ReadClaimRequest], low: int) -> AsyncIterator[pb.ReadClaimResponse]:
        return self._stream(self._connection.open_claim, make, low)

    def read_queue(self, make: Callable[[int], pb.ReadQueueRequest], low: int) -> AsyncIterator[pb.ReadQueueResponse]:
        return self._stream(self._connection.open_queue, make, low)

    async def _stream(
        self, open_call: Callable[[Request], Any], make: Callable[[int], Request], position: int
    ) -> AsyncIterator[Any]:
        """Responses whose `next` is the position to continue at. `make` makes a request that begins at a position."""
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
