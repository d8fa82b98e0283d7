"""Who is measured: how each is set up, what a confirmation of it survives, and the client that speaks to it."""

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from benchmarks.peers.client import Client
from benchmarks.peers.server import find_program


@dataclass(frozen=True, slots=True)
class Peer:
    """One broker in one setting."""

    name: str
    title: str
    #: `module` of this package that has the classes of server and client.
    module: str
    server_class: str
    client_class: str
    setting: tuple[str, ...]
    #: What a confirmed message has been through, in a few words and in full.
    fsync: str
    durability: str
    client: str
    #: Distributions of the client, the first of which carries its version.
    packages: tuple[str, ...]
    #: The program, its argument for the version; None for Fila itself.
    program: tuple[str, ...] | None
    #: What to install when the program is missing.
    install: str = ""

    def missing(self) -> str:
        """Why it cannot be measured here; empty when it can."""
        if self.program and find_program(self.program[0]) is None:
            return f"{self.program[0]} is not installed ({self.install})"
        for package in self.packages:
            try:
                metadata.version(package)
            except metadata.PackageNotFoundError:
                return f"the Python package {package} is not installed (make bench-peers installs it)"
        return ""

    def versions(self) -> dict[str, str]:
        """Of server and client."""
        clients = ", ".join(f"{package} {metadata.version(package)}" for package in self.packages)
        return {
            "server": _program_version(self.program) if self.program else metadata.version("fila"),
            "client": clients,
        }

    def server(self) -> Any:
        """A server that does not run yet: a context manager with `port`, `pid`, `setup`, `kill` and `start`."""
        return getattr(self._module(), self.server_class)(*self.setting)

    def connect(self, port: int) -> Client:
        make: Callable[[int], Client] = getattr(self._module(), self.client_class)
        return make(port)

    def _module(self) -> Any:
        return importlib.import_module(f"benchmarks.peers.{self.module}")


def _fila(name: str, title: str, durability: str, fsync: str, means: str) -> Peer:
    client = "fila SDK: enqueue_many, consume_batches + ack_many; one at a time: the blocking client's enqueue"
    return Peer(
        name, title, "with_fila", "FilaServer", "FilaClient", (durability,), fsync, means, client, ("fila",), None
    )


def _redis(name: str, title: str, fsync: str, means: str) -> Peer:
    return Peer(
        *(name, title, "with_redis", "RedisServer", "RedisClient", (fsync,)),
        fsync="fsync first" if fsync == "always" else "fsync each second",
        durability=means,
        client="redis-py + hiredis: pipelines of 500 XADD; XREADGROUP 500, XACK + XDEL with the next one",
        packages=("redis", "hiredis"),
        program=("redis-server", "--version"),
        install="apt-get install redis-server",
    )


def _rabbitmq(name: str, title: str, kind: str, fsync: str, means: str) -> Peer:
    return Peer(
        *(name, title, "with_rabbitmq", "RabbitServer", "RabbitClient", (kind,)),
        fsync=fsync,
        durability=means,
        client="pika SelectConnection: confirms with 4,000 open, prefetch 4,000, acks of 500 with `multiple`",
        packages=("pika",),
        program=("rabbitmq-server",),
        install="apt-get install rabbitmq-server",
    )


PEERS: tuple[Peer, ...] = (
    _fila("fila", "Fila", "wal", "no fsync", "RocksDB's log, handed to the kernel before the answer"),
    _fila("fila-fsync", "Fila, fsync", "fsync", "fsync first", "RocksDB's log, on the disk before the answer"),
    _redis(
        *("redis", "Redis Streams", "everysec"),
        "append-only file, handed to the kernel before the answer, synced every second",
    ),
    _redis("redis-always", "Redis Streams, fsync", "always", "append-only file, on the disk before the answer"),
    _rabbitmq(
        *("rabbitmq-classic", "RabbitMQ classic", "classic", "fsync first"),
        "durable queue, persistent messages; confirmed when synced, in groups",
    ),
    _rabbitmq(
        *("rabbitmq-quorum", "RabbitMQ quorum", "quorum", "fsync first"),
        "quorum queue of one node; confirmed when its log is synced",
    ),
    Peer(
        *("nats", "NATS JetStream", "with_nats", "NatsServer", "NatsClient", ()),
        fsync="no fsync",
        durability="file storage, handed to the kernel before the answer, synced every 2 minutes (the default)",
        client="nats-py on uvloop: publish_async with 4,000 open; pull fetch of 500, each acked on its own",
        packages=("nats-py",),
        program=("nats-server", "--version"),
        install="apt-get install nats-server, or go install github.com/nats-io/nats-server/v2@latest",
    ),
    Peer(
        *("beanstalkd", "beanstalkd", "with_beanstalkd", "BeanstalkdServer", "BeanstalkdClient", ()),
        fsync="fsync each 50 ms",
        durability="binlog, handed to the kernel before the answer, synced at most every 50 ms (the default)",
        client="the protocol on a plain socket, pipelined: 500 puts, reserves or deletes in one write",
        packages=(),
        program=("beanstalkd", "-v"),
        install="apt-get install beanstalkd",
    ),
)


def by_name(name: str) -> Peer:
    return next(peer for peer in PEERS if peer.name == name)


def _program_version(program: tuple[str, ...]) -> str:
    path = find_program(program[0])
    assert path is not None
    # The command line tool of RabbitMQ would otherwise start a daemon that stays.
    command = (
        ["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"] if "rabbitmq" in path else [path, *program[1:]]
    )
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"\d+\.\d+(\.\d+)?", said.stdout + said.stderr)
    return found.group() if found else "unknown"


if __name__ == "__main__":
    for each in PEERS:
        if why := each.missing():
            print(f"{each.name}: {why}", file=sys.stderr)
