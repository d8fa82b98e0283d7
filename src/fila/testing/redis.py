"""A real `redis-server` process that can be stopped, frozen, killed and started again, for tests and benchmarks.

It keeps its data (append-only, every write synced by the operating system) in a directory of its own, over all starts.
"""

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from fila.testing.server import ServerFailed

_POLL_S = 0.01
# Below the ports that the kernel gives to outgoing connections: none of those can take ours between two starts.
_PORTS = range(15_000, 32_000)


class RedisProcess:
    """One Redis on one loopback port, over any number of starts.

    with RedisProcess() as redis:
        queue = RedisQueue(QueueSettings(use_redis=True, redis_url=redis.url))
        redis.kill()
        redis.start()
    """

    def __init__(
        self, workdir: Path | None = None, *, args: Sequence[str] = (), password: str = "", start_timeout: float = 20.0
    ) -> None:
        """Take a port and a place for data, start nothing yet. `args` are added to the command line."""
        program = shutil.which("redis-server")
        if program is None:
            raise ServerFailed("there is no redis-server: run 'make setup', or install the package redis-server")
        self._program = program
        self._temporary = None if workdir else tempfile.TemporaryDirectory(prefix="redis-", ignore_cleanup_errors=True)
        self.workdir = (workdir or Path(self._temporary.name if self._temporary else "")).resolve()
        self.log_path = self.workdir / "redis.log"
        self._args = tuple(args)
        self._password = password
        self._start_timeout = start_timeout
        self.port, self._port_lock = _take_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is, password included."""
        credentials = f":{self._password}@" if self._password else ""
        return f"redis://{credentials}127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.workdir)]
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "no", "--daemonize", "no"]
        command += ["--requirepass", self._password] if self._password else []
        command += self._args
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + self._start_timeout
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(f"redis-server did not start\n{self.log_path.read_text(errors='replace')[-2000:]}")
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """Kill -9. Does nothing when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """It keeps its connections and answers nobody (SIGSTOP)."""
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
        self.kill()
        self._port_lock.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answers(self) -> bool:
        """Whether it answers a PING: also one without the password is answered, by a refusal, once data is loaded."""
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
    """A port that nobody uses, and the lock by which other processes of these tests know that it is taken."""
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
