"""A broker as a process on a loopback port, with a folder of its own, that can be killed and started again.

Rules of this file:
- Nothing of the machine's own brokers is touched: other ports, other folders, no service is started or stopped.
- Whatever is started here ends here: `close` kills what still runs and removes the folder.
"""

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

_START_S = 180.0
_POLL_S = 0.01
# Below the ports that the kernel gives to outgoing connections: none of those takes ours between two starts.
_PORTS = range(15_000, 32_000)


class ServerFailed(RuntimeError):
    """A broker ended, or did not become ready in time. The text ends with what it wrote last."""


def free_port() -> int:
    for port in random.sample(_PORTS, k=100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ServerFailed("no free port")


def find_program(*names: str) -> str | None:
    """The first of these that is installed; Debian keeps servers out of the PATH of users."""
    folders = os.pathsep.join(
        [
            str(Path(sys.executable).parent),
            os.environ.get("PATH", ""),
            "/usr/sbin",
            "/usr/local/sbin",
            "/usr/lib/rabbitmq/bin",
        ]
    )
    return next((found for name in names if (found := shutil.which(name, path=folders))), None)


class Server(ABC):
    """One broker over any number of starts. As a context manager it runs from entering to leaving."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """What starts it in the foreground."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether it answers."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    @property
    def pid(self) -> int:
        """The process that does the work."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers."""
        log = self.folder / "output.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command(),
                env=self.environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_S
        while not self._try_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(f"{self.command()[0]} did not start\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """Kill -9. Does nothing when it does not run."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        self.kill()
        self._temporary.cleanup()

    def _try_ready(self) -> bool:
        try:
            return self.ready()
        except OSError:
            return False

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answers(port: int, request: bytes, answer: bytes) -> bool:
    """Whether the first bytes that come back from a port are those. An empty request waits for a greeting."""
    with socket.create_connection(("127.0.0.1", port), timeout=1.0) as probe:
        if request:
            probe.sendall(request)
        return probe.recv(256).startswith(answer)
