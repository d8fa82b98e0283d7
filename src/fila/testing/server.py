"""A real `fila-server` process that can be killed and started again, for tests, demonstrations and benchmarks.

Rules of this file:
- The port stays ours from construction to `close()`, also while no server runs: a bound socket that never listens holds
  it. Otherwise another process, or a client that is trying to reconnect, could be given the port by the kernel between
  a kill and the restart.
- The process sees nothing of the machine it runs on: its own working directory, its own configuration file, no `FILA_*`
  variables.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_SERVING = b"\x08\x01"  # HealthCheckResponse { status: SERVING }
_POLL_S = 0.02
_TAIL_CHARACTERS = 4000


class ServerFailed(RuntimeError):
    """The server process ended, or did not become ready in time. The text ends with what it logged last."""


class ServerProcess:
    """One server on one loopback port and one data directory, over any number of starts.

    As a context manager it starts on entering, and on leaving stops and gives back port and temporary files:

        with ServerProcess() as server, Client(server.addr) as client:
            client.create_queue("orders")
            server.kill()
            server.start()
            assert [queue.name for queue in client.list_queues()] == ["orders"]
    """

    def __init__(
        self,
        workdir: Path | None = None,
        *,
        config: str = "",
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        start_timeout: float = 30.0,
    ) -> None:
        """Take a port and a place for data, start nothing yet.

        `workdir` holds the data directory, the configuration file (`config` is its TOML text) and the log; without it,
        a temporary directory is used and removed by `close()`. `args` and `env` are added to those of the process.
        """
        self._temporary = None if workdir else tempfile.TemporaryDirectory(prefix="fila-", ignore_cleanup_errors=True)
        self.workdir = (workdir or Path(self._temporary.name if self._temporary else "")).resolve()
        self.data_dir = self.workdir / "data"
        self.log_path = self.workdir / "server.log"
        self._config_path = self.workdir / "fila.toml"
        self._config_path.write_text(config)
        self._args = tuple(args)
        self._env = _clean_environment() | dict(env or {})
        self._start_timeout = start_timeout
        self._port_holder = _hold_free_port()
        self.port: int = self._port_holder.getsockname()[1]
        self.addr = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id. Raises RuntimeError when the server does not run."""
        return self._running_process().pid

    @property
    def running(self) -> bool:
        """Whether there is a process, ready or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """All that the server wrote to stdout and stderr, over all starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def start(self) -> None:
        """Start the server and wait until it reports that it is serving."""
        self.launch()
        try:
            self._await_ready(time.monotonic() + self._start_timeout)
        except BaseException:
            self.kill()
            raise

    def launch(self) -> "subprocess.Popen[bytes]":
        """Start the server without waiting: for servers that are expected to refuse."""
        if self.running:
            raise RuntimeError("the server is already running")
        command = [sys.executable, "-m", "fila.server.main", "--config", str(self._config_path)]
        command += ["--listen", self.addr, "--data-dir", str(self.data_dir), *self._args]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.workdir,
                env=self._env,
            )
        return self._process

    def kill(self) -> None:
        """Kill -9: the process gets no chance to finish anything. Does nothing when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, timeout: float = 30.0) -> int:
        """Ask the server to stop (SIGTERM) and return its exit code."""
        process = self._running_process()
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ServerFailed(f"the server did not stop within {timeout:g} s\n{self._log_tail()}") from error

    def restart(self) -> None:
        """Stop gracefully, then start on the same port and data directory."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End the process, however it takes it, and give back port and temporary files."""
        try:
            if self.running:
                self.stop(timeout=10)
        finally:
            self.kill()
            self._port_holder.close()
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

    def _running_process(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("the server is not running")
        return self._process

    def _await_ready(self, deadline: float) -> None:
        process = self._running_process()
        while not (self._accepts_connections() and self._is_serving()):
            if process.poll() is not None:
                raise ServerFailed(f"the server ended with exit code {process.returncode}\n{self._log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"the server was not ready within {self._start_timeout:g} s\n{self._log_tail()}")
            time.sleep(_POLL_S)

    def _accepts_connections(self) -> bool:
        # Cheaper to ask in a loop than a gRPC channel, which backs off for a second after its first failure.
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _is_serving(self) -> bool:
        with grpc.insecure_channel(self.addr) as channel:
            check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_HEALTH_CHECK)
            try:
                return check(b"", timeout=1.0) == _SERVING
            except grpc.RpcError:
                return False

    def _log_tail(self) -> str:
        return self.log[-_TAIL_CHARACTERS:]


def _hold_free_port() -> socket.socket:
    """A loopback port that no one else is given while the socket is open, but on which a server can still listen."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


def _clean_environment() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    if "PYTHONPATH" in env:  # may be relative to our working directory, which is not the server's
        env["PYTHONPATH"] = os.pathsep.join(str(Path(path).resolve()) for path in env["PYTHONPATH"].split(os.pathsep))
    env["PYTHONUNBUFFERED"] = "1"
    return env
