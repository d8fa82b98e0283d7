"""A server as a child process, with a folder of its own: what `ServerProcess` and `RedisProcess` have in common."""

import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

_TAIL_CHARACTERS = 4000


class ServerFailed(RuntimeError):
    """The server process ended, or did not become ready in time. The text ends with the end of its log."""


class ChildProcess(ABC):
    """A process with a working directory and a log file, over any number of starts. Subclasses define `start`.

    As a context manager it starts on entering, and on leaving ends and removes its temporary files.
    """

    def __init__(self, workdir: Path | None, name: str) -> None:
        self._temporary = (
            None if workdir else tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True)
        )
        self.workdir = (workdir or Path(self._temporary.name if self._temporary else "")).resolve()
        self.log_path = self.workdir / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id. Raises RuntimeError when the process does not run."""
        return self._running_process().pid

    @property
    def running(self) -> bool:
        """Whether there is a process, ready or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """Everything that the process wrote to stdout and stderr, over all starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @abstractmethod
    def start(self) -> None:
        """Start the process and wait until it is ready. Raises ServerFailed."""

    def kill(self) -> None:
        """Kill -9: the process gets no chance to finish anything. Does nothing when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End the process and remove its temporary files."""
        self.kill()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _launch(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
        if self.running:
            raise RuntimeError("the server is already running")
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.workdir, env=env
            )
        return self._process

    def _running_process(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("the server is not running")
        return self._process

    def _log_tail(self) -> str:
        return self.log[-_TAIL_CHARACTERS:]
