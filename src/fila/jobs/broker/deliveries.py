"""Messages of one queue of the broker as they come, for many threads that wait with a timeout."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable

from fila.client import Client, ClientClosedError, ConsumeMessage, FilaError, QueueNotFoundError
from fila.jobs.errors import QueueUnavailable

logger = logging.getLogger(__name__)

#: How long to rest before consuming again after the broker refused; it grows up to the second number.
_REST_SECONDS = (0.05, 2.0)


class Deliveries:
    """Consumes on a thread of its own, from the first `take` to `close`. The SDK extends leases and reconnects."""

    def __init__(
        self, client: Client, queue: str, *, max_in_flight: int, on_missing: Callable[[], None] | None = None
    ) -> None:
        """`on_missing` is called when the queue is not there; it may create it."""
        self._client = client
        self._queue = queue
        self._max_in_flight = max_in_flight
        self._on_missing = on_missing
        self._changed = threading.Condition()
        self._waiting: deque[ConsumeMessage] = deque()
        self._interrupts = 0
        self._pid = os.getpid()
        self._failure: Exception | None = None
        self._closed = threading.Event()
        self._consumer_lock = threading.Lock()
        self._close_consumer: Callable[[], None] | None = None
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
            while not self._waiting:
                left = None if deadline is None else deadline - time.monotonic()
                if self._closed.is_set() or self._interrupts != interrupts or (left is not None and left <= 0):
                    return None
                if self._failure is not None:
                    raise QueueUnavailable(f"nothing is delivered any more: {self._failure}") from self._failure
                self._changed.wait(left)
            return self._waiting.popleft()

    @property
    def waiting(self) -> int:
        """How many messages are here and not taken."""
        with self._changed:
            return len(self._waiting)

    def interrupt(self) -> None:
        """Everybody who waits gets None."""
        with self._changed:
            self._interrupts += 1
            self._changed.notify_all()

    def take_rest(self) -> list[ConsumeMessage]:
        """What is here and not taken."""
        with self._changed:
            rest = list(self._waiting)
            self._waiting.clear()
            return rest

    def close(self) -> None:
        """Stop consuming. The broker takes back what is not settled."""
        self._closed.set()
        with self._consumer_lock:
            if self._close_consumer is not None:
                self._close_consumer()
        with self._changed:
            self._waiting.clear()
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
                self._waiting.clear()  # the broker has taken them back
                self._changed.notify_all()

    def _keep_consuming(self) -> None:
        """Until closed. Raises ClientClosedError when the client is closed before."""
        rest = _REST_SECONDS[0]
        while not self._closed.is_set():
            try:
                self._consume()
                rest = _REST_SECONDS[0]
            except ClientClosedError:
                raise
            except FilaError as error:
                logger.warning("the broker delivers nothing: %s", error, extra={"queue": self._queue})
                if isinstance(error, QueueNotFoundError):
                    self._create()
            self._closed.wait(rest)
            rest = min(rest * 2, _REST_SECONDS[1])

    def _consume(self) -> None:
        with self._consumer_lock:
            if self._closed.is_set():
                return
            consumer = self._client.consume_batches(self._queue, max_in_flight=self._max_in_flight)
            self._close_consumer = consumer.close
        for batch in consumer:
            with self._changed:
                self._waiting.extend(batch)
                self._changed.notify(len(batch))

    def _create(self) -> None:
        if self._on_missing is not None:
            try:
                self._on_missing()
            except FilaError as error:
                logger.warning("the queue cannot be created: %s", error, extra={"queue": self._queue})
