"""A log in a stream of NATS JetStream, with three copies that are synced at each write.

- A position is the sequence number of the stream less one: NATS begins at 1.
- The leader refuses an entry that would not stand right behind what the writer has read, but only it: the rule by which
  members count entries does not rest on that.
- While there is no leader, nothing is appended and the writer waits; an append whose answer got lost is in doubt.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any, Final, Self

from fila.replicas.address import Address, BadAddress
from fila.replicas.asking import Highest
from fila.replicas.log import Entry, InDoubt, LogError, LogUnavailable, Refused, TooLong
from fila.replicas.nats_connection import RETRY_S, ApiError, Connection, Lost, NobodyThere
from fila.replicas.nats_reader import NatsReader
from fila.replicas.nats_stream import prepare, subject_of

HEADER_BYTES: Final = 128
"""Room for the header of an append, which counts as part of the message"""
_WRONG_LAST = {10071, 10164}


class NatsLog:
    """One stream."""

    def __init__(self, address: Address, connection: Connection) -> None:
        self._address = address
        self._connection = connection
        self._readers: set[NatsReader] = set()
        self._highest = Highest()
        self.max_entry_bytes = connection.max_payload - HEADER_BYTES

    @classmethod
    async def open(cls, address: Address) -> Self:
        """Makes the stream if there is none. Raises BadAddress, Unfit, LogUnavailable."""
        if "." in address.name:
            raise BadAddress(f"the log is called {address.name!r}: the name of a stream of NATS has no dot")
        connection = await Connection.open(address)
        try:
            await prepare(connection, address)
        except LogError:
            await connection.close()
            raise
        return cls(address, connection)

    async def append(self, body: bytes, after: int) -> int:
        """See ReplicatedLog."""
        if len(body) > self.max_entry_bytes:
            raise TooLong(f"an entry of {len(body)} bytes is longer than {self.max_entry_bytes}")
        headers = {"Nats-Expected-Stream": self._address.name, "Nats-Expected-Last-Sequence": str(after + 1)}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._address.append_timeout_s
        while (left := deadline - loop.time()) > 0:
            try:
                answer = await self._connection.ask(subject_of(self._address.name), body, left, headers)
            except NobodyThere:
                await asyncio.sleep(RETRY_S)  # for a leader
                continue
            except Lost as cause:
                raise InDoubt(f"NATS: {cause}") from cause
            position = self._position(json.loads(answer), after)
            self._highest.told(position)
            return position
        raise LogUnavailable(f"the stream {self._address.name} has had no leader for a while")

    async def end(self) -> int:
        """See ReplicatedLog."""
        return await self._highest.end(self._ask_end, self._address.append_timeout_s)

    async def first(self) -> int:
        """See ReplicatedLog."""
        return max(int((await self._state())["first_seq"]), 1) - 1

    async def truncate(self, before: int) -> None:
        """See ReplicatedLog. Not beyond the end: NATS would go on behind it and leave a gap."""
        before = min(before, await self.end())
        if before > 0:
            await self._question(f"STREAM.PURGE.{self._address.name}", {"seq": before + 1})

    async def read(self, start: int) -> AsyncGenerator[list[Entry], None]:
        """See ReplicatedLog."""
        if self._connection.closed:
            return
        reader = NatsReader(self._connection, self._address.name)
        self._readers.add(reader)
        try:
            async for entries in reader.entries(start):
                self._highest.told(entries[-1].position)
                yield entries
        finally:
            self._readers.discard(reader)
            await reader.end()

    async def close(self) -> None:
        """See ReplicatedLog."""
        for reader in self._readers:
            reader.close()
        await self._connection.close()

    def _position(self, answer: dict[str, Any], after: int) -> int:
        error = answer.get("error")
        if error is None:
            return int(answer["seq"]) - 1
        if error.get("err_code") in _WRONG_LAST:
            raise Refused(f"the last position of the log is not {after}")
        raise InDoubt(f"JetStream: {error.get('description')}")

    async def _ask_end(self) -> int:
        return int((await self._state())["last_seq"])

    async def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = (await self._question(f"STREAM.INFO.{self._address.name}"))["state"]
        return state

    async def _question(self, name: str, request: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            return await self._connection.question(name, request)
        except ApiError as cause:
            raise LogUnavailable(f"JetStream: {cause}") from cause
