"""The parent of the workers: starts them, starts one again that has died, and stops them together.

Rules of this file:
- The parent serves nobody and holds no state: it may be killed, and the workers end.
- It holds the port, so that no other program can have it while a worker starts; it never listens.
- A worker is a fork: all have the settings that were read at the start, whatever became of the file.
- What fails before all workers have served once is a failed start: all end. Afterwards a worker that ends is started
  again, at first at once, then with growing pauses.
"""

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

import structlog

from fila.cluster import folder
from fila.config import Config
from fila.wire.address import split_address

STOP_S: Final = 10.0
"""How much longer than its own time a worker may take to stop"""
LOCK_S: Final = 5.0
"""How long the workers of a parent that was killed may take to end before a new one gives up"""
PAUSES_S: Final = (0.0, 0.1, 0.5, 2.0, 5.0)
"""Before each further start of a worker that did not last"""
LASTED_S: Final = 30.0
_LONGEST_FOLDER: Final = 100
"""Bytes of the path of the sockets' folder. The system takes 107 of a socket's, and macOS 103."""
_LOOK_S: Final = 0.2
_EXIT_DEFECT: Final = 70
"""As in sysexits.h: an internal software error."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)

log = structlog.get_logger(__name__)


class Run(Protocol):
    """A worker, from begin to end, in a process of its own. Returns its exit code."""

    def __call__(self, config: Config, worker: int, sockets: Path, told: int, tells: int, *, restarted: bool) -> int:
        """`told` and `tells` are the pipes from and to the parent."""


@dataclass(slots=True)
class Worker:
    """A process, or the pause before the next."""

    number: int
    pid: int = 0
    """0: it does not run"""
    told: int = -1
    heard: int = -1
    reachable: bool = False
    serving: bool = False
    started_at: float = 0.0
    start_at: float = 0.0
    failures: int = 0


class Supervisor:
    """The workers of one server."""

    def __init__(self, config: Config, run: Run) -> None:
        self._config = config
        self._run = run
        self._workers = [Worker(number) for number in range(config.server.workers)]
        self._gone = False
        """All workers could be reached once, and were told so"""
        self._served = False
        self._stopping_at: float | None = None
        self._code = 0

    def serve(self) -> int:
        """Until SIGTERM or SIGINT. Returns the exit code. Raises StoreUnusable or OSError."""
        path = Path(self._config.storage.data_dir)
        sockets = folder.socket_folder(path)
        length = len(str(sockets).encode())
        if length > _LONGEST_FOLDER:
            raise OSError(
                f"the path of the data directory is too long for the sockets of its workers: {sockets} has {length} "
                f"bytes, {_LONGEST_FOLDER} are possible. Give a shorter one, or one relative to where you are"
            )
        folder.claim(path, self._config.server.workers)
        with folder.lock(path, LOCK_S):
            self._sockets = folder.new_socket_folder(path)
            self._serve()
        return self._code

    def _serve(self) -> None:
        config = self._config
        with _hold_port(config.server.listen_addr) as port:
            host, _ = split_address(config.server.listen_addr)
            shown = f"[{host}]" if ":" in host else host
            self._config = replace(config, server=replace(config.server, listen_addr=f"{shown}:{port}"))
            self._wake, wake_up = os.pipe()
            for end in (self._wake, wake_up):
                os.set_blocking(end, False)
            for number in _SIGNALS:
                signal.signal(number, self._signalled)
            signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
            try:
                self._loop()
            finally:
                signal.set_wakeup_fd(-1)
                self._kill()
                os.close(self._wake)
                os.close(wake_up)

    def _signalled(self, number: int, _frame: object) -> None:
        if number in {signal.SIGTERM, signal.SIGINT}:
            self._stop(0)
        elif number == signal.SIGHUP:
            self._send(signal.SIGHUP)

    def _loop(self) -> None:
        while True:
            self._start_due()
            pipes = [worker.heard for worker in self._workers if worker.heard >= 0]
            readable, _, _ = select.select([self._wake, *pipes], (), (), _LOOK_S)
            if self._wake in readable:
                with suppress(BlockingIOError):
                    os.read(self._wake, 1024)
            for worker in self._workers:
                if worker.heard in readable:
                    self._hear(worker)
            self._reap()
            if self._stopping_at is not None:
                if not any(worker.pid for worker in self._workers):
                    return
                if time.monotonic() > self._stopping_at:
                    log.error("workers did not stop in time and are killed")
                    self._code = self._code or 1
                    return

    def _start_due(self) -> None:
        for worker in self._workers:
            with _held_signals():  # each comes before a worker is started, or reaches it
                due = not worker.pid and time.monotonic() >= worker.start_at
                if due and self._stopping_at is None:
                    self._start(worker)

    def _start(self, worker: Worker) -> None:
        told, tell = os.pipe()
        hear, tells = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(tell)
            os.close(hear)
            code = _EXIT_DEFECT
            try:
                code = self._child(worker.number, told, tells)
            except Exception:
                log.exception("the worker has a defect and ends", worker=worker.number)
            finally:  # whatever it is, what follows is the parent's
                os._exit(code)
        os.close(told)
        os.close(tells)
        worker.pid, worker.told, worker.heard = pid, tell, hear
        worker.reachable = worker.serving = False
        worker.started_at = time.monotonic()
        log.info("a worker is started", worker=worker.number, pid=pid)
        if self._gone:
            _tell_to_go(tell)

    def _child(self, number: int, told: int, tells: int) -> int:
        """In the process of the worker. What belongs to the parent, or to other workers, is closed: pipes must end."""
        signal.set_wakeup_fd(-1)
        for each in _SIGNALS:  # a worker that is starting is asked to renew its certificates for nothing
            signal.signal(each, signal.SIG_IGN if each == signal.SIGHUP else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        for worker in self._workers:
            for end in (worker.told, worker.heard):
                if end >= 0:
                    os.close(end)
        config = _config_of(self._config, number)
        return self._run(config, number, self._sockets, told, tells, restarted=self._gone)

    def _hear(self, worker: Worker) -> None:
        said = os.read(worker.heard, 16)
        if b"I" in said:
            worker.reachable = True
        if b"R" in said:
            worker.serving = True
        if not self._gone and all(each.reachable for each in self._workers):
            self._gone = True
            for each in self._workers:
                _tell_to_go(each.told)
        if not self._served and all(each.serving for each in self._workers):
            self._served = True
            log.info("all workers serve", workers=len(self._workers), address=self._config.server.listen_addr)
        if not said:
            os.close(worker.heard)
            worker.heard = -1

    def _reap(self) -> None:
        for worker in self._workers:
            if worker.pid:
                pid, status = os.waitpid(worker.pid, os.WNOHANG)
                if pid:
                    self._ended(worker, os.waitstatus_to_exitcode(status))

    def _ended(self, worker: Worker, code: int) -> None:
        for end in (worker.told, worker.heard):
            if end >= 0:
                os.close(end)
        worker.pid, worker.told, worker.heard = 0, -1, -1
        worker.reachable = worker.serving = False
        if self._stopping_at is not None:
            # One that was just starting ends by the signal itself. A terminal sends SIGINT to all.
            stopped = code in {0, -signal.SIGTERM, -signal.SIGINT}
            self._code = self._code or (0 if stopped else abs(code))
            return
        if not self._served:
            log.error("a worker did not start, and so the server does not", worker=worker.number, exit_code=code)
            self._stop(abs(code) or 1)
            return
        lasted = time.monotonic() - worker.started_at
        worker.failures = 0 if lasted >= LASTED_S else worker.failures + 1
        pause_s = PAUSES_S[min(worker.failures, len(PAUSES_S) - 1)]
        worker.start_at = time.monotonic() + pause_s
        log.error("a worker ended and is started again", worker=worker.number, exit_code=code, in_seconds=pause_s)

    def _stop(self, code: int) -> None:
        if self._stopping_at is None:
            self._stopping_at = time.monotonic() + self._config.server.shutdown_grace_ms / 1000 + STOP_S
            self._code = code
            self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for worker in self._workers:
            if worker.pid:
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, number)

    def _kill(self) -> None:
        self._send(signal.SIGKILL)
        for worker in self._workers:
            if worker.pid:
                os.waitpid(worker.pid, 0)


@contextmanager
def _held_signals() -> Iterator[None]:
    """Signals come when the context is closed, and not within it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _tell_to_go(told: int) -> None:
    """All workers can be reached. One that has just ended hears nothing."""
    with suppress(BrokenPipeError):
        os.write(told, b"G")


def _config_of(config: Config, number: int) -> Config:
    """The settings of one worker: its own store, and its own port for metrics."""
    storage = replace(config.storage, data_dir=str(folder.store_folder(Path(config.storage.data_dir), number)))
    telemetry = config.telemetry
    if telemetry.prometheus_listen:
        host, port = split_address(telemetry.prometheus_listen)
        shown = f"[{host}]" if ":" in host else host
        telemetry = replace(telemetry, prometheus_listen=f"{shown}:{port + number if port else 0}")
    return replace(config, storage=storage, telemetry=telemetry)


@contextmanager
def _hold_port(address: str) -> Iterator[int]:
    """The port of the server, which is taken for as long as the context is open. Raises OSError."""
    host, port = split_address(address)
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = found[0]
        with socket.socket(family) as alone:  # whoever shares the port with us is one of ours
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            alone.bind(place)
        held = socket.socket(family)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(place)
    except OSError as cause:
        raise OSError(f"cannot listen on {address}: is it in use?") from cause
    with held:
        yield int(held.getsockname()[1])
