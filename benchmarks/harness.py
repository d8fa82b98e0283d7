"""Client processes that start together, and what they and the server cost while they run.

Rules of this file:
- A client is a process of its own. It connects and prepares before the starting signal, and closes after the clock
  stopped: only what lies between is measured.
- All times are of the monotonic clock, which the processes of one machine share.
"""

import multiprocessing
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Self

import psutil

from fila import Client
from fila.testing import ServerProcess

QUEUE = "bench"

_SPAWN = multiprocessing.get_context("spawn")
_READY_S = 60.0
_DONE_S = 600.0


class ClientFailed(RuntimeError):
    """A client process raised, ended or hung. The text is its traceback."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one client did between the starting signal and its end."""

    began: float
    ended: float
    cpu_s: float
    result: Any = None


class Gate:
    """The measured part of a client's work: `with gate:` waits for the starting signal and stops the clock after it."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self._pipe = pipe
        self._began = self._ended = self._cpu_s = 0.0

    def __enter__(self) -> Self:
        self._pipe.send(None)
        self._pipe.recv()
        self._cpu_s = _own_cpu_s()
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = time.monotonic()
        self._cpu_s = _own_cpu_s() - self._cpu_s

    def tell(self, what: Any) -> None:
        """Say something before the starting signal, such as the port of a bare server."""
        self._pipe.send(what)

    def outcome(self, result: Any) -> Outcome:
        return Outcome(self._began, self._ended, self._cpu_s, result)


class ClientProcess:
    """One process that runs `work(gate, *args)`. Usable once."""

    def __init__(self, work: Callable[..., Any], *args: Any) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_run, args=(theirs, work, args), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def await_ready(self) -> None:
        self.receive(_READY_S)

    def go(self) -> None:
        self._pipe.send(None)

    def outcome(self) -> Outcome:
        outcome = self.receive(_DONE_S)
        self._process.join()
        assert isinstance(outcome, Outcome)
        return outcome

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def receive(self, timeout_s: float = _READY_S) -> Any:
        if not self._pipe.poll(timeout_s):
            raise ClientFailed(f"a client said nothing for {timeout_s:g} s")
        try:
            received = self._pipe.recv()
        except EOFError:
            raise ClientFailed("a client ended without a word") from None
        if isinstance(received, str):
            raise ClientFailed(received)
        return received


@dataclass(frozen=True, slots=True)
class Measured:
    """Clients that ran together, from the first start to the last end."""

    seconds: float
    server_cpu_s: float
    clients: Sequence[Outcome]

    @property
    def client_cpu_s(self) -> float:
        return sum(each.cpu_s for each in self.clients)

    def per_message(self, messages: int) -> dict[str, float]:
        """The figures that every throughput workload has."""
        return {
            "messages_per_s": messages / self.seconds,
            "server_cpu_s_per_100k": self.server_cpu_s / messages * 100_000,
            "client_cpu_s_per_100k": self.client_cpu_s / messages * 100_000,
        }


def run_together(server_pid: int | None, clients: Sequence[ClientProcess]) -> Measured:
    """Give the starting signal when all are ready, and wait until all are done. Raises ClientFailed.

    Without a server, its CPU time is 0.
    """
    try:
        for client in clients:
            client.await_ready()
        before = cpu_s(server_pid) if server_pid else 0.0
        for client in clients:
            client.go()
        outcomes = [client.outcome() for client in clients]
        spent = cpu_s(server_pid) - before if server_pid else 0.0
    except BaseException:
        for client in clients:
            client.kill()
        raise
    seconds = max(each.ended for each in outcomes) - min(each.began for each in outcomes)
    return Measured(seconds, spent, outcomes)


@contextmanager
def fresh_server(*, config: str = "", **queue: Any) -> Iterator[ServerProcess]:
    """A server with its own empty data directory, the default configuration but for `config`, and one queue."""
    with ServerProcess(start_timeout=120, config=config) as server:
        with Client(server.addr) as client:
            client.create_queue(QUEUE, **queue)
        yield server


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def end_on_sigterm() -> None:
    """A run that is told to stop leaves as after Ctrl-C: servers are ended and folders removed on the way out."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def cpu_s(pid: int) -> float:
    """User and system time of a process, all its threads together."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def rss_bytes(pid: int) -> int:
    return psutil.Process(pid).memory_info().rss


def _own_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _run(pipe: "Connection[Any, Any]", work: Callable[..., Any], args: Sequence[Any]) -> None:
    gate = Gate(pipe)
    try:
        pipe.send(gate.outcome(work(gate, *args)))
    except BaseException:  # noqa: BLE001 - whatever it is, the other side must see it
        pipe.send(traceback.format_exc())
    finally:
        pipe.close()
        os._exit(0)  # nothing of the client outlives its measurement, threads of libraries included
