"""The channel to a broker: unary calls with a deadline, and the raw streams.

The streams carry bytes: requests are encoded once, also when they are sent twice.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar

from fila.client.errors import REFUSAL_MARK, ClientClosedError, FilaError, from_rpc
from fila.client.stubs import unary_methods
from fila.v1 import admin_pb2, service_pb2
from fila.wire.call import Call
from fila.wire.channel import Channel
from fila.wire.connection import Limits
from fila.wire.status import RpcError, StatusCode, UnreadableResponse

#: What a single request or response may weigh. The broker takes requests of this size.
MAX_RPC_BYTES = 16 << 20

LIMITS: Final = Limits(max_message_bytes=MAX_RPC_BYTES)

_SERVICE: Final = "/fila.v1.FilaService/"
ENQUEUE_STREAM: Final = _SERVICE + "EnqueueStream"
SETTLE: Final = _SERVICE + "Settle"

#: What a stream ends with when it broke on the way.
_TRANSPORT_CODES = frozenset({StatusCode.UNAVAILABLE, StatusCode.CANCELLED, StatusCode.OK})
#: What a stream that was reset may end with, and what a broker with a defect says.
_UNCLEAR_CODES = frozenset({StatusCode.INTERNAL, StatusCode.UNKNOWN})


def was_lost(error: RpcError) -> bool:
    """Whether a stream broke on the way, rather than being ended by the broker for a reason or here as nonsense."""
    if isinstance(error, UnreadableResponse):
        return False
    if error.code() in _UNCLEAR_CODES:
        return not any(key == REFUSAL_MARK for key, _ in error.trailing_metadata() or ())
    return error.code() in _TRANSPORT_CODES


Request_contra = TypeVar("Request_contra", contravariant=True)
Request = TypeVar("Request")
Response = TypeVar("Response")
Response_co = TypeVar("Response_co", covariant=True)


class Unary(Protocol[Request_contra, Response_co]):
    """A unary method of a generated stub."""

    def __call__(self, request: Request_contra, /, *, timeout: float | None = None) -> Awaitable[Response_co]: ...


async def read_until(call: Call, deadline: float | None) -> Any:
    """The next response of a stream, or EOF. Raises TimeoutError at the deadline, whatever the connection does."""
    async with asyncio.timeout_at(deadline):
        return await call.read()


class Connection:
    """One channel to one broker. To be made on the event loop that uses it."""

    def __init__(self, addr: str, timeout_s: float) -> None:
        self.addr = addr
        self.timeout_s = timeout_s
        self._closed = False
        self._channel = Channel(addr, LIMITS)
        self.open_enqueue: Callable[[], Call] = self._channel.stream_stream(ENQUEUE_STREAM)
        self.open_settle: Callable[[], Call] = self._channel.stream_stream(SETTLE)
        self.open_consume: Callable[[], Call] = self._channel.stream_stream(
            _SERVICE + "Consume", request_serializer=service_pb2.ConsumeRequest.SerializeToString
        )
        self.open_journal: Callable[[admin_pb2.ReadJournalRequest], Call] = self._channel.unary_stream(
            "/fila.v1.FilaAdmin/ReadJournal",
            request_serializer=admin_pb2.ReadJournalRequest.SerializeToString,
            response_deserializer=admin_pb2.ReadJournalResponse.FromString,
        )
        self.open_claim: Callable[[service_pb2.ReadClaimRequest], Call] = self._channel.unary_stream(
            _SERVICE + "ReadClaim",
            request_serializer=service_pb2.ReadClaimRequest.SerializeToString,
            response_deserializer=service_pb2.ReadClaimResponse.FromString,
        )
        self.stage: Unary[bytes, service_pb2.StageEnqueueResponse] = self._channel.unary_unary(
            _SERVICE + "StageEnqueue", response_deserializer=service_pb2.StageEnqueueResponse.FromString
        )
        self.open_queue: Callable[[service_pb2.ReadQueueRequest], Call] = self._channel.unary_stream(
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
        """Make a unary call, which may take as long as the client waits, or `timeout_s`. Raises FilaError."""
        if self._closed:
            raise ClientClosedError("the client is closed")
        try:
            return await method(request, timeout=self.timeout_s if timeout_s is None else timeout_s)
        except asyncio.CancelledError as error:
            if not self._closed:
                raise
            raise ClientClosedError("the client was closed") from error
        except RpcError as error:
            raise self.translated(error) from error

    def translated(self, error: RpcError) -> FilaError:
        translated = from_rpc(error)
        if error.code() in (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED):
            return type(translated)(f"{self.addr}: {translated}")
        return translated

    async def close(self) -> None:
        self._closed = True
        await self._channel.close()
