"""Single requests, sent and answered in the thread of their caller, on a connection of their own.

A thread that waits for each answer needs no event loop: handing the request to another thread, and the answer back, is
a good part of the time that it waits. Several threads go to the client's streams instead, where they travel together.

What holds for a stream holds here: a request whose connection was lost is sent again, the same bytes, until it is
answered or its time is over; one that timed out is never sent again.
"""

import os
from collections import deque
from threading import Event, Lock
from time import monotonic
from typing import Final, Generic, TypeVar

from fila.client.backoff import Backoff
from fila.client.connection import LIMITS, was_lost
from fila.client.errors import ClientClosedError, FilaError, forked, from_rpc, no_answer, unreadable
from fila.client.outbox import Batch
from fila.client.stream import Codec
from fila.client.waiter import Waiter
from fila.wire.line import Line
from fila.wire.status import RpcError, StatusCode

_SILENT_S: Final = 1.0
"""After so long without a call, the connection is looked at before it is used."""

_CROWD_S: Final = 0.02
"""For so long after two callers have met, all go to the streams: requests that travel together cost less."""

W = TypeVar("W", bound=Waiter)


class Direct(Generic[W]):
    """One method of the broker, for one caller at a time. Callable from any thread."""

    def __init__(self, addr: str, path: str, codec: Codec[W], timeout_s: float) -> None:
        self._addr = addr
        self._path = path
        self._codec = codec
        self._timeout_s = timeout_s
        self._pid = os.getpid()
        self._busy = Lock()
        self._closed = Event()
        self._line: Line | None = None
        self._used_at = 0.0
        self._crowded_until = 0.0

    def submit(self, waiter: W) -> bool:
        """Have a request answered before this returns. Returns whether it was: not while there are other callers.

        Its deadline is one of the monotonic clock.
        """
        now = monotonic()
        if now < self._crowded_until:
            return False
        if not self._busy.acquire(blocking=False):
            self._crowded_until = now + _CROWD_S
            return False
        try:
            if self._pid != os.getpid():  # what numbers the requests counts on in the parent
                waiter.fail(forked())
            elif self._closed.is_set():
                waiter.fail(ClientClosedError("the client is closed"))
            else:
                self._carry_out(waiter)
        finally:
            self._busy.release()
            if self._closed.is_set():
                self._hang_up_unless_busy()
        return True

    def close(self) -> None:
        """End the connection. A caller who waits fails with ClientClosedError."""
        self._closed.set()
        line = self._line
        if line is not None and self._pid == os.getpid():  # a parent's connection is not ended by its children
            line.interrupt()
        self._hang_up_unless_busy()

    def _hang_up_unless_busy(self) -> None:
        """Whoever is busy does it when done."""
        if self._busy.acquire(blocking=False):
            self._hang_up()
            self._busy.release()

    def _carry_out(self, waiter: W) -> None:
        batch = self._codec.make_batch(deque((waiter,)))
        assert batch is not None
        try:
            self._exchange(batch)
        except FilaError as error:
            waiter.fail(error)
        except BaseException:  # such as Ctrl-C: an answer may still come, and would be taken for the next one's
            self._hang_up()
            raise

    def _exchange(self, batch: Batch[W]) -> None:
        """Send until there is an answer. Raises FilaError when there will be none."""
        deadline = batch.waiters[0].deadline
        backoff = Backoff()
        sent, trouble = False, ""
        while True:
            try:
                line = self._open(deadline)
                batch.resent, sent = sent, True
                response = line.ask(batch.data, deadline)
                break
            except RpcError as error:
                failure = error
            self._hang_up()
            self._check_again(failure, trouble)
            trouble = failure.details()
            wait_s = min(backoff.next_wait_s(), deadline - monotonic())
            if wait_s <= 0:
                raise no_answer(self._timeout_s, trouble)
            self._closed.wait(wait_s)
        try:
            self._codec.answer(batch, response)
        except Exception as error:
            self._hang_up()
            raise unreadable(error) from error

    def _check_again(self, failure: RpcError, trouble: str) -> None:
        """Raises FilaError when a request is not to be sent again. `trouble` is what it has met before."""
        if self._closed.is_set():
            raise ClientClosedError("the client was closed")
        if failure.code() is StatusCode.DEADLINE_EXCEEDED:
            raise no_answer(self._timeout_s, trouble)
        if not was_lost(failure):
            raise from_rpc(failure) from failure

    def _open(self, deadline: float) -> Line:
        """The line, made anew when it has ended. Raises RpcError."""
        now = monotonic()
        line = self._line
        if line is not None and (line.ended or (now - self._used_at > _SILENT_S and not line.still_open())):
            self._hang_up()
        self._used_at = now
        if self._line is None:
            # Known before it connects, so that whoever closes the client can interrupt that.
            self._line = Line(LIMITS)
            self._check_open()
            self._line.connect(self._addr, self._path, deadline)
        self._check_open()
        return self._line

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise RpcError(StatusCode.UNAVAILABLE, "the client was closed")

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
