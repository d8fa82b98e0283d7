"""A real `fila-server` process that can be killed and started again, for tests, demonstrations and benchmarks.

Rules of this file:
- The port stays ours from construction to `close()`, also while no server runs: a bound socket that never listens holds
  it. Otherwise the kernel could give the port to another process, or to a client that reconnects, between a kill and
  the restart.
- The process is isolated from the machine's settings: it has its own working directory and configuration file, and no
  `FILA_*` variables.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import grpc

from fila.testing.process import ChildProcess, ServerFailed

_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_SERVING = b"\x08\x01"  # HealthCheckResponse { status: SERVING }
_POLL_S = 0.02


class ServerProcess(ChildProcess):
    """One server on one loopback port and one data directory, over any number of starts.

    As a context manager it starts on entering, and on leaving stops and gives back its port and temporary files:

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
        listen_host: str = "127.0.0.1",
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        start_timeout: float = 30.0,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        """Reserve a port and a folder for data. Nothing is started yet.

        `workdir` holds the data directory, the configuration file (`config` is its TOML text) and the log; by default
        it is a temporary directory that `close()` removes. It listens on `listen_host`; `addr` is always of loopback.
        `args` and `env` are added to those of the process. With TLS, `credentials` ask the server for its health.
        """
        super().__init__(workdir, "server")
        self.data_dir = self.workdir / "data"
        self._config_path = self.workdir / "fila.toml"
        self._config_path.write_text(config)
        self._listen_host = listen_host
        self._args = tuple(args)
        self._env = _clean_environment() | dict(env or {})
        self._start_timeout = start_timeout
        self._credentials = credentials
        self._port_holder = _hold_free_port()
        self.port: int = self._port_holder.getsockname()[1]
        self.addr = f"127.0.0.1:{self.port}"

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
        command = [sys.executable, "-m", "fila.server.main", "--config", str(self._config_path)]
        command += ["--listen", f"{self._listen_host}:{self.port}", "--data-dir", str(self.data_dir), *self._args]
        return self._launch(command, self._env)

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
        """End the process, gracefully if it can, and give back port and temporary files."""
        try:
            if self.running:
                self.stop(timeout=10)
        finally:
            self._port_holder.close()
            super().close()

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
        with self._channel() as channel:
            check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_HEALTH_CHECK)
            try:
                return check(b"", timeout=1.0) == _SERVING
            except grpc.RpcError:
                return False

    def _channel(self) -> grpc.Channel:
        if self._credentials is None:
            return grpc.insecure_channel(self.addr)
        return grpc.secure_channel(self.addr, self._credentials)


def _hold_free_port() -> socket.socket:
    """A loopback port that stays reserved while the socket is open, and on which a server can still listen."""
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
