"""A log in a table of PostgreSQL, on a primary with a synchronous standby.

- A position is the primary key, so of two writers at the same place one is refused. The last entry always stays: the
  table says where the log ends although everything before has been cut off.
- An append is announced by a notification of its own that need not be durable: one inside of the transaction would let
  all commits of the database wait for each other. Readers look by themselves too, in case it was lost.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Final, Self

import asyncpg

from fila.replicas.address import Address, BadAddress
from fila.replicas.log import Entry, InDoubt, LogError, LogUnavailable, Refused, TooLong, Unfit
from fila.replicas.postgres_reader import PostgresReader, confirm
from fila.replicas.postgres_session import Line, Lost

TABLE = "fila_log"
"""Where the URL says no other"""
MAX_ENTRY_BYTES = 8 << 20
TRUNCATE_ROWS: Final = 500
"""A step of this size holds no lock for long"""

_MAKE = """
SELECT pg_advisory_xact_lock(hashtext('{table}'));
CREATE TABLE IF NOT EXISTS "{table}" (position bigint PRIMARY KEY, body bytea NOT NULL);
ALTER TABLE "{table}" ALTER COLUMN body SET STORAGE EXTERNAL
"""
_APPEND = """
INSERT INTO "{table}" (position, body) SELECT $1::bigint, $2::bytea
WHERE (SELECT coalesce(max(position), -1) FROM "{table}") = $1 - 1
    AND ($3::boolean OR current_setting('synchronous_standby_names') <> '')
RETURNING position
"""
_FIRST = 'SELECT coalesce(min(position), 0) FROM "{table}"'
_END = 'SELECT coalesce(max(position), -1) + 1 FROM "{table}"'
_TRUNCATE = """
DELETE FROM "{table}" WHERE position IN (
    SELECT position FROM "{table}"
    WHERE position < least($1::bigint, (SELECT max(position) FROM "{table}")) ORDER BY position LIMIT $2
)
"""


class PostgresLog:
    """One table."""

    max_entry_bytes = MAX_ENTRY_BYTES

    def __init__(self, address: Address) -> None:
        self._address = address
        self._table = address.options.get("table", TABLE)
        if not self._table.isidentifier() or not self._table.isascii() or len(self._table) > 50:
            raise BadAddress(f"the table of the log is {self._table!r}: it may have 50 letters, digits and '_'")
        self._appends = Line(address)
        self._chores = Line(address, synchronous_commit="off")
        self._readers: set[PostgresReader] = set()
        self._appended = asyncio.Event()
        self._announcer: asyncio.Task[None] | None = None
        self._closed = False

    @classmethod
    async def open(cls, address: Address) -> Self:
        """Makes the table if there is none. Raises Unfit, LogUnavailable."""
        log = cls(address)
        try:
            await log._appends.ask(log._check)
            await log._appends.ask(log._make)
        except LogError:
            await log.close()
            raise
        log._announcer = asyncio.create_task(log._announce())
        return log

    async def append(self, body: bytes, after: int) -> int:
        """See ReplicatedLog."""
        if len(body) > MAX_ENTRY_BYTES:
            raise TooLong(f"an entry of {len(body)} bytes is longer than {MAX_ENTRY_BYTES}")
        query, unsafe = _APPEND.format(table=self._table), self._address.unsafe_one_copy
        try:
            appended = await self._appends.run(
                lambda connection: connection.fetchval(query, after + 1, body, unsafe), self._address.append_timeout_s
            )
        except Lost as cause:
            raise InDoubt(f"PostgreSQL: {cause}") from cause
        except asyncpg.UniqueViolationError as cause:
            raise Refused(f"another entry stands at {after + 1}") from cause
        except (Unfit, asyncpg.PostgresError) as cause:
            raise LogUnavailable(f"PostgreSQL: {cause}") from cause
        if appended is None:
            await self._ask_why()
            raise Refused(f"the last position of the log is not {after}")
        self._appended.set()
        return after + 1

    async def end(self) -> int:
        """See ReplicatedLog."""

        async def ask(connection: "asyncpg.Connection[Any]") -> int:
            end: int = await connection.fetchval(_END.format(table=self._table))
            await confirm(connection, self._address, self._table)
            return end

        return await self._appends.ask(ask)

    async def first(self) -> int:
        """See ReplicatedLog."""
        query = _FIRST.format(table=self._table)
        first: int = await self._appends.ask(lambda connection: connection.fetchval(query))
        return first

    async def truncate(self, before: int) -> None:
        """See ReplicatedLog."""
        query = _TRUNCATE.format(table=self._table)
        while await self._chores.ask(lambda connection: connection.execute(query, before, TRUNCATE_ROWS)) != "DELETE 0":
            pass

    async def read(self, start: int) -> AsyncGenerator[list[Entry], None]:
        """See ReplicatedLog."""
        reader = PostgresReader(self._address, self._table)
        self._readers.add(reader)
        try:
            if self._closed:
                return
            async for entries in reader.entries(start):
                yield entries
        finally:
            self._readers.discard(reader)
            reader.close()

    async def close(self) -> None:
        """See ReplicatedLog."""
        self._closed = True
        for reader in self._readers:
            reader.close()
        self._appends.close()
        self._chores.close()
        if self._announcer is not None:
            self._announcer.cancel()
            await asyncio.wait({self._announcer})

    async def _announce(self) -> None:
        while True:
            await self._appended.wait()
            self._appended.clear()
            with suppress(LogUnavailable, Unfit):  # readers look by themselves
                await self._chores.ask(lambda connection: connection.execute("SELECT pg_notify($1, '')", self._table))

    async def _ask_why(self) -> None:
        try:
            await self._appends.ask(self._check)
        except Unfit as cause:
            raise LogUnavailable(str(cause)) from cause

    async def _check(self, connection: "asyncpg.Connection[Any]") -> None:
        if self._address.unsafe_one_copy:
            return
        for setting, good, change in (
            ("synchronous_standby_names", None, "name a standby in it"),
            ("synchronous_commit", {"on", "remote_apply"}, "let no pooler stand between"),
            ("fsync", {"on"}, "set it to on"),
        ):
            value = await connection.fetchval("SELECT current_setting($1)", setting)
            if not value or (good is not None and value not in good):
                raise Unfit(
                    f"PostgreSQL could lose what it acknowledges: {setting} is {value!r}; {change}, or say "
                    "unsafe_one_copy=true for a log that may be lost"
                )

    async def _make(self, connection: "asyncpg.Connection[Any]") -> None:
        if await connection.fetchval("SELECT to_regclass($1)", f'"{self._table}"') is None:
            await connection.execute(_MAKE.format(table=self._table))
