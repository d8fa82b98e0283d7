"""What a client process does: it connects, waits for the start, and produces or consumes until it is done or stopped.

Rules of this file:
- Only what lies between the start and the last answer is measured.
- Ctrl-C is the business of the process that started this one, which tells us through the pipe. When the pipe ends, so
  does this process.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from fila.cli.bench.latencies import Latencies
from fila.cli.bench.load import KEY_HEADER, STAMP_BYTES, Job, since, stamp
from fila.client import Client, OutgoingMessage

TIMEOUT_S = 20.0
"""Of a call"""
_IN_FLIGHT = 1000

GO, STOP, READY = "go", "stop", "ready"


@dataclass(frozen=True, slots=True)
class Counted:
    """So many messages more."""

    messages: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a client could not go on."""

    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one client has done."""

    began: float
    ended: float
    messages: int
    calls: list[float] = field(default_factory=list)
    """How long its calls took"""
    deliveries: list[float] = field(default_factory=list)
    """How long messages were on their way to it"""


Work = Callable[[Client, Job, "Post"], Outcome]


class Post:
    """The way to the process that started this one."""

    def __init__(self, pipe: Connection[Any, Any]) -> None:
        self._pipe = pipe
        self.stopped = threading.Event()
        self._on_stop: Callable[[], object] = self.stopped.set

    def await_start(self) -> None:
        self._pipe.send(READY)
        if self._pipe.recv() != GO:
            raise EOFError
        threading.Thread(target=self._listen, daemon=True).start()

    def count(self, messages: int) -> None:
        self._pipe.send(Counted(messages))

    def when_stopped(self, act: Callable[[], object]) -> None:
        """What to do when there is nothing more to do, at once if that is so already."""
        self._on_stop = act
        if self.stopped.is_set():
            act()

    def _listen(self) -> None:
        try:
            self._pipe.recv()
        except (EOFError, OSError):
            os._exit(1)
        self.stopped.set()
        self._on_stop()


def run(pipe: Connection[Any, Any], work: Work, job: Job) -> None:
    """The whole life of a client process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        broker = job.endpoint
        with Client(broker.addr, timeout=TIMEOUT_S, api_key_file=broker.api_key_file, tls=broker.tls) as client:
            client.auth.who_am_i()
            pipe.send(work(client, job, Post(pipe)))
    except (EOFError, BrokenPipeError):
        pass  # nobody wants to know
    except Exception as error:  # noqa: BLE001  told to the process that asked
        pipe.send(Failed(str(error) or type(error).__name__))


def produce(client: Client, job: Job, post: Post) -> Outcome:
    """Enqueue messages in batches, each after the one before is durable."""
    headers = [{KEY_HEADER: f"key-{number}"} for number in range(job.load.keys)]
    filler = b"x" * (job.load.size - STAMP_BYTES)
    calls = Latencies()
    sent = 0
    post.await_start()
    began = time.monotonic()
    while sent < job.messages and not post.stopped.is_set():
        called = time.monotonic()
        size = min(job.load.batch, job.messages - sent)
        payload = stamp() + filler
        numbers = range(sent, sent + size)
        if size == 1:
            client.enqueue(job.queue, headers[sent % len(headers)], payload)
        else:
            client.enqueue_many(
                job.queue, [OutgoingMessage(payload, headers[number % len(headers)]) for number in numbers]
            )
        calls.add(time.monotonic() - called)
        sent += size
        post.count(size)
    return Outcome(began, time.monotonic(), sent, calls.kept)


def consume(client: Client, job: Job, post: Post) -> Outcome:
    """Receive and ack messages in the batches in which they come, until told to stop."""
    calls, deliveries = Latencies(), Latencies()
    received = 0
    post.await_start()
    began = ended = time.monotonic()
    with client.consume_batches(job.queue, max_in_flight=_IN_FLIGHT) as batches:
        post.when_stopped(batches.stop)
        for batch in batches:
            for message in batch:
                deliveries.add(since(message.payload))
            called = time.monotonic()
            client.ack_many(batch)
            ended = time.monotonic()
            calls.add(ended - called)
            received += len(batch)
            post.count(len(batch))
    return Outcome(began, ended, received, calls.kept, deliveries.kept)
