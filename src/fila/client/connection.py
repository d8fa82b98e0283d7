"""The channel to a broker: unary calls with a deadline, and the raw streams.

The streams carry bytes, so a request that is sent twice is encoded once.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar

from fila.client.api_key import ApiKey
from fila.client.errors import ClientClosedError, FilaError, details_of, from_rpc
from fila.client.owner import MAX_HOPS, MOVE_EVERY_S, follow, owner_in
from fila.client.stubs import unary_methods
from fila.v1 import admin_pb2, errors_pb2, service_pb2
from fila.wire.addresses import Addresses
from fila.wire.channel import Channel
from fila.wire.client_call import ClientCall
from fila.wire.limits import Limits
from fila.wire.status import Metadata, RpcError, StatusCode, TlsFailed, UnreadableResponse
from fila.wire.tls_context import ClientTls

#: The largest request and response. The broker accepts requests of this size.
MAX_RPC_BYTES = 16 << 20

LIMITS: Final = Limits(max_message_bytes=MAX_RPC_BYTES)

_SERVICE: Final = "/fila.v1.FilaService/"
ENQUEUE_STREAM: Final = _SERVICE + "EnqueueStream"
SETTLE: Final = _SERVICE + "Settle"

#: The codes with which a stream ends when its connection is lost.
_TRANSPORT_CODES = frozenset({StatusCode.UNAVAILABLE, StatusCode.CANCELLED, StatusCode.OK})
#: The codes of a stream that was reset. If the broker itself failed, it says so in the details.
_UNCLEAR_CODES = frozenset({StatusCode.INTERNAL, StatusCode.UNKNOWN})


def was_lost(error: RpcError) -> bool:
    """Whether the connection of a stream was lost, rather than the broker refusing or the answer being unreadable.

    A stream whose key expired or was revoked counts as lost: the next one sends the key that is in the file by then,
    or is refused.
    """
    if isinstance(error, UnreadableResponse | TlsFailed):
        return False
    details = details_of(error)
    if details is not None:
        return error.code() is StatusCode.UNAVAILABLE or details.kind == errors_pb2.ERROR_KIND_KEY_ENDED
    return error.code() in _TRANSPORT_CODES or error.code() in _UNCLEAR_CODES


Request_contra = TypeVar("Request_contra", contravariant=True)
Request = TypeVar("Request")
Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)


class Unary(Protocol[Request_contra, Response_co]):
    """A unary method of a generated stub."""

    def __call__(self, request: Request_contra, /, *, timeout: float | None = None) -> Awaitable[Response_co]: ...


async def read_until(call: ClientCall, deadline: float | None) -> Any:
    """The next response of a stream, or EOF. Raises TimeoutError at the deadline, whatever the connection does."""
    async with asyncio.timeout_at(deadline):
        return await call.read()


class Connection:
    """One channel to one broker or cluster. Belongs to the event loop on which it is made."""

    def __init__(
        self, addresses: Addresses, timeout_s: float, key: ApiKey | None = None, tls: ClientTls | None = None
    ) -> None:
        self._addresses = addresses
        self.timeout_s = timeout_s
        self._closed = False
        self._channel = Channel(addresses, LIMITS, tls=tls)
        self._channel.on_refused = self._refused
        self._channel.on_answered = self._passed_on
        self._moved_at = -MOVE_EVERY_S
        if key is not None:
            self._channel.credentials = key.metadata
        self.open_enqueue: Callable[[], ClientCall] = self._channel.stream_stream(ENQUEUE_STREAM)
        self.open_settle: Callable[[], ClientCall] = self._channel.stream_stream(SETTLE)
        self.open_consume: Callable[[], ClientCall] = self._channel.stream_stream(
            _SERVICE + "Consume", request_serializer=service_pb2.ConsumeRequest.SerializeToString
        )
        self.open_journal: Callable[[admin_pb2.ReadJournalRequest], ClientCall] = self._channel.unary_stream(
            "/fila.v1.FilaAdmin/ReadJournal",
            request_serializer=admin_pb2.ReadJournalRequest.SerializeToString,
            response_deserializer=admin_pb2.ReadJournalResponse.FromString,
        )
        self.open_claim: Callable[[service_pb2.ReadClaimRequest], ClientCall] = self._channel.unary_stream(
            _SERVICE + "ReadClaim",
            request_serializer=service_pb2.ReadClaimRequest.SerializeToString,
            response_deserializer=service_pb2.ReadClaimResponse.FromString,
        )
        self.stage: Unary[bytes, service_pb2.StageEnqueueResponse] = self._channel.unary_unary(
            _SERVICE + "StageEnqueue", response_deserializer=service_pb2.StageEnqueueResponse.FromString
        )
        self.open_queue: Callable[[service_pb2.ReadQueueRequest], ClientCall] = self._channel.unary_stream(
            _SERVICE + "ReadQueue",
            request_serializer=service_pb2.ReadQueueRequest.SerializeToString,
            response_deserializer=service_pb2.ReadQueueResponse.FromString,
        )

    def methods(self, module: ModuleType, service: str) -> Any:
        """The unary methods of a service, for `call`."""
        return unary_methods(self._channel, module, service)

    @property
    def closed(self) -> bool:
        return self._closed

    async def call(
        self, method: Unary[Request, Response], request: Request, *, timeout_s: float | None = None
    ) -> Response:
        """Make a unary call within `timeout_s`, or else the client's timeout. Raises FilaError."""
        if self._closed:
            raise ClientClosedError("the client is closed")
        try:
            return await self._call(method, request, self.timeout_s if timeout_s is None else timeout_s)
        except asyncio.CancelledError as error:
            if not self._closed:
                raise
            raise ClientClosedError("the client was closed") from error
        except RpcError as error:
            raise self.translated(error) from error

    async def _call(self, method: Unary[Request, Response], request: Request, timeout_s: float) -> Response:
        """Nothing was done by a member that names another one, so it is asked instead. Raises RpcError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        for hops in count(1):
            try:
                return await method(request, timeout=deadline - loop.time())
            except RpcError as error:
                details = details_of(error)
                named = details is not None and details.kind == errors_pb2.ERROR_KIND_NOT_OWNER
                if not named or hops >= MAX_HOPS:
                    raise
        raise AssertionError

    def _refused(self, error: RpcError) -> None:
        if follow(self._addresses, error):
            self._channel.move()

    def _passed_on(self, trailers: Metadata) -> None:
        """The member that answered may have asked another one: the next calls go there."""
        owner, now = owner_in(trailers), asyncio.get_running_loop().time()
        if owner and owner != self._addresses.current and now - self._moved_at >= MOVE_EVERY_S:
            self._moved_at = now
            if self._addresses.follow(owner):
                self._channel.move()

    def translated(self, error: RpcError) -> FilaError:
        translated = from_rpc(error)
        if error.code() in (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED):
            translated.args = (f"{self._addresses.current}: {translated}",)
        return translated

    async def close(self) -> None:
        self._closed = True
        await self._channel.close()
