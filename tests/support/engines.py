"""Engines that keep logs, started for tests on free loopback ports."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from scripts import engines

START_TIMEOUT_S = 60


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


@contextmanager
def nats_servers(folder: Path, count: int, settings: str = "") -> Iterator[list[NatsNode]]:
    """One, or a cluster."""
    routes = [(free_port(), free_port()) for _ in range(count)]
    nodes = [NatsNode(folder / f"n{index}", f"n{index}", routes, index, settings) for index in range(count)]
    with ExitStack() as stack:
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        for node in nodes:
            node.wait_until(node.ready)
        yield nodes
