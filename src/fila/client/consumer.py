"""What `consume` returns: the messages of a queue, as an iterator for programs that block and one for asyncio."""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from fila.client.consume_stream import ConsumeStream
from fila.client.loop_thread import LoopThread
from fila.client.reply import ThreadReply
from fila.client.session import Session

T = TypeVar("T")


class Consumer(Generic[T]):
    """The messages of a queue, as an iterator. Ends with `close`, or when nothing refers to it any more."""

    def __init__(
        self,
        thread: LoopThread,
        session: Session,
        stream: ConsumeStream[Any],
        take: Callable[[], T | None],
        *,
        auto_extend: bool,
    ) -> None:
        self._thread = thread
        self._session = session
        self._stream = stream
        self._take = take
        self._stopped = False
        thread.post(session.start, stream, auto_extend)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while (taken := self.take()) is None:
            if not self.wait():
                raise StopIteration
        return taken

    def take(self) -> T | None:
        """The next message or batch, if it is prefetched already."""
        while (taken := self._take()) is not None:
            isolated = self._stream.isolated
            if isolated is None or not (taken is isolated or taken == [isolated]):
                return taken
            written: ThreadReply[bool] = ThreadReply()
            self._thread.ask(self._stream.confirm, isolated, written)
            if written.result():
                return taken
        return None

    def wait(self) -> bool:
        """Wait until there is something to take. Returns False when the consumer has ended."""
        arrived: ThreadReply[bool] = ThreadReply()
        self._thread.ask(self._stream.notify, arrived)
        return arrived.result()

    @property
    def waiting(self) -> int:
        """How many messages are prefetched and not taken."""
        return self._stream.waiting

    def stop(self) -> None:
        """Receive no more, and let the application finish: it can settle what it holds, with its leases extended.

        What it was never handed goes back to the queue at once, without an attempt counted. Then there is no more to
        iterate over, and the consumer need not be kept.
        """
        self._stopped = True
        self._thread.finish(lambda: self._session.stopped_gently(self._stream))

    def close(self) -> None:
        """End the consumer. The broker takes unsettled messages back, and counts an attempt for those handed out."""
        self._thread.finish(lambda: self._session.stopped(self._stream))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._thread.here and not self._stopped:
            self._thread.post(self._session.stop, self._stream)


class AsyncConsumer(Generic[T]):
    """The messages of a queue, as an async iterator. Ends with `aclose`, or when nothing refers to it any more."""

    def __init__(
        self, session: Session, stream: ConsumeStream[Any], take: Callable[[], T | None], *, auto_extend: bool
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = session
        self._stream = stream
        self._take = take
        self._stopped = False
        session.start(stream, auto_extend)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while True:
            if (taken := self._take()) is None:
                arrived: asyncio.Future[bool] = self._loop.create_future()
                self._stream.notify(arrived)
                if not await arrived:
                    raise StopAsyncIteration
                continue
            isolated = self._stream.isolated
            if isolated is None or not (taken is isolated or taken == [isolated]):
                return taken
            written: asyncio.Future[bool] = self._loop.create_future()
            self._stream.confirm(isolated, written)
            if await written:
                return taken

    async def stop(self) -> None:
        """Receive no more, and let the application finish: it can settle what it holds, with its leases extended.

        What it was never handed goes back to the queue at once, without an attempt counted. Then there is no more to
        iterate over, and the consumer need not be kept.
        """
        self._stopped = True
        await self._session.stopped_gently(self._stream)

    async def aclose(self) -> None:
        """End the consumer. The broker takes unsettled messages back, and counts an attempt for those handed out."""
        await self._session.stopped(self._stream)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if not self._stopped and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._session.stop, self._stream)
