"""A real `redis-server` process that can be stopped, frozen, killed and started again, for tests and benchmarks.

It keeps its data (append-only, synced by the operating system) in a directory of its own, over all starts.
"""

import fcntl
import os
import random
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fila.testing.process import ChildProcess, ServerFailed

_POLL_S = 0.01
# Below the ports of outgoing connections, so that none of those can take ours between two starts.
_PORTS = range(15_000, 32_000)


class RedisProcess(ChildProcess):
    """One Redis on one loopback port, over any number of starts.

    with RedisProcess() as redis:
        queue = RedisQueue(QueueSettings(use_redis=True, redis_url=redis.url))
        redis.kill()
        redis.start()
    """

    def __init__(
        self, workdir: Path | None = None, *, args: Sequence[str] = (), password: str = "", start_timeout: float = 20.0
    ) -> None:
        """Reserve a port and a folder for data. Nothing is started yet. `args` are added to the command line."""
        program = shutil.which("redis-server")
        if program is None:
            raise ServerFailed("redis-server is not installed: run 'make setup', or install the package redis-server")
        super().__init__(workdir, "redis")
        self._program = program
        self._args = tuple(args)
        self._password = password
        self._start_timeout = start_timeout
        self.port, self._port_lock = _take_port()

    @property
    def url(self) -> str:
        """Its URL, password included."""
        credentials = f":{self._password}@" if self._password else ""
        return f"redis://{credentials}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.workdir)]
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "no", "--daemonize", "no"]
        command += ["--requirepass", self._password] if self._password else []
        command += self._args
        process = self._launch(command)
        deadline = time.monotonic() + self._start_timeout
        while not self._answers():
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(f"redis-server did not start\n{self._log_tail()}")
            time.sleep(_POLL_S)

    def freeze(self) -> None:
        """Freeze it (SIGSTOP): it keeps its connections, and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def close(self) -> None:
        """End the process and give back port and temporary files."""
        self._port_lock.close()
        super().close()

    def _answers(self) -> bool:
        """Whether it answers a PING. Once data is loaded it answers one without the password too, with a refusal."""
        with socket.socket() as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(("127.0.0.1", self.port))
                probe.sendall(b"PING\r\n")
                answer = probe.recv(64)
            except OSError:
                return False
            return answer.startswith((b"+PONG", b"-NOAUTH"))


def _take_port() -> tuple[int, IO[bytes]]:
    """A free port, and the lock by which other processes of these tests know that it is taken."""
    for port in random.sample(_PORTS, k=100):
        lock = Path(tempfile.gettempdir(), f"fila-testing-port-{port}.lock").open("wb")  # noqa: SIM115  held open
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        return port, lock
    raise ServerFailed("no free port")
