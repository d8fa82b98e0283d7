"""A cluster of real processes on a real engine, and what must hold whatever happens to them."""

import asyncio
import json
import signal
import socket
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fila import AsyncClient
from fila.config import StorageConfig
from fila.replicas.loading import open_replica
from fila.replicas.opening import open_log
from fila.replicas.tail import Tail
from fila.storage.base import Family
from fila.storage.opening import open_store
from fila.testing import ServerProcess
from tests.e2e.load import Load
from tests.e2e.support import PATIENCE_S, eventually
from tests.helpers.postgres import single_postgres

NAMES = "abc"
OWN_KEYS = {(Family.DEFAULT, b"node")}
"""What each store has for itself"""


def snapshots_of(log):
    """The URL of another log on the same engine."""
    place, mark, options = log.partition("?")
    if not place.startswith("postgres"):
        return f"{place}-snapshots{mark}{options}"
    kept = [option for option in options.split("&") if option and not option.startswith("table=")]
    return f"{place}?{'&'.join([*kept, 'table=snapshots'])}"


class Members:
    """Three members on one log. Not started yet."""

    def __init__(self, folder, engine, log, config="", *, deaf=False):
        """`deaf` members cannot reach each other."""
        self.engine = engine
        self._silent = []
        self.log = log
        self.servers = {}
        for name in NAMES:
            (folder / name).mkdir()
            self.servers[name] = ServerProcess(folder / name)
        members = [f"{name}={server.addr}" for name, server in self.servers.items()]
        self.addr = ",".join(server.addr for server in self.servers.values())
        for name, server in self.servers.items():
            seen = [each if each.startswith(name) or not deaf else f"{each[0]}={self._nobody()}" for each in members]
            section = {"name": "orders", "member": name, "members": seen, "log": log}
            section["snapshots"] = snapshots_of(log)
            lines = [f"{key} = {json.dumps(value)}" for key, value in section.items()]
            Path(server.workdir, "fila.toml").write_text("\n".join([config, "[cluster]", *lines, ""]))

    def _nobody(self):
        """An address that takes connections and never says anything."""
        listening = socket.create_server(("127.0.0.1", 0))
        self._silent.append(listening)
        return f"127.0.0.1:{listening.getsockname()[1]}"

    def start(self):
        """All of them. Returns the owner."""
        for server in self.servers.values():
            server.launch()
        for name in NAMES:
            self.until_logged(name, "listening")
        return self.owner()

    def owner(self, *, besides=()):
        """The name of the member that serves, when there is one."""
        return eventually(lambda: self._serving(besides), "a member owns the shard")

    def _serving(self, besides):
        return next((name for name in NAMES if name not in besides and self.owns(name)), None)

    def owns(self, name):
        return self.health(name, "fila.owner") == health_pb2.HealthCheckResponse.SERVING

    def health(self, name, service=""):
        with suppress(grpc.RpcError), grpc.insecure_channel(self.servers[name].addr) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            return stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=2).status
        return None

    def pause(self, name):
        self._signal(name, signal.SIGSTOP)

    def go_on(self, name):
        self._signal(name, signal.SIGCONT)

    def _signal(self, name, number):
        self.servers[name]._running_process().send_signal(number)

    def events(self, name):
        """What a member has logged."""
        found = []
        for line in self.servers[name].log.splitlines():
            with suppress(ValueError, KeyError):
                found.append(json.loads(line)["event"])
        return found

    def until_logged(self, name, event, count=1):
        eventually(lambda: self.events(name).count(event) >= count, f"{name} logs {event!r}", 2 * PATIENCE_S)

    def copies(self):
        """What the store of each member holds when all have read the log to its end. Ends them all."""
        for server in self.servers.values():
            server.kill()
        return asyncio.run(self._copies())

    async def _copies(self):
        log, snaps = await open_log(self.log), await open_log(snapshots_of(self.log))
        found = {}
        for name, server in self.servers.items():
            store = open_store(StorageConfig(data_dir=str(server.data_dir)))
            tail = Tail(log, await open_replica(store, 0, log, snaps))
            await tail.catch_up()
            await tail.rest()
            entries = {(family, key): value for family in Family for key, value in store.scan(family)}
            found[name] = {key: value for key, value in entries.items() if key not in OWN_KEYS}
            store.close()
        await log.close()
        await snaps.close()
        return found

    def check_copies(self):
        """Ends all. Every member has the same, byte for byte."""
        first, *others = self.copies().values()
        assert first
        assert all(other == first for other in others)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            for name, server in self.servers.items():
                print(f"--- {name}\n{server.log[-4000:]}")
        self.close()

    def close(self):
        for listening in self._silent:
            listening.close()
        for server in self.servers.values():
            with suppress(ProcessLookupError, RuntimeError):
                server._running_process().send_signal(signal.SIGCONT)
            server.kill()
            server.close()


@contextmanager
def cluster(folder, config="", **settings):
    """A cluster whose members are not started yet."""
    with single_postgres() as engine:
        log = engine.url.replace("postgresql://", "postgres://") + "?table=orders&unsafe_one_copy=true"
        with Members(folder, engine, log, config, **settings) as members:
            yield members


async def create_queue(members):
    async with AsyncClient(members.addr, timeout=60) as client:
        await client.create_queue("q", fairness_header="tenant", visibility_timeout_ms=5_000)


def under_load(members, scenario):
    """Start a cluster, and let a scenario happen to it and its owner while producers and consumers go on. Then the
    books are balanced, and every copy is the same.
    """

    async def run():
        owner = await asyncio.to_thread(members.start)
        await create_queue(members)
        load = Load(members.addr, "q")
        async with load.running():
            await load.progress()
            await scenario(load, owner)
            await load.progress()
        load.check(connections_lost=True)
        print(f"confirmed {len(load.ids)}, acked {len(load.acked)}")

    asyncio.run(run())
    members.check_copies()
