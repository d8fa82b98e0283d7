"""The other workers, or members: connections to each, and how their refusals are told to whoever has called."""

from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from fila.cluster.connections import Connections
from fila.wire.channel import Channel
from fila.wire.client_call import ClientCall
from fila.wire.limits import Limits
from fila.wire.status import Metadata, RpcError, StatusCode
from fila.wire.unix_channel import UnixChannel

KEEPALIVE_S: Final = (5.0, 5.0)
"""A worker that is silent for the first is asked, and given up when it does not answer within the second. Shorter than
for clients: all that others ask of it waits."""

REQUEST_WINDOW: Final = 1 << 20
RESPONSE_WINDOW: Final = 64 << 10
"""So much of a response is here before its caller takes it."""
CONNECTION_WINDOW: Final = (1 << 31) - 1
"""No limit: a caller that does not read must not hold up the answers of all others. Each stream has its own window."""
HEADER_BYTES: Final = 64 << 10
"""Metadata of a caller, and its certificate."""
MAX_STREAMS: Final = 1 << 20
"""Each caller is limited on the connection that it has itself."""


def limits(max_message_bytes: int, stream_window: int) -> Limits:
    """Of connections between workers."""
    return Limits(
        max_message_bytes=max_message_bytes,
        max_streams=MAX_STREAMS,
        max_header_bytes=HEADER_BYTES,
        stream_window=stream_window,
        connection_window=CONNECTION_WINDOW,
        limits_floods=False,
    )


def socket_path(folder: Path, worker: int) -> str:
    return str(folder / str(worker))


class PeerAway(RpcError):
    """Another did not answer: it has ended, or is just starting. Whether it did what was asked is not known."""

    def __init__(self, name: str, cause: RpcError) -> None:
        super().__init__(StatusCode.UNAVAILABLE, f"{name} is away, and will be back: {cause.details()}")


class Peers:
    """Calls to the others, by their numbers."""

    def __init__(self, connections: Mapping[int, Connections]) -> None:
        self._connections = connections

    @classmethod
    def of_workers(cls, folder: Path, workers: int, self_number: int, max_message_bytes: int) -> "Peers":
        """The other workers of this server: one connection to each, which allows any number of calls."""
        allowed = limits(max_message_bytes, RESPONSE_WINDOW)
        return cls(
            {
                each: Connections(
                    partial(UnixChannel, socket_path(folder, each), allowed, KEEPALIVE_S), most=1, calls=MAX_STREAMS
                )
                for each in range(workers)
                if each != self_number
            }
        )

    @classmethod
    def of_members(cls, addresses: Sequence[str], self_number: int, max_message_bytes: int) -> "Peers":
        """The other members of a cluster."""
        allowed = limits(max_message_bytes, RESPONSE_WINDOW)
        return cls(
            {
                number: Connections(partial(Channel, address, allowed, KEEPALIVE_S))
                for number, address in enumerate(addresses)
                if number != self_number
            }
        )

    def has_room(self, other: int) -> bool:
        """Whether another may be asked for more, or would have to wait."""
        return self._connections[other].has_room

    def ask(self, worker: int, path: str, request: bytes, timeout: float | None, metadata: Metadata) -> Awaitable[Any]:
        """A call with one request and one response, in bytes. Raises RpcError."""
        return self._connections[worker].next().unary_unary(path)(request, timeout=timeout, metadata=metadata)

    def read(self, worker: int, path: str, request: bytes, timeout: float | None, metadata: Metadata) -> ClientCall:
        """A call with one request and any number of responses."""
        return self._connections[worker].next().unary_stream(path)(request, timeout=timeout, metadata=metadata)

    def talk(self, worker: int, path: str, timeout: float | None, metadata: Metadata) -> ClientCall:
        """A call with any number of each."""
        return self._connections[worker].next().stream_stream(path)(timeout=timeout, metadata=metadata)

    async def close(self) -> None:
        for connections in self._connections.values():
            await connections.close()


def translated(name: str, error: RpcError, details: str) -> RpcError:
    """What the caller is told: the refusal of another, which has the trailer `details`, or that it is away."""
    trailing: Sequence[tuple[str, str | bytes]] = error.trailing_metadata()
    if any(name == details for name, _ in trailing) or error.code() is StatusCode.DEADLINE_EXCEEDED:
        return error
    if error.code() in {StatusCode.UNAVAILABLE, StatusCode.CANCELLED, StatusCode.INTERNAL, StatusCode.UNKNOWN}:
        return PeerAway(name, error)
    return error
