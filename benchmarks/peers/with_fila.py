"""Fila: `enqueue_many`, `consume_batches` and `ack_many` of the Python SDK, a few batches of acks under way. Messages
that are sent one at a time are sent by the blocking client, as a program that waits for each would.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import uvloop

from benchmarks.peers.client import WINDOW, Client, Take, pace_async
from fila import AsyncClient, OutgoingMessage
from fila import Client as SyncClient
from fila.testing import ServerProcess

T = TypeVar("T")

_QUEUE = "bench"
_TENANT = "tenant"
_TIMEOUT_S = 120.0
_ACKS_UNDER_WAY = 4


class FilaServer(ServerProcess):
    """The server as it is configured out of the box, but for the durability."""

    def __init__(self, durability: str) -> None:
        super().__init__(config=f'[storage]\ndurability = "{durability}"\n', start_timeout=180)

    def setup(self) -> None:
        with SyncClient(self.addr) as client:
            client.create_queue(_QUEUE, fairness_header=_TENANT)


class FilaClient(Client):
    """Runs the asynchronous client on a loop of its own."""

    def __init__(self, port: int) -> None:
        self._loop = uvloop.new_event_loop()
        self._client = AsyncClient(f"127.0.0.1:{port}", timeout=_TIMEOUT_S)
        self._blocking = SyncClient(f"127.0.0.1:{port}", timeout=_TIMEOUT_S)
        self._run(self._client.list_queues())

    def send(self, payloads: Iterable[bytes], tenant: str = "") -> None:
        headers = {_TENANT: tenant}
        messages = (OutgoingMessage(payload, headers) for payload in payloads) if tenant else payloads
        self._run(self._client.enqueue_many(_QUEUE, messages))

    def send_one(self, payload: bytes) -> None:
        self._blocking.enqueue(_QUEUE, payload=payload)

    def send_paced(self, count: int, per_s: float, make: Callable[[], bytes]) -> list[float]:
        return self._run(pace_async(count, per_s, lambda: self._client.enqueue(_QUEUE, payload=make())))

    def receive(self, take: Take) -> None:
        async def run() -> None:
            under_way: deque[asyncio.Task[None]] = deque()
            async with self._client.consume_batches(_QUEUE, max_in_flight=WINDOW) as batches:
                async for batch in batches:
                    more = take([message.payload for message in batch])
                    under_way.append(asyncio.create_task(self._client.ack_many(batch)))
                    while len(under_way) > (_ACKS_UNDER_WAY if more else 0):
                        await under_way.popleft()
                    if not more:
                        break

        self._run(run())

    def close(self) -> None:
        self._blocking.close()
        self._run(self._client.close())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)
