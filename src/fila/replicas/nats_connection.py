"""The connection to NATS, which mends itself, and requests over it.

nats-py keeps what is sent while it is not connected, and sends it later. So nothing is sent then; and when the
connection breaks, nobody waits for answers that were on their way: they have gone with it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.errors import Error, NoRespondersError

from fila.replicas.address import Address
from fila.replicas.log import LogUnavailable, Unfit

T = TypeVar("T")

CONNECT_TIMEOUT_S = 3
RECONNECT_S = 0.1
PING_S = 2
"""Two without an answer, and the connection is given up: a machine that stopped says nothing"""
TRY_S = 2.0
"""For one request to JetStream; a leader that has gone does not answer"""
RETRY_S = 0.1
NO_STREAM = 10059
"""The error of JetStream for a stream that is not there"""
_PENDING_BYTES = 64 << 20


class Lost(Exception):
    """There was no answer, and there will be none. What was asked may have been done."""


class NobodyThere(Exception):
    """NATS has no one who takes the request. It was not done."""


class ApiError(Exception):
    """JetStream has refused a request."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("description", "no reason given"))
        self.code = error.get("err_code")


class _Client(Client):  # type: ignore[misc]  # nats-py is not checked: mypy takes it for Any
    """Mends what nats-py does not: it leaves the socket of a failed attempt open, and speaks in the clear although TLS
    was asked for, if the server does not offer it.
    """

    async def _connect_to_server(self, server: Any) -> None:
        if self._transport is not None:
            self._transport.close()
        await super()._connect_to_server(server)

    def _connect_command(self) -> bytes:
        if self.options.get("tls") is not None and not self._server_info.get("tls_required"):
            raise Error("nats: the server does not offer TLS")
        command: bytes = super()._connect_command()
        return command


class Connection:
    """One connection at a time, to any of the servers."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._client = _Client()
        self._connected = asyncio.Event()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._on_break: set[Callable[[], None]] = set()
        self._problem = "no answer"
        self._refused = ""
        self.closed = False

    @classmethod
    async def open(cls, address: Address) -> Self:
        """Raises LogUnavailable, or Unfit when it will never work."""
        connection = cls(address.append_timeout_s)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S * len(address.hosts)):
                await connection._connect(address)
        except (TimeoutError, OSError, Error) as cause:
            await connection.close()
            servers = ", ".join(address.servers)
            if connection._refused:
                raise Unfit(f"NATS at {servers} refuses the user: {connection._refused}") from cause
            raise LogUnavailable(f"no NATS server at {servers}: {connection._problem}") from cause
        return connection

    @property
    def max_payload(self) -> int:
        """Bytes of a message with its headers"""
        return int(self._client.max_payload)

    async def ask(self, subject: str, body: bytes, timeout_s: float, headers: dict[str, str] | None = None) -> bytes:
        """Send a request once. Raises NobodyThere, Lost, or LogUnavailable when it was not sent."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await self._connected.wait()
        except TimeoutError as cause:
            raise LogUnavailable(f"there is no connection to NATS: {self._problem}") from cause
        if self.closed:
            raise LogUnavailable("the log is closed")
        try:
            request = self._client.request(subject, body, timeout=deadline - loop.time(), headers=headers)
            answer = await self._unless_broken(request)
        except NoRespondersError as cause:
            raise NobodyThere from cause
        except (Error, OSError) as cause:
            raise Lost(str(cause)) from cause
        return bytes(answer.data)

    async def question(self, name: str, request: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask JetStream for what may be done twice, again and again. Raises LogUnavailable, ApiError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_s
        while True:
            try:
                answer = await self.ask(f"$JS.API.{name}", json.dumps(request).encode() if request else b"", TRY_S)
                return _understood(answer)
            except (Lost, NobodyThere, LogUnavailable) as cause:
                if self.closed or loop.time() > deadline:
                    raise LogUnavailable(f"JetStream does not answer: {cause}") from cause
            await asyncio.sleep(RETRY_S)

    async def listen(self, callback: Callable[[Any], Awaitable[None]], on_break: Callable[[], None]) -> Subscription:
        """Subscribe to a subject that nobody else knows. Raises LogUnavailable."""
        if not self._connected.is_set() or self.closed:
            raise LogUnavailable(f"there is no connection to NATS: {self._problem}")
        self._on_break.add(on_break)
        return await self._client.subscribe(self._client.new_inbox(), cb=callback)

    async def unlisten(self, subscription: Subscription, on_break: Callable[[], None]) -> None:
        """The end of `listen`."""
        self._on_break.discard(on_break)
        if not self.closed:
            await subscription.unsubscribe()

    async def send(self, subject: str, body: bytes, reply: str) -> None:
        """Without waiting for anything. Raises LogUnavailable."""
        if not self._connected.is_set() or self.closed:
            raise LogUnavailable(f"there is no connection to NATS: {self._problem}")
        await self._client.publish(subject, body, reply)

    async def close(self) -> None:
        """Whoever waits for an answer gets none."""
        self.closed = True
        self._connected.set()
        self._break()
        await self._client.close()

    async def _connect(self, address: Address) -> None:
        tls, password = address.tls(), address.password()
        scheme = "nats" if tls is None else "tls"
        await self._client.connect(
            servers=[f"{scheme}://{server}" for server in address.servers],
            name="fila",
            user=address.user,
            password=password if address.user else None,
            token=None if address.user else password,
            user_credentials=address.options.get("creds_file"),
            tls=tls,
            connect_timeout=CONNECT_TIMEOUT_S,
            reconnect_time_wait=RECONNECT_S,
            max_reconnect_attempts=-1,
            ping_interval=PING_S,
            max_outstanding_pings=2,
            pending_size=_PENDING_BYTES,
            error_cb=self._note,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._on_connected,
        )
        await self._on_connected()

    async def _unless_broken(self, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        self._waiting.add(task)
        try:
            await asyncio.wait({task})
        finally:
            self._waiting.discard(task)
            task.cancel()
        if task.cancelled():
            raise Lost("the connection broke")
        return task.result()

    async def _on_connected(self) -> None:
        self._connected.set()

    async def _on_disconnected(self) -> None:
        if not self.closed:
            self._connected.clear()
        self._break()

    def _break(self) -> None:
        for task in self._waiting:
            task.cancel()
        for on_break in list(self._on_break):
            on_break()

    async def _note(self, problem: Exception) -> None:
        self._problem = str(problem) or type(problem).__name__
        if "uthorization" in self._problem:  # which a broken connection comes after
            self._refused = self._problem


def _understood(answer: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer)
    if "error" in found:
        raise ApiError(found["error"])
    return found
