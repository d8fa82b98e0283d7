"""The gRPC channel: its options, unary calls with a deadline, and the raw streams.

The streams carry bytes: requests are encoded once, also when they are sent twice.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import grpc

from fila.client.errors import REFUSAL_MARK, ClientClosedError, FilaError, from_rpc
from fila.v1 import admin_pb2, service_pb2

#: What a single request or response may weigh. The broker takes requests of this size.
MAX_RPC_BYTES = 16 << 20

_OPTIONS = (
    ("grpc.max_send_message_length", MAX_RPC_BYTES),
    ("grpc.max_receive_message_length", MAX_RPC_BYTES),
    # Clients in one process do not share a connection, nor its flow control and back-off.
    ("grpc.use_local_subchannel_pool", 1),
    # A peer that vanished without a word is noticed within 40 s, also by a consumer that only waits.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # A restarted broker is found again quickly. The default waits for up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)

_SERVICE = "/fila.v1.FilaService/"

#: What a stream ends with when it broke on the way. gRPC also says INTERNAL or UNKNOWN when a call ends under a write.
_TRANSPORT_CODES = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.OK})
#: What gRPC itself says when a call ends under a write, and what a broker with a defect says.
_UNCLEAR_CODES = frozenset({grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN})


def was_lost(error: grpc.aio.AioRpcError) -> bool:
    """Whether a stream broke on the way, rather than being ended by the broker for a reason."""
    if error.code() in _UNCLEAR_CODES:
        return not any(key == REFUSAL_MARK for key, _ in error.trailing_metadata() or ())
    return error.code() in _TRANSPORT_CODES


Request_contra = TypeVar("Request_contra", contravariant=True)
Request = TypeVar("Request")
Response = TypeVar("Response")


class Unary(Protocol[Request_contra, Response]):
    """A unary method of a generated stub."""

    def __call__(
        self, request: Request_contra, /, *, timeout: float | None = None
    ) -> grpc.aio.UnaryUnaryCall[Any, Response]: ...


class Connection:
    """One channel to one broker. To be made on the event loop that uses it."""

    def __init__(self, addr: str, timeout_s: float) -> None:
        self.addr = addr
        self.timeout_s = timeout_s
        self._closed = False
        self.channel = grpc.aio.insecure_channel(addr, options=_OPTIONS)
        self.open_enqueue: Callable[[], Any] = self.channel.stream_stream(_SERVICE + "EnqueueStream")
        self.open_settle: Callable[[], Any] = self.channel.stream_stream(_SERVICE + "Settle")
        self.open_lease: Callable[[service_pb2.LeaseRequest], Any] = self.channel.unary_stream(
            _SERVICE + "Lease", request_serializer=service_pb2.LeaseRequest.SerializeToString
        )
        self.open_journal: Callable[[admin_pb2.ReadJournalRequest], Any] = self.channel.unary_stream(
            "/fila.v1.FilaAdmin/ReadJournal",
            request_serializer=admin_pb2.ReadJournalRequest.SerializeToString,
            response_deserializer=admin_pb2.ReadJournalResponse.FromString,
        )
        self.open_claim: Callable[[service_pb2.ReadClaimRequest], Any] = self.channel.unary_stream(
            _SERVICE + "ReadClaim",
            request_serializer=service_pb2.ReadClaimRequest.SerializeToString,
            response_deserializer=service_pb2.ReadClaimResponse.FromString,
        )
        self.stage: Unary[bytes, service_pb2.StageEnqueueResponse] = self.channel.unary_unary(
            _SERVICE + "StageEnqueue", response_deserializer=service_pb2.StageEnqueueResponse.FromString
        )
        self.open_queue: Callable[[service_pb2.ReadQueueRequest], Any] = self.channel.unary_stream(
            _SERVICE + "ReadQueue",
            request_serializer=service_pb2.ReadQueueRequest.SerializeToString,
            response_deserializer=service_pb2.ReadQueueResponse.FromString,
        )

    @property
    def closed(self) -> bool:
        return self._closed

    async def call(self, method: Unary[Request, Response], request: Request) -> Response:
        """Make a unary call. Raises FilaError."""
        if self._closed:
            raise ClientClosedError("the client is closed")
        try:
            return await method(request, timeout=self.timeout_s)
        except asyncio.CancelledError as error:
            if not self._closed:
                raise
            raise ClientClosedError("the client was closed") from error
        except grpc.aio.AioRpcError as error:
            raise self.translated(error) from error

    def translated(self, error: grpc.aio.AioRpcError) -> FilaError:
        translated = from_rpc(error)
        if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            return type(translated)(f"{self.addr}: {translated}")
        return translated

    async def close(self) -> None:
        self._closed = True
        await self.channel.close()
