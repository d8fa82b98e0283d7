"""Every engine that can keep a log: those that really run, each behind a proxy that loses things, and memory."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fila.replicas.log import ReplicatedLog
from fila.replicas.memory import MemoryEngine
from fila.replicas.opening import open_log
from tests.helpers.postgres import replicated_postgres
from tests.support.engines import free_port, kafka_brokers, nats_servers
from tests.support.proxy import Proxy

SOON_MS = 1_000
"""How long an append waits for its answer where a test takes the answer away."""


class InMemory:
    """The log of tests: no network to fail."""

    def __init__(self, *, refuses: bool) -> None:
        self.refuses = refuses
        self.renew()

    def renew(self) -> None:
        self._engine = MemoryEngine(strict=self.refuses)

    async def open(self) -> ReplicatedLog:
        return self._engine.open()


class Subject:
    """An engine that runs. Each log that it makes is a new one."""

    def __init__(self, engine: str, direct: str, proxy: Proxy, url: str, refuses: bool) -> None:
        self.engine = engine
        self.proxy = proxy
        self.refuses = refuses
        """Whether it refuses an entry that would not stand right behind the one that the caller has read"""
        self._direct = direct
        self._url = url
        self._name = ""

    def renew(self) -> None:
        """From now on another log, that is empty."""
        self.proxy.mend()
        self._name = f"log_{secrets.token_hex(4)}"

    async def open(self, **options: Any) -> ReplicatedLog:
        """Another member's view of the log."""
        return await open_log(self.url(**options))

    def url(self, *, through_proxy: bool = False, other: str = "", **options: object) -> str:
        """Where the log is. `other`: another log on the same engine."""
        address = self.proxy.addr if through_proxy else self._direct
        said = "".join(f"&{name}={value}" for name, value in options.items())
        return self._url.format(address=address, name=self._name + other) + said


@contextmanager
def _postgres(_folder: Path) -> Iterator[Subject]:
    with replicated_postgres() as (primary, _):
        direct = f"127.0.0.1:{primary.port}"
        with Proxy(direct) as proxy:
            yield Subject("postgres", direct, proxy, "postgres://fila@{address}/postgres?table={name}", refuses=True)


@contextmanager
def _nats(folder: Path) -> Iterator[Subject]:
    with nats_servers(folder, 1) as [node], Proxy(node.addr) as proxy:
        yield Subject("nats", node.addr, proxy, "nats://{address}/{name}?unsafe_one_copy=true", refuses=True)


@contextmanager
def _kafka(folder: Path) -> Iterator[Subject]:
    inside = free_port()
    with Proxy(f"127.0.0.1:{inside}") as proxy:  # first: the broker tells clients of it
        told = int(proxy.addr.rpartition(":")[2])
        with kafka_brokers(folder, 1, proxied=(inside, told)) as [node]:
            yield Subject("kafka", node.addr, proxy, "kafka://{address}/{name}?unsafe_one_copy=true", refuses=False)


REMOTE = {"kafka": _kafka, "postgres": _postgres, "nats": _nats}
IN_MEMORY = {"memory": InMemory(refuses=False), "strict memory": InMemory(refuses=True)}
