"""Engines that keep logs, started for tests on free loopback ports."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from scripts import engines

N = TypeVar("N", bound="Node")

START_TIMEOUT_S = 60
KAFKA_USER, KAFKA_PASSWORD = "fila", "secret-of-kafka"
CLUSTER_ID = "fila-tests-of-logs-aaa"


def installed(name: str) -> Path:
    """Where an engine is. Without it the test is skipped, and fails in CI."""
    try:
        return engines.ENGINES[name]()
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        return pytest.fail(str(error)) if os.environ.get("CI") else pytest.skip(str(error))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Node:
    """A process of an engine, whose data survives it."""

    def __init__(self, command: list[str], folder: Path, port: int, environ: dict[str, str] | None = None) -> None:
        self.port = port
        self.addr = f"127.0.0.1:{port}"
        self._command = command
        self._folder = folder
        self._environ = os.environ | (environ or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Returns before it listens."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=self._environ, stdout=log, stderr=subprocess.STDOUT
            )

    def wait_until(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not ready():
            assert self._process is not None
            assert self._process.poll() is None, (self._folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, (self._folder / "log").read_text()[-2000:]
            time.sleep(0.05)

    def ready(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """As a crash would; does nothing when it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)


class NatsNode(Node):
    """A server with JetStream."""

    def __init__(self, folder: Path, name: str, routes: list[tuple[int, int]], own: int, settings: str = "") -> None:
        program = installed("nats")
        folder.mkdir(parents=True)
        port, self.monitor = routes[own][0], f"127.0.0.1:{free_port()}"
        cluster = ""
        if len(routes) > 1:
            urls = ", ".join(f'"nats://127.0.0.1:{route}"' for _, route in routes)
            cluster = f'cluster {{ name: logs, listen: "127.0.0.1:{routes[own][1]}", routes: [{urls}] }}\n'
        (folder / "nats.conf").write_text(
            f'listen: "127.0.0.1:{port}"\nhttp: "{self.monitor}"\nserver_name: {name}\n{cluster}{settings}\n'
            f'jetstream {{ store_dir: "{folder}/data", sync_interval: always }}\n'
        )
        super().__init__([str(program), "-c", "nats.conf"], folder, port)


class KafkaNode(Node):
    """A broker that is a controller too. `proxied`: another port, and the one that clients are told of there."""

    def __init__(
        self, folder: Path, number: int, controllers: dict[int, int], proxied: tuple[int, int] | None, secure: str
    ) -> None:
        self._libraries = installed("kafka")
        folder.mkdir(parents=True)
        port = free_port()
        listeners = [f"PLAINTEXT://127.0.0.1:{port}"]
        advertised = list(listeners)
        if proxied is not None:
            listeners.append(f"PROXIED://127.0.0.1:{proxied[0]}")
            advertised.append(f"PROXIED://127.0.0.1:{proxied[1]}")
        self.secure_addr = f"127.0.0.1:{free_port()}"
        if secure:
            listeners.append(f"SECURE://{self.secure_addr}")
            advertised.append(f"SECURE://{self.secure_addr}")
        settings = {
            "process.roles": "broker,controller",
            "node.id": number,
            "controller.quorum.voters": ",".join(f"{each}@127.0.0.1:{at}" for each, at in controllers.items()),
            "listeners": ",".join([*listeners, f"CONTROLLER://127.0.0.1:{controllers[number]}"]),
            "advertised.listeners": ",".join(advertised),
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL"
            ),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": f"{folder}/data",
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "controlled.shutdown.enable": "false",
            "offsets.topic.replication.factor": 1,
            "num.network.threads": 2,
            "num.io.threads": 2,
        }
        if secure:
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": secure,
                "listener.name.secure.sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "listener.name.secure.scram-sha-512.sasl.jaas.config": (
                    "org.apache.kafka.common.security.scram.ScramLoginModule required;"
                ),
            }
        (folder / "kafka.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        super().__init__(self._java("kafka.Kafka", "kafka.properties"), folder, port)
        self._format(folder)

    def _java(self, *arguments: str) -> list[str]:
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *options, "-cp", f"{self._libraries}/*", *arguments]

    def _format(self, folder: Path) -> None:
        user = f"SCRAM-SHA-512=[name={KAFKA_USER},password={KAFKA_PASSWORD}]"
        command = self._java(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", "kafka.properties", "--add-scram", user
        )
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=START_TIMEOUT_S)


@contextmanager
def kafka_brokers(
    folder: Path, count: int, *, proxied: tuple[int, int] | None = None, secure: str = ""
) -> Iterator[list[KafkaNode]]:
    """One, or a cluster. `secure`: a PEM file of key and certificate, for a port with TLS that wants a user."""
    controllers = {number: free_port() for number in range(count)}
    nodes = [KafkaNode(folder / f"k{number}", number, controllers, proxied, secure) for number in controllers]
    with _running(nodes) as running:
        yield running


@contextmanager
def nats_servers(folder: Path, count: int, settings: str = "") -> Iterator[list[NatsNode]]:
    """One, or a cluster."""
    routes = [(free_port(), free_port()) for _ in range(count)]
    nodes = [NatsNode(folder / f"n{index}", f"n{index}", routes, index, settings) for index in range(count)]
    with _running(nodes) as running:
        yield running


@contextmanager
def _running(nodes: list[N]) -> Iterator[list[N]]:
    with ExitStack() as stack:
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        for node in nodes:
            node.wait_until(node.ready)
        yield nodes
