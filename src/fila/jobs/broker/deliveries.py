"""Hands the messages of one broker queue to many threads.

A message stays with the SDK until a thread takes it. So the broker knows which jobs are running, and counts no attempt
for the others, however this process ends.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from fila.client import Client, ClientClosedError, ConsumeMessage, Consumer, FilaError, QueueNotFoundError
from fila.jobs.errors import QueueUnavailable

logger = logging.getLogger(__name__)

#: Backoff before consuming again after the broker refused: it doubles from the first number up to the second.
_BACKOFF_SECONDS = (0.05, 2.0)


class Deliveries:
    """Consumes on a thread of its own, from the first `take` to `close`. The SDK extends leases and reconnects."""

    def __init__(
        self, client: Client, queue: str, *, max_in_flight: int, on_missing: Callable[[], None] | None = None
    ) -> None:
        """`on_missing` is called when the queue does not exist; it may create it."""
        self._client = client
        self._queue = queue
        self._max_in_flight = max_in_flight
        self._on_missing = on_missing
        lock = threading.RLock()
        self._changed, self._wanted = threading.Condition(lock), threading.Condition(lock)
        self._hungry = False
        """Whether somebody found nothing since messages came"""
        self._consumer: Consumer[ConsumeMessage] | None = None
        self._interrupts = 0
        self._pid = os.getpid()
        self._failure: Exception | None = None
        self._closed = threading.Event()
        self._consumer_lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def interrupts(self) -> int:
        """How often waiting was interrupted."""
        return self._interrupts

    def take(self, timeout: float | None, interrupts: int | None = None) -> ConsumeMessage | None:
        """The next message, waiting for it. None when the time is over, after `close`, and after an `interrupt`:
        one that came since `interrupts` were counted, or since now.

        Raises QueueUnavailable when nothing will ever come: in a child of the process, or when the client was closed.
        """
        if self._pid != os.getpid():  # before the lock, which nobody may be left to release
            raise QueueUnavailable("the queue belongs to the parent process: make one after the fork")
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            self._start()
            interrupts = self._interrupts if interrupts is None else interrupts
            while (message := self._next()) is None:
                left = None if deadline is None else deadline - time.monotonic()
                if self._closed.is_set() or self._interrupts != interrupts or (left is not None and left <= 0):
                    return None
                if self._failure is not None:
                    raise QueueUnavailable(f"delivery has ended: {self._failure}") from self._failure
                self._hungry = True
                self._wanted.notify()
                self._changed.wait(left)
            return message

    def _next(self) -> ConsumeMessage | None:
        return None if self._consumer is None or self._closed.is_set() else self._consumer.take()

    @property
    def waiting(self) -> int:
        """How many messages no thread has taken yet."""
        consumer = self._consumer
        return 0 if consumer is None else consumer.waiting

    def interrupt(self) -> None:
        """Make every waiting `take` return None."""
        with self._changed:
            self._interrupts += 1
            self._changed.notify_all()

    def begin_anew(self) -> None:
        """Drop messages that no thread has taken, and consume again."""
        with self._consumer_lock:
            if self._consumer is not None:
                self._consumer.close()
        with self._changed:
            self._wanted.notify()

    def close(self) -> None:
        """Stop consuming. Unsettled messages go back to the broker, which counts an attempt for taken ones."""
        self._closed.set()
        self.begin_anew()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None and not self._closed.is_set():
            self._thread = threading.Thread(target=self._live, name="fila-jobs-deliveries", daemon=True)
            self._thread.start()

    def _live(self) -> None:
        try:
            self._keep_consuming()
        except Exception as error:  # noqa: BLE001  told to everybody who waits, now and later
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _keep_consuming(self) -> None:
        """Until closed. Raises ClientClosedError when the client is closed before."""
        backoff = _BACKOFF_SECONDS[0]
        while not self._closed.is_set():
            try:
                self._consume()
                backoff = _BACKOFF_SECONDS[0]
            except ClientClosedError:
                raise
            except FilaError as error:
                logger.warning("cannot consume from the broker: %s", error, extra={"queue": self._queue})
                if isinstance(error, QueueNotFoundError):
                    self._create()
            self._closed.wait(backoff)
            backoff = min(backoff * 2, _BACKOFF_SECONDS[1])

    def _consume(self) -> None:
        with self._consumer_lock:
            if self._closed.is_set():
                return
            self._consumer = consumer = self._client.consume(self._queue, max_in_flight=self._max_in_flight)
        try:
            while consumer.wait():
                with self._changed:
                    self._hungry = False
                    self._changed.notify_all()
                    while not self._hungry and consumer.waiting:
                        self._wanted.wait()
        finally:
            self._consumer = None
            consumer.close()

    def _create(self) -> None:
        if self._on_missing is not None:
            try:
                self._on_missing()
            except FilaError as error:
                logger.warning("the queue cannot be created: %s", error, extra={"queue": self._queue})
