"""One worker of a server that has several: its sockets for the others, its way to them, and when it begins to serve.

The parent (`fila.cluster.supervisor`) and a worker talk over two pipes. The worker says that it can be reached by the
others, then that it serves clients. The parent says that all can be reached; when it ends, so does the worker.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from fila.broker.broker import Broker
from fila.cluster.caller import PassedServer
from fila.cluster.forwarding import MAP_VERSION, Forwarding
from fila.cluster.peers import KEEPALIVE_S, REQUEST_WINDOW, Peers, limits, socket_path
from fila.cluster.replication import FOLLOW, Follower, Leader
from fila.cluster.routes import LEADER
from fila.cluster.turn_taking import TAKE_TURNS, Asking, Deciding
from fila.core.shared_throttle import SharedThrottles
from fila.server.routing import Here, confirmed, routed
from fila.server.spread import SpreadService
from fila.server.status import describe_refusal
from fila.server.types import Method, ServerCall
from fila.v1 import service_pb2 as pb
from fila.wire.address import split_address
from fila.wire.loop_turns import OnTurn
from fila.wire.memory_quota import Shares
from fila.wire.server import Quotas

REACHABLE: Final = b"I"
SERVING: Final = b"R"
"""What a worker tells its parent"""
GO: Final = b"G"
"""What its parent tells it: all workers can be reached"""


class Place(NamedTuple):
    """A worker among the others, as its parent has set it up."""

    worker: int
    workers: int
    sockets: Path
    worker_port: int
    told: int
    """The pipe from the parent"""
    tells: int
    """The pipe to the parent"""
    restarted: bool
    """An earlier process of this worker has ended, and the others have gone on"""


class Member:
    """A worker. To be made on its event loop."""

    def __init__(self, place: Place, on_parent_gone: Callable[[], None]) -> None:
        self._place = place
        self._on_parent_gone = on_parent_gone
        self._go = asyncio.Event()
        self.throttles = SharedThrottles()
        self._following: list[Follower | Asking] = []
        os.set_blocking(place.told, False)
        asyncio.get_running_loop().add_reader(place.told, self._heard)

    def _heard(self) -> None:
        if os.read(self._place.told, 16):
            self._go.set()
        else:
            asyncio.get_running_loop().remove_reader(self._place.told)
            self._on_parent_gone()

    def open(self, max_message_bytes: int, listen_addr: str) -> None:
        """The way to the others."""
        place = self._place
        host, _ = split_address(listen_addr)
        shown = f"[{host}]" if ":" in host else host
        self.own_address = f"{shown}:{place.worker_port + place.worker}" if place.worker_port else ""
        self._max_message_bytes = max_message_bytes
        self._peers = Peers.of_workers(place.sockets, place.workers, place.worker, max_message_bytes)
        self.forwarding = Forwarding(self._peers, place.worker_port)

    def spread(self, service: SpreadService) -> None:
        service.spread(self.forwarding, self._place.worker, self._place.workers)

    async def join(
        self, broker: Broker, methods: Mapping[str, Method], batches: Mapping[str, Method], held: int, on_turn: OnTurn
    ) -> dict[str, Method]:
        """Serve the other workers, and take over what all know. Returns the methods for clients. Raises OSError."""
        place = self._place
        others = [worker for worker in range(place.workers) if worker != place.worker]
        knows = asyncio.Event()
        inner = {path: _when(knows, method) for path, method in methods.items()}
        leads = place.worker == LEADER
        if leads:
            leader = Leader(broker, others)
            deciding = Deciding(broker, self.throttles, place.workers, restarted=place.restarted)

            def setting(key: str, value: str | None) -> None:
                deciding.setting(key, value)
                leader.setting(key, value)

            broker.state.on_setting, broker.state.on_access = setting, leader.access
            inner = confirmed(inner, leader.confirmed)
            ours = {FOLLOW: leader.serve, TAKE_TURNS: deciding.serve}
            for path, serve in ours.items():
                inner[path] = Method(serve, bytes, bytes, takes_stream=True, gives_stream=True, standing=True)
        self._server = PassedServer(
            inner,
            limits(self._max_message_bytes, REQUEST_WINDOW),
            KEEPALIVE_S,
            on_turn,
            Quotas(shares=Shares(held, held, held)),
            describe_refusal=describe_refusal,
        )
        await self._server.listen_unix(socket_path(place.sockets, place.worker))
        os.write(place.tells, REACHABLE)
        await self._go.wait()
        if not leads:
            follower = Follower(broker, place.worker, lambda: self._peers.talk(LEADER, FOLLOW, None, ()))
            self._following.append(follower)
            await follower.synced.wait()
            asked = Asking(broker, self.throttles, place.worker, lambda: self._peers.talk(LEADER, TAKE_TURNS, None, ()))
            self._following.append(asked)
        knows.set()
        for_clients = {path: method for path, method in inner.items() if path in methods}
        return routed({**for_clients, **batches}, Here(place.worker, place.workers, self.forwarding))

    def serving(self) -> None:
        """Clients can reach it."""
        os.write(self._place.tells, SERVING)

    def cluster_map(self, call: ServerCall) -> pb.ClusterMap:
        place = self._place
        return pb.ClusterMap(
            version=MAP_VERSION,
            members=[
                pb.Member(id=f"worker-{worker}", address=self.forwarding.address_of(worker, call))
                for worker in range(place.workers)
            ],
            owners=list(range(place.workers)),
            self=place.worker,
        )

    async def stop(self, grace_s: float) -> None:
        for following in self._following:
            await following.stop()
        await self._server.stop(grace_s)
        await self._peers.close()


def _when(knows: asyncio.Event, method: Method) -> Method:
    """A method that is served as soon as this worker knows what all must know, also to other workers."""

    async def handle(request: Any, call: ServerCall) -> Any:
        if not knows.is_set():
            await knows.wait()
        return await method.handler(request, call)

    return replace(method, handler=handle)
