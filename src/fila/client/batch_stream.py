"""One bidirectional stream of batches: opens it when there is work, writes, reads, reconnects with backoff, times out.

`SendWindow` decides which batch goes next. A new batch is made of the requests that wait when the wire has room: a
single request leaves at the next turn of the event loop, and under load batches grow by themselves. Answers reach
their callers in the turn in which they arrive.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from fila.client.backoff import Backoff
from fila.client.connection import was_lost
from fila.client.errors import ClientClosedError, FilaError, InternalError, forgotten, from_rpc, no_answer, unreadable
from fila.client.finish import finished
from fila.client.send_window import Batch, SendWindow
from fila.client.waiter import Waiter, expire
from fila.wire.client_call import ClientCall
from fila.wire.status import RpcError, TlsFailed

#: Batches in flight. The broker remembers its last 64 answers to a producer.
WINDOW = 8

#: Deadlines are checked no more often than this, so that timeouts under load cost little.
SWEEP_S = 0.05

W = TypeVar("W", bound=Waiter)


def since_boot() -> float:
    """Seconds that also pass while the machine sleeps, unlike those of the loop: the broker forgets meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.time()


class Codec(Protocol[W]):
    """Turns requests into a batch, and the answer to the batch into an answer to each request."""

    #: A batch whose answer was lost may be sent again for so long.
    repeatable_s: float

    def make_batch(self, gathered: deque[W]) -> Batch[W] | None:
        """Take from the left what fits into one batch. Skip requests that nobody waits for any more."""
        ...

    def answer(self, batch: Batch[W], response: bytes) -> FilaError | None:
        """Returns the refusal of a batch that has to come again under its number: nobody was answered."""
        ...


class PutOff(Exception):
    """Ends a stream on which the broker refused for a while what may have been carried out before."""

    def __init__(self, refusal: FilaError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class BatchStream(Generic[W]):
    """Carries requests to the broker, over lost connections, until they are answered or their deadline has passed."""

    def __init__(self, open_call: Callable[[], ClientCall], codec: Codec[W], timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._open_call = open_call
        self._codec = codec
        self._timeout_s = timeout_s
        self._gathered: deque[W] = deque()
        self._window: SendWindow[W] = SendWindow(WINDOW)
        self._backoff = Backoff()
        self._idle: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._call: ClientCall | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._write_scheduled = False
        self._defect: Exception | None = None
        self._trouble = ""
        self._closed: FilaError | None = None

    def submit(self, waiter: W) -> None:
        if self._closed is not None:
            waiter.fail(self._closed)
            return
        self._gathered.append(waiter)
        if self._task is None:
            self._task = self._loop.create_task(self._run())
        if self._timer is None:
            self._timer = self._loop.call_at(waiter.deadline, self._sweep)
        if not self._write_scheduled:
            self._write_scheduled = True
            self._loop.call_soon(self._write_soon)

    async def close(self) -> None:
        self._give_up(ClientClosedError("the client is closed"))
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            if self._call is not None:
                self._call.cancel()
            else:
                self._task.cancel()
            await finished([self._task])

    async def _run(self) -> None:
        try:
            while True:
                while not self._busy():
                    await self._sleep()
                await self._serve()
        except Exception as error:
            # A defect. Tell the callers, who would otherwise wait for an answer that never comes.
            self._give_up(InternalError(f"the stream failed: {error!r}"))
            raise

    def _busy(self) -> bool:
        return bool(self._window or self._gathered)

    async def _serve(self) -> None:
        """Use one stream, from opening it to its end."""
        call = self._call = self._open_call()
        call.on_writable = self._write
        failure: RpcError | PutOff | None = None
        asked_s = 0.0
        try:
            self._write()
            await call.each(self._answer)
        except RpcError as error:
            failure = error
        except PutOff as error:
            failure, asked_s = error, error.refusal.retry_after_s
        except asyncio.CancelledError:
            if self._defect is not None:
                raise self._defect from None
            raise
        finally:
            self._call = None
            call.on_writable = None
            call.cancel()
        if isinstance(failure, TlsFailed):
            self._fail_all(from_rpc(failure))
        elif failure is None or isinstance(failure, PutOff) or was_lost(failure):
            self._window.lost()
        elif (blamed := self._window.refused()) is not None:
            for waiter in blamed.waiters:
                waiter.fail(from_rpc(failure))
        self._trouble = _trouble_of(failure)
        if self._busy():
            await asyncio.sleep(self._backoff.next_wait_s(asked_s))

    def _write_soon(self) -> None:
        self._write_scheduled = False
        self._write()

    def _write(self) -> None:
        """Send as many batches as there is room for; open a stream if there is none."""
        call = self._call
        if call is None:
            self._wake()
            return
        try:
            while (self._gathered or self._window.left_over) and call.has_room:
                now = since_boot()
                if self._window.left_over:
                    self._window.end_older(now - self._codec.repeatable_s, forgotten())
                batch = self._window.next(self._make_batch)
                if batch is None:
                    return
                if not batch.resent:
                    batch.sent_at = now
                call.send(batch.data)
        except Exception as error:  # noqa: BLE001  # a defect, which ends the stream
            self._defect = error
            call.cancel()

    def _answer(self, response: bytes) -> None:
        batch = self._window.answered()
        if batch is None:
            raise InternalError("the broker sent an answer, but no request is waiting for one")
        try:
            refusal = self._codec.answer(batch, response)
        except Exception as error:
            for waiter in batch.waiters:
                waiter.fail(unreadable(error))
            raise
        if refusal is not None:
            self._window.again(batch)
            raise PutOff(refusal)
        self._backoff.reset()
        self._trouble = ""
        self._write()

    def _make_batch(self) -> Batch[W] | None:
        return self._codec.make_batch(self._gathered)

    async def _sleep(self) -> None:
        self._idle = self._loop.create_future()
        await self._idle

    def _wake(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _sweep(self) -> None:
        """Fail the requests whose deadline has passed, and come back when the next one is due."""
        now = self._loop.time()
        error = no_answer(self._timeout_s, self._trouble)
        due = expire((*self._window.waiters(), *self._gathered), now, error)
        self._gathered = deque(waiter for waiter in self._gathered if waiter.waits())
        self._timer = None if due is None else self._loop.call_at(max(due, now + SWEEP_S), self._sweep)

    def _give_up(self, error: FilaError) -> None:
        self._closed = error
        self._fail_all(error)

    def _fail_all(self, error: FilaError) -> None:
        for waiter in (*self._window.waiters(), *self._gathered):
            waiter.fail(error)
        self._window.clear()
        self._gathered.clear()


def _trouble_of(failure: RpcError | PutOff | None) -> str:
    if failure is None:
        return "the broker closed the stream"
    return str(failure) if isinstance(failure, PutOff) else failure.details() or ""
