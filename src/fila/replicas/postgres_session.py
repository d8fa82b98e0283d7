"""Connections to the primary of PostgreSQL, on which nothing is ever cancelled.

A commit that waits for its standby and is cancelled stays committed on the primary alone, and the server still answers
that all is well: it only warns. So:

- Nobody's cancellation or time limit reaches the server: the connection is dropped instead, and asyncpg's own limits,
  which send a request to cancel, are not used.
- A warning during a statement means that somebody else has cancelled it: what it says does not count.
- A server process goes on waiting for the standby after its connection was dropped. So that they do not pile up while
  the standby is away, whatever waits for it first takes a lock, or a key, that one of a table can have at a time; those
  who wait for that are let go when their connection is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from fila.replicas.address import Address
from fila.replicas.log import LogUnavailable, Unfit

T = TypeVar("T")

CONNECT_TIMEOUT_S = 3.0
ANSWER_TIMEOUT_S = 10.0
"""For everything but an append"""
_SETTINGS = {
    "application_name": "fila",
    "client_connection_check_interval": "1s",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_session_timeout": "0",
}
_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)
_BROKEN = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)

Work = Callable[["asyncpg.Connection[Any]"], Awaitable[T]]


class Lost(Exception):
    """The connection is gone, or there was no answer in time. What was sent may have been done."""


class Session:
    """One connection, used by one at a time."""

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection
        self._warned = False
        connection.add_log_listener(self._note)

    @classmethod
    async def open(cls, address: Address, synchronous_commit: str) -> Self:
        """To the first of the hosts that takes writes. Raises LogUnavailable, or Unfit if one has refused the user."""
        problems, refusal = [], None
        for host, port in address.hosts:
            try:
                return cls(await _connect(address, host, port, synchronous_commit))
            except _REFUSED as cause:
                refusal = refusal or Unfit(f"PostgreSQL at {host}:{port} refuses the connection: {cause}")
            except (TimeoutError, asyncpg.PostgresError, *_BROKEN) as cause:
                problems.append(f"{host}:{port}: {str(cause) or 'no answer'}")
        if refusal is not None:
            raise refusal
        raise LogUnavailable(f"no PostgreSQL server takes writes: {'; '.join(problems)}")

    @property
    def usable(self) -> bool:
        """False after Lost."""
        return not self._connection.is_closed()

    async def run(self, work: Work[T], timeout_s: float = ANSWER_TIMEOUT_S) -> T:
        """Raises Lost, or what the server has refused: then nothing was done."""
        self._warned = False
        task = asyncio.ensure_future(work(self._connection))
        try:
            done, _ = await asyncio.wait({task}, timeout=timeout_s)
        except asyncio.CancelledError:
            await self._abandon(task)
            raise
        if not done:
            await self._abandon(task)
            raise Lost(f"no answer within {timeout_s:g} s")
        try:
            result = task.result()
        except asyncpg.PostgresError as cause:
            if isinstance(cause, asyncpg.ReadOnlySQLTransactionError):
                self.drop()  # it is not the primary any more
            if getattr(cause, "severity_en", "") == "ERROR":
                raise
            raise self._gone(cause) from cause
        except _BROKEN as cause:
            raise self._gone(cause) from cause
        if self._warned:
            raise Lost("the server has warned that the standby may not have it")
        return result

    async def listen(self, channel: str, rung: Callable[[], None]) -> None:
        """Call `rung` for each notification, and when the connection ends. Raises Lost."""
        await self.run(lambda connection: connection.add_listener(channel, lambda *_: rung()))
        self._connection.add_termination_listener(lambda _: rung())

    def drop(self) -> None:
        """Close the connection at once; whoever waits for an answer gets Lost."""
        self._connection.terminate()

    async def _abandon(self, task: "asyncio.Future[Any]") -> None:
        self.drop()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # taken out, so that nobody misses it

    def _gone(self, cause: Exception) -> Lost:
        self.drop()
        return Lost(f"the connection broke: {cause}")

    def _note(self, _connection: object, message: Any) -> None:
        self._warned = self._warned or message.severity_en == "WARNING"


class Line:
    """A session that is opened when it is needed, and anew when it was lost. Serves one at a time."""

    def __init__(self, address: Address, synchronous_commit: str = "on") -> None:
        self._address = address
        self._synchronous_commit = synchronous_commit
        self._session: Session | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    async def run(self, work: Work[T], timeout_s: float = ANSWER_TIMEOUT_S) -> T:
        """Raises Lost, LogUnavailable where nothing was sent, or what the server has refused. A user that is refused is
        Unfit at first. Later it is waited for: the server has known it.
        """
        async with self._turn:
            return await (await self._open()).run(work, timeout_s)

    async def ask(self, work: Work[T]) -> T:
        """For what changes nothing, or may be done twice. Raises LogUnavailable."""
        try:
            return await self.run(work)
        except (Lost, asyncpg.PostgresError) as cause:
            raise LogUnavailable(f"PostgreSQL: {cause}") from cause

    def close(self) -> None:
        """Whoever waits for an answer gets none."""
        self._closed = True
        if self._session is not None:
            self._session.drop()

    async def _open(self) -> Session:
        if not self._closed and (self._session is None or not self._session.usable):
            self._session = await self._connected()
        if self._closed or self._session is None:
            if self._session is not None:
                self._session.drop()
            raise LogUnavailable("the log is closed")
        return self._session

    async def _connected(self) -> Session:
        try:
            return await Session.open(self._address, self._synchronous_commit)
        except Unfit as cause:
            if self._session is None:
                raise
            raise LogUnavailable(str(cause)) from cause


async def _connect(address: Address, host: str, port: int, synchronous_commit: str) -> "asyncpg.Connection[Any]":
    return await asyncpg.connect(
        host=host,
        port=port,
        user=address.user,
        password=address.password(),
        database=address.name,
        ssl=address.tls() or False,
        timeout=CONNECT_TIMEOUT_S,
        # What is said here wins over what is set for the role and the database.
        server_settings=_SETTINGS | {"synchronous_commit": synchronous_commit},
        target_session_attrs=SessionAttribute.read_write,
    )
