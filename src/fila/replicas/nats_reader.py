"""Reading a log in NATS.

A consumer of JetStream gives what stands in the stream, in pulls. It lives in the memory of one server, and may vanish,
fall silent or skip at any time: whatever is not the next entry makes an end of it, and another one begins where the
reader stands. A consumer may also sit on a server that hears nothing new, so the leader is asked now and then.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, Final

from nats.aio.subscription import Subscription

from fila.replicas.log import Entry, LogUnavailable, Truncated
from fila.replicas.nats_connection import NO_STREAM, ApiError, Connection

PULL_ENTRIES: Final = 256
PULL_BYTES: Final = 4 << 20
HEARTBEAT_S = 1.0
SILENCE_S = 3 * HEARTBEAT_S
PULL_S = 20.0
IDLE_S = 5.0
"""How often a reader that gets nothing asks the leader whether there is something"""
FORGET_S = 30.0
"""After which NATS removes a consumer that nobody uses"""
RETRY_S = 0.1
_BEAT = "100"
_NANO = 1_000_000_000


class NatsReader:
    """One reader."""

    def __init__(self, connection: Connection, stream: str) -> None:
        self._connection = connection
        self._stream = stream
        self._consumer: _Consumer | None = None
        self._closed = False
        self._changed = asyncio.Event()

    async def entries(self, start: int) -> AsyncGenerator[list[Entry], None]:
        """From a position on, until the reader is closed. Raises Truncated, LogUnavailable."""
        while not self._closed:
            try:
                entries = await self._next(start)
            except LogUnavailable:
                entries = None
            except ApiError as cause:
                if cause.code == NO_STREAM:
                    raise LogUnavailable(f"there is no stream {self._stream} any more") from cause
                entries = None
            if entries:
                start = entries[-1].position + 1
                yield entries
            elif entries is None:  # something is wrong with the consumer
                await self._drop()
                await asyncio.sleep(RETRY_S)

    async def end(self) -> None:
        """Let go of the consumer."""
        self._closed = True
        self._changed.set()
        await self._drop()

    def close(self) -> None:
        """Whoever waits for entries gets no more."""
        self._closed = True
        self._changed.set()

    async def _next(self, start: int) -> list[Entry] | None:
        if self._consumer is None:
            await self._begin(start)
        assert self._consumer is not None
        entries = await self._consumer.take(start)
        if entries == [] and self._consumer.idle_for() > IDLE_S:
            info = await self._connection.question(f"STREAM.INFO.{self._stream}")
            if info["state"]["last_seq"] > start:
                return None
            self._consumer.seen()
        return entries

    async def _begin(self, start: int) -> None:
        state = (await self._connection.question(f"STREAM.INFO.{self._stream}"))["state"]
        first = max(state["first_seq"], 1) - 1
        if start < first:
            raise Truncated(first)
        consumer = _Consumer(self._connection, self._stream, self._changed)
        await consumer.begin(start)
        self._consumer = consumer

    async def _drop(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.end()


class _Consumer:
    """A consumer of JetStream, from its beginning to the first surprise."""

    def __init__(self, connection: Connection, stream: str, changed: asyncio.Event) -> None:
        self._connection = connection
        self._stream = stream
        self._changed = changed
        self._subscription: Subscription | None = None
        self._pull = ""
        self._arrived: deque[Entry] = deque()
        self._to_come = 0
        self._broken = False
        self._heard_at = self._seen_at = self._now()

    async def begin(self, start: int) -> None:
        """Raises LogUnavailable, ApiError."""
        self._subscription = await self._connection.listen(self._receive, self._break)
        config = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": start + 1,
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": int(FORGET_S * _NANO),
        }
        made = await self._connection.question(
            f"CONSUMER.CREATE.{self._stream}", {"stream_name": self._stream, "config": config}
        )
        self._pull = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{made['name']}"

    async def take(self, start: int) -> list[Entry] | None:
        """What has come; waits for it for a moment. None when the consumer is of no use any more."""
        if not self._arrived and not self._to_come and not self._broken:
            await self._ask_for_more()
        if not self._arrived and not self._broken:
            await self._wait()
        self._changed.clear()
        taken: list[Entry] = []
        while self._arrived and self._arrived[0].position == start + len(taken):
            taken.append(self._arrived.popleft())
        if taken:
            self.seen()
            return taken
        silent = self._now() - self._heard_at > SILENCE_S
        return None if self._arrived or self._broken or silent else []

    def idle_for(self) -> float:
        """Seconds without an entry"""
        return self._now() - self._seen_at

    def seen(self) -> None:
        """The log was looked at."""
        self._seen_at = self._now()

    async def end(self) -> None:
        """Stop listening; NATS forgets the consumer by itself."""
        if self._subscription is not None:
            await self._connection.unlisten(self._subscription, self._break)

    async def _ask_for_more(self) -> None:
        assert self._subscription is not None
        request = {
            "batch": PULL_ENTRIES,
            "max_bytes": max(PULL_BYTES, 2 * self._connection.max_payload),
            "expires": int(PULL_S * _NANO),
            "idle_heartbeat": int(HEARTBEAT_S * _NANO),
        }
        self._to_come = PULL_ENTRIES
        self._heard_at = self._now()
        await self._connection.send(self._pull, json.dumps(request).encode(), self._subscription.subject)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _receive(self, message: Any) -> None:
        self._heard_at = self._now()
        status = (message.headers or {}).get("Status")
        if status is None:
            self._to_come = max(0, self._to_come - 1)
            self._arrived.append(Entry(message.metadata.sequence.stream - 1, bytes(message.data)))
        elif status != _BEAT:
            self._to_come = 0
            self._broken = status == "409" and "MaxBytes" not in message.headers.get("Description", "")
        self._changed.set()

    def _break(self) -> None:
        self._broken = True
        self._changed.set()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
