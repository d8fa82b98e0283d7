"""Reading a log in PostgreSQL.

A row is visible before the standby has it if somebody cancelled the wait for it, or if the primary was restarted in the
meantime. So before rows are handed out, the reader makes a tiny commit of its own: it waits for the standby to have
everything that was written before it. A primary that has been deposed has no standby and can confirm nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncpg

from fila.replicas.address import Address
from fila.replicas.log import Entry, LogUnavailable, Truncated, Unfit
from fila.replicas.postgres_session import Lost, Session

READ_BYTES: Final = 4 << 20
READ_ROWS: Final = 1000
LOOK_EVERY_S = 0.25
"""A notification comes sooner, unless it was lost"""
CONFIRM_EVERY_S = 5.0
"""How often a reader that finds nothing asks whether it still looks at the primary"""
RETRY_S, RETRY_MOST_S = 0.05, 1.0

_READ = """
SELECT position, body FROM (
    SELECT position, body, sum(octet_length(body)) OVER (ORDER BY position) - octet_length(body) AS before
    FROM (SELECT position, body FROM "{table}" WHERE position >= $1 ORDER BY position LIMIT $2) AS following
) AS counted WHERE before < $3 ORDER BY position
"""
_CONFIRM = """
SELECT current_setting('synchronous_standby_names'), pg_advisory_xact_lock(hashtext($1)),
    pg_logical_emit_message(true, 'fila', '')
"""


async def confirm(connection: "asyncpg.Connection[Any]", address: Address, table: str) -> None:
    """Returns when the standby has what the connection has seen before. Raises LogUnavailable."""
    if not await connection.fetchval(_CONFIRM, table) and not address.unsafe_one_copy:
        raise LogUnavailable("PostgreSQL has no synchronous standby any more: synchronous_standby_names is empty")


class PostgresReader:
    """One reader, with a connection of its own."""

    def __init__(self, address: Address, table: str) -> None:
        self._address = address
        self._table = table
        self._query = _READ.format(table=table)
        self._session: Session | None = None
        self._rung = asyncio.Event()
        self._confirmed_at = 0.0
        self._closed = False

    async def entries(self, start: int) -> AsyncIterator[list[Entry]]:
        """From a position on, until the reader is closed. Raises Truncated, LogUnavailable."""
        pause = RETRY_S
        while not self._closed:
            try:
                entries = await self._look(start)
            except (Lost, LogUnavailable):
                await self._rest(pause)
                pause = min(2 * pause, RETRY_MOST_S)
                continue
            except (Unfit, asyncpg.PostgresError) as cause:
                raise LogUnavailable(f"PostgreSQL: {cause}") from cause
            pause = RETRY_S
            if not entries:
                await self._rest(LOOK_EVERY_S)
                continue
            if entries[0].position != start:
                raise Truncated(entries[0].position)
            start = entries[-1].position + 1
            yield entries

    def close(self) -> None:
        """Whoever waits for entries gets no more."""
        self._closed = True
        self._rung.set()
        if self._session is not None:
            self._session.drop()

    async def _look(self, start: int) -> list[Entry]:
        session = await self._ready()
        self._rung.clear()
        found = await session.run(lambda connection: connection.fetch(self._query, start, READ_ROWS, READ_BYTES))
        now = asyncio.get_running_loop().time()
        if found or now >= self._confirmed_at + CONFIRM_EVERY_S:
            await session.run(lambda connection: confirm(connection, self._address, self._table))
            self._confirmed_at = now
        return [Entry(row["position"], row["body"]) for row in found]

    async def _ready(self) -> Session:
        if self._session is None or not self._session.usable:
            self._session = await Session.open(self._address, "on")
            if self._closed:
                self._session.drop()
            await self._session.listen(self._table, self._rung.set)
        return self._session

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            pass
