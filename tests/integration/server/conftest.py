"""A real server in the test's own event loop, and the generated stubs to talk to it."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from fila.config import (
    Config,
    JwtConfig,
    LimitsConfig,
    LogConfig,
    SchedulerConfig,
    ServerConfig,
    StorageConfig,
    TlsConfig,
)
from fila.internal.wire_pb2 import RpcStatus
from fila.server.app import Server
from fila.v1 import admin_pb2, admin_pb2_grpc, errors_pb2, service_pb2, service_pb2_grpc

WAIT_S = 30
"""Far longer than anything here takes."""


def settings(data_dir: Path, **sections: Any) -> Config:
    storage = {"write_buffer_bytes": 1 << 20, "block_cache_bytes": 1 << 20} | sections.get("storage", {})
    return Config(
        server=ServerConfig(**({"listen_addr": "127.0.0.1:0"} | sections.get("server", {}))),
        tls=TlsConfig(**sections.get("tls", {})),
        jwt=JwtConfig(**sections.get("jwt", {})),
        storage=StorageConfig(data_dir=str(data_dir), **storage),
        scheduler=SchedulerConfig(**sections.get("scheduler", {})),
        limits=LimitsConfig(**sections.get("limits", {})),
        log=LogConfig(),
    )


@dataclass
class Peer:
    """A server and a connection to it."""

    server: Server
    channel: grpc.aio.Channel

    def __post_init__(self) -> None:
        self.hot = service_pb2_grpc.FilaServiceStub(self.channel)
        self.admin = admin_pb2_grpc.FilaAdminStub(self.channel)

    async def create(self, name: str = "q", **config: Any) -> None:
        await self.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name, config=admin_pb2.QueueConfig(**config)))

    async def send(self, payload: bytes = b"", queue: str = "q", **rest: Any) -> str:
        """Enqueue one message; its id."""
        response = await self.hot.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=payload, **rest))
        return response.message_id

    async def send_many(self, count: int, payload: bytes = b"", queue: str = "q") -> list[str]:
        messages = [service_pb2.EnqueueRequest(payload=payload)] * count
        response = await self.hot.EnqueueBatch(service_pb2.EnqueueBatchRequest(messages=messages, queue=queue))
        return [result.message_id for result in response.results]

    def lease(self, queue: str = "q", max_in_flight: int = 100) -> Any:
        return self.hot.Lease(service_pb2.LeaseRequest(queue=queue, max_in_flight=max_in_flight))

    async def summary(self, queue: str = "q") -> admin_pb2.QueueSummary:
        return (await self.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue))).summary


async def kind_of(call: Any) -> str:
    """Why a call was refused, as a program reads it."""
    trailers = dict(await call.trailing_metadata())
    (detail,) = RpcStatus.FromString(trailers["grpc-status-details-bin"]).details
    return errors_pb2.ErrorKind.Name(errors_pb2.Error.FromString(detail.value).kind)


def connect(server: Server, credentials: Any = None, options: Any = ()) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(f"127.0.0.1:{server.port}", options=options)
    return grpc.aio.secure_channel(f"localhost:{server.port}", credentials, options=options)


@asynccontextmanager
async def serving(data_dir: Path, open_store: Any = None, credentials: Any = None, **sections: Any):
    """A started server, stopped at the end. With credentials, the connection uses TLS."""
    server = Server(settings(data_dir, **sections), **({"open_store": open_store} if open_store else {}))
    await server.start()
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    try:
        async with connect(server, credentials, options) as channel:
            yield Peer(server, channel)
    finally:
        await server.stop()


@pytest.fixture
def serve(tmp_path):
    """Start a server on the test's data directory: `async with serve(limits={...}) as peer`."""

    def start(data_dir: Path = tmp_path / "data", **sections: Any):
        return serving(data_dir, **sections)

    return start


async def take(stream: Any, count: int) -> list[Any]:
    """So many messages of a Lease."""
    messages: list[Any] = []
    while len(messages) < count:
        response = await asyncio.wait_for(stream.read(), WAIT_S)
        assert response is not grpc.aio.EOF, "the stream ended"
        messages += response.messages
    return messages


async def refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    """The status and the text with which a call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code(), refused.value.details()


async def eventually(condition: Any) -> None:
    """Wait for something that happens in another task."""
    async with asyncio.timeout(WAIT_S):
        while not await condition():
            await asyncio.sleep(0.01)
