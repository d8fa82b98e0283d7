"""NATS JetStream: nats-py on uvloop. `publish_async` with a window; a pull consumer that fetches batches, each message
acked for itself: a work queue, whose messages go when they are acked, takes no other acks.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import nats
import uvloop
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType, StreamConfig

from benchmarks.peers.client import BATCH, WINDOW, Client, Take, pace_async
from benchmarks.peers.server import Server, answers, find_program

T = TypeVar("T")

_STREAM, _SUBJECT, _DURABLE = "bench", "bench", "workers"
_WAIT_S = 600.0


class NatsServer(Server):
    """One node, one stream with one replica on file storage."""

    def command(self) -> list[str]:
        program = find_program("nats-server")
        assert program is not None
        config = self.folder / "nats.conf"
        config.write_text(f"listen: 127.0.0.1:{self.port}\njetstream {{ store_dir: {json.dumps(str(self.folder))} }}\n")
        return [program, "-c", str(config)]

    def ready(self) -> bool:
        return answers(self.port, b"", b"INFO")

    def setup(self) -> None:
        async def run() -> None:
            connection = await nats.connect(f"nats://127.0.0.1:{self.port}")
            stream = connection.jetstream()
            await stream.add_stream(
                StreamConfig(
                    name=_STREAM,
                    subjects=[_SUBJECT],
                    retention=RetentionPolicy.WORK_QUEUE,
                    storage=StorageType.FILE,
                    num_replicas=1,
                )
            )
            await stream.add_consumer(
                _STREAM,
                ConsumerConfig(
                    durable_name=_DURABLE, ack_policy=AckPolicy.EXPLICIT, max_ack_pending=2 * WINDOW, ack_wait=600
                ),
            )
            await connection.close()

        asyncio.run(run())


class NatsClient(Client):
    """Runs the asynchronous client on a loop of its own."""

    def __init__(self, port: int) -> None:
        self._loop = uvloop.new_event_loop()
        self._run(self._connect(port))

    async def _connect(self, port: int) -> None:
        self._connection = await nats.connect(f"nats://127.0.0.1:{port}", pending_size=1 << 26)
        self._stream = self._connection.jetstream(publish_async_max_pending=WINDOW, timeout=60)

    def send(self, payloads: Iterable[bytes], tenant: str = "") -> None:  # noqa: ARG002  a stream knows no tenants
        async def run() -> None:
            confirmations = [await self._stream.publish_async(_SUBJECT, payload) for payload in payloads]
            await asyncio.gather(*confirmations)

        self._run(run())

    def send_one(self, payload: bytes) -> None:
        self._run(self._stream.publish(_SUBJECT, payload))

    def send_paced(self, count: int, per_s: float, make: Callable[[], bytes]) -> list[float]:
        return self._run(pace_async(count, per_s, lambda: self._stream.publish(_SUBJECT, make())))

    def receive(self, take: Take) -> None:
        async def run() -> None:
            subscription = await self._stream.pull_subscribe_bind(durable=_DURABLE, stream=_STREAM)
            more = True
            while more:
                messages = await subscription.fetch(BATCH, timeout=_WAIT_S)
                for message in messages:
                    await message.ack()
                more = take([message.data for message in messages])
            await self._connection.flush(60)

        self._run(run())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)
