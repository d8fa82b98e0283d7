"""Client processes that start together, from here to their end."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from fila.cli.bench.clients import GO, READY, STOP, Counted, Failed, Outcome, Work, run
from fila.cli.bench.load import Job

_SPAWN = multiprocessing.get_context("spawn")
_READY_S = 60.0
_END_S = 60.0
"""How long clients may take to end after they were told to: longer than any call"""


class ClientFailed(Exception):
    """A client process could not go on. The text says why."""


class Clients:
    """Some processes that do the same work, each with its own part."""

    def __init__(self, work: Work, jobs: Sequence[Job]) -> None:
        self.counted = 0
        """Messages so far"""
        self.outcomes: list[Outcome] = []
        self._processes: dict[Connection[Any, Any], Any] = {}
        self._ended: list[Any] = []
        for job in jobs:
            ours, theirs = _SPAWN.Pipe()
            process = _SPAWN.Process(target=run, args=(theirs, work, job), daemon=True)
            process.start()
            theirs.close()
            self._processes[ours] = process

    @property
    def pipes(self) -> list[Connection[Any, Any]]:
        """Of those that have not ended."""
        return list(self._processes)

    @property
    def ended(self) -> bool:
        return not self._processes

    def await_ready(self) -> None:
        deadline = time.monotonic() + _READY_S
        for pipe in self._processes:
            if not pipe.poll(max(0.0, deadline - time.monotonic())):
                raise ClientFailed(f"a client process did not start within {_READY_S:g} s")
            if _receive(pipe) != READY:
                raise ClientFailed("a client process did not begin")

    def tell(self, what: str) -> None:
        for pipe in self._processes:
            with suppress(OSError):  # it has just ended, and its last words are still to be heard
                pipe.send(what)

    def hear(self, pipe: Connection[Any, Any]) -> None:
        """Take in what a process says."""
        said = _receive(pipe)
        if isinstance(said, Counted):
            self.counted += said.messages
        elif isinstance(said, Outcome):
            self.outcomes.append(said)
            self._ended.append(self._processes.pop(pipe))

    def kill(self) -> None:
        for process in (*self._processes.values(), *self._ended):
            process.kill()
            process.join()


def _receive(pipe: Connection[Any, Any]) -> Any:
    try:
        said = pipe.recv()
    except (EOFError, OSError) as error:
        raise ClientFailed("a client process ended without a word") from error
    if isinstance(said, Failed):
        raise ClientFailed(said.text)
    return said


@contextmanager
def started(*groups: Clients) -> Iterator[None]:
    """From the starting signal. Whatever happens, no process is left."""
    try:
        for group in groups:
            group.await_ready()
        for group in groups:
            group.tell(GO)
        yield
    finally:
        for group in groups:
            group.kill()


def watch(groups: Sequence[Clients], seconds: float, done: Callable[[], bool], progress: Callable[[], object]) -> bool:
    """Hear processes until `done`, or until the time is over; then stop them. Returns whether they were done in time.

    Raises ClientFailed.
    """
    deadline = time.monotonic() + seconds
    complete = False
    while not (complete := done()) and (left := deadline - time.monotonic()) > 0:
        _hear(groups, left)
        progress()
    for group in groups:
        group.tell(STOP)
    deadline = time.monotonic() + _END_S
    while not all(group.ended for group in groups):
        if time.monotonic() > deadline:
            raise ClientFailed(f"a client process did not end within {_END_S:g} s")
        _hear(groups, deadline - time.monotonic())
    return complete


def _hear(groups: Sequence[Clients], seconds: float) -> None:
    owners = {pipe: group for group in groups for pipe in group.pipes}
    for ready in wait(list(owners), max(0.0, seconds)):
        if isinstance(ready, Connection):
            owners[ready].hear(ready)
