"""Passing calls on to the worker that has what they are about, byte for byte.

Rules of this file:
- A call is passed on once: what arrives on the sockets of the workers is served there and goes no further. So there are
  no circles.
- Its deadline goes along. A caller that cancels, or is lost, ends the call at the other worker in the same way.
- A response comes when the caller takes it and there is memory for it, which is counted as the caller's; before, no
  more than a window of it is here. A request is read when the other worker has taken the one before.
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn

from fila.cluster.caller import write_caller
from fila.cluster.peers import Peers, translated
from fila.wire.address import split_address
from fila.wire.client_call import ClientCall
from fila.wire.server_call import ServerCall
from fila.wire.status import Metadata, RpcError
from fila.wire.stream import EOF

OWNER: Final = "fila-owner"
MAP: Final = "fila-map"
"""The trailers of an answer that was passed on: who to ask directly, and the version of the map that says so."""
MAP_VERSION: Final = 1
"""Placement never changes: the number of workers belongs to the data directory."""
DETAILS: Final = "grpc-status-details-bin"
_OURS: Final = "fila-"
SMALL_BYTES: Final = 64 << 10
"""A response up to here is passed on without memory being reserved for it."""


class Forwarding:
    """Passes calls on, and tells callers whom to ask directly the next time."""

    def __init__(self, peers: Peers, worker_port: int) -> None:
        self._peers = peers
        self._worker_port = worker_port

    def address_of(self, worker: int, call: ServerCall) -> str:
        """Where the caller may reach a worker directly: at the host that it has called; empty when it cannot."""
        if not self._worker_port:
            return ""
        called = next(iter(call.metadata(b":authority")), "")
        try:
            host, _ = split_address(called)
        except ValueError:
            return ""
        return f"[{host}]:{self._worker_port + worker}" if ":" in host else f"{host}:{self._worker_port + worker}"

    def name_of(self, worker: int) -> str:
        return f"worker {worker}"

    def map_version(self) -> int:
        return MAP_VERSION

    def has_room(self, worker: int) -> bool:
        """Whether a call can be passed on at once."""
        return self._peers.has_room(worker)

    def caller_of(self, call: ServerCall) -> Metadata:
        """What is told of the caller."""
        return write_caller(call)

    def trailers(self, worker: int, call: ServerCall) -> Metadata:
        address = self.address_of(worker, call)
        return ((OWNER, address), (MAP, str(self.map_version()))) if address else ()

    async def ask(self, worker: int, path: str, request: bytes, call: ServerCall) -> bytes:
        """The response of another worker to a request for this caller. Raises RpcError."""
        try:
            response: bytes = await self._peers.ask(worker, path, request, call.time_remaining(), self.caller_of(call))
        except RpcError as error:
            raise translated(self.name_of(worker), error, DETAILS) from error
        return response

    async def pass_on(self, worker: int, path: str, request: bytes, call: ServerCall) -> bytes:
        """As `ask`, with whatever the other worker says as the end of the call."""
        trailers = self.trailers(worker, call)
        try:
            response = await self.ask(worker, path, request, call)
        except RpcError as error:
            await refuse(call, error, trailers)
        call.set_trailing_metadata(trailers)
        return response

    def talk(self, worker: int, path: str, call: ServerCall) -> ClientCall:
        """Open a call with any number of requests and responses to another worker."""
        return self._peers.talk(worker, path, call.time_remaining(), self.caller_of(call))

    async def pass_responses(self, worker: int, path: str, request: bytes, call: ServerCall) -> None:
        """A call with one request and any number of responses."""
        there = self._peers.read(worker, path, request, call.time_remaining(), self.caller_of(call))
        await self._relay(worker, call, there)

    async def pass_talk(self, worker: int, path: str, call: ServerCall) -> None:
        """A call with any number of requests and responses."""
        there = self.talk(worker, path, call)
        requests = asyncio.ensure_future(_pass_requests(call, there))
        try:
            await self._relay(worker, call, there)
        finally:
            requests.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await requests

    async def _relay(self, worker: int, call: ServerCall, there: ClientCall) -> None:
        trailers = self.trailers(worker, call)
        try:
            metadata = await there.initial_metadata()
            await call.send_initial_metadata([(key, value) for key, value in metadata if key.startswith(_OURS)])
            while (response := await there.pull(partial(_make_room, call))) is not EOF:
                await call.write(response)
            call.set_trailing_metadata(trailers)
        except RpcError as error:
            await refuse(call, translated(self.name_of(worker), error, DETAILS), trailers)
        finally:
            if call.connection_lost:
                there.lose()
            else:
                there.cancel()


async def _make_room(call: ServerCall, size: int) -> None:
    """Wait until the caller takes a response, and there is memory for one that is large."""
    await call.until_ready(size if size > SMALL_BYTES else 0)


async def _pass_requests(call: ServerCall, there: ClientCall) -> None:
    with suppress(RpcError):  # whoever reads the responses hears of it
        while (request := await call.read()) is not EOF:
            await there.write(request)
        await there.done_writing()


async def refuse(call: ServerCall, error: RpcError, trailers: Metadata = ()) -> NoReturn:
    """End a call as another worker has ended it. Raises Aborted."""
    told = [(key, value) for key, value in error.trailing_metadata() if key == DETAILS]
    await call.abort(error.code(), error.details(), [*told, *trailers])
