"""The methods of a member that does not own the shard: each call goes to the owner, byte for byte.

Rules of this file:
- A call is passed on once: one that another member has passed on is refused when this one is not the owner.
- A call that comes while nobody owns the shard waits for a new owner, for a while: a takeover is no reason to fail.
- The owner checks the rights of the caller by the key or token that goes along. It sees the address of this member.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from fila.cluster.forwarding import Forwarding
from fila.cluster.peers import Peers
from fila.core.errors import BrokerError, Overloaded, SteppedDown
from fila.server.status import row_of, text_of, write_details
from fila.server.types import Method, ServerCall
from fila.v1 import admin_pb2, auth_pb2, service_pb2
from fila.wire.status import Metadata

PASSED: Final = "fila-passed"
"""Says that a call was passed on by another member"""
WAIT_S: Final = 8.0
"""How long a call waits for an owner"""
MAX_WAITING: Final = 5_000
"""Calls that wait at once. They all go on in the same moment, at a member that has just taken over."""
LOOK_S: Final = 0.02
"""How often somebody looks for an owner while calls wait"""


def was_passed_on(call: ServerCall) -> bool:
    """Whether another member says that the call is not its own."""
    return next(iter(call.metadata(PASSED.encode())), None) is not None


class MemberForwarding(Forwarding):
    """Passes calls on to members, and tells callers where these are."""

    def __init__(self, peers: Peers, names: list[str], addresses: list[str], epoch: Callable[[], int]) -> None:
        super().__init__(peers, 0)
        self._names = names
        self._addresses = addresses
        self._epoch = epoch

    def name_of(self, worker: int) -> str:
        return f"member {self._names[worker]}"

    def address_of(self, worker: int, call: ServerCall) -> str:
        del call
        return self._addresses[worker]

    def map_version(self) -> int:
        return self._epoch()

    def caller_of(self, call: ServerCall) -> Metadata:
        return [*super().caller_of(call), (PASSED, "1")]


class Passing:
    """Finds the owner for each call. `owner` says which other member that is. When it is this one, `local` has the
    methods; `begins` says whether it is about to have them.
    """

    def __init__(self, forwarding: Forwarding, owner: Callable[[], int | None], begins: Callable[[], bool]) -> None:
        self.local: Mapping[str, Method] | None = None
        self._forwarding = forwarding
        self._owner = owner
        self._begins = begins
        self._waiting = 0
        self._looking: asyncio.Task[None] | None = None
        """Ends when something has changed. All that wait share it."""

    def methods(self) -> dict[str, Method]:
        """All methods of our services, by path."""
        found = {}
        for file in (service_pb2, admin_pb2, auth_pb2):
            for service in file.DESCRIPTOR.services_by_name.values():
                for each in service.methods:
                    path = f"/{service.full_name}/{each.name}"
                    found[path] = Method(
                        partial(self._serve, path, streams=each.client_streaming or each.server_streaming),
                        bytes,
                        bytes,
                        takes_stream=each.client_streaming,
                        gives_stream=each.server_streaming,
                    )
        return found

    async def _serve(self, path: str, raw: Any, call: ServerCall, *, streams: bool) -> Any:
        owner = await self._find_owner(call)
        if self.local is not None:
            return await self._serve_here(self.local[path], raw, call)
        assert owner is not None
        if not self._forwarding.has_room(owner):
            busy = f"too many calls are passed on to {self._forwarding.name_of(owner)}; ask there, or retry later"
            await self._refuse(Overloaded(busy), owner, call)
        if not streams:
            return await self._forwarding.pass_on(owner, path, raw, call)
        if raw is None:
            return await self._forwarding.pass_talk(owner, path, call)
        return await self._forwarding.pass_responses(owner, path, raw, call)

    async def _find_owner(self, call: ServerCall) -> int | None:
        passed = was_passed_on(call)
        loop = asyncio.get_running_loop()
        until = loop.time() + min(WAIT_S, call.time_remaining() or WAIT_S)
        while self.local is None:
            owner = self._owner()
            if owner is not None and not passed:
                return owner
            left = until - loop.time()
            if (passed and not self._begins()) or left <= 0:
                await self._refuse(SteppedDown("no member of the cluster serves at the moment; retry"), owner, call)
            if self._waiting >= MAX_WAITING:
                waiting = f"{self._waiting} calls wait already until a member of the cluster serves; retry later"
                await self._refuse(Overloaded(waiting), owner, call)
            await self._wait(left)
        return None

    async def _refuse(self, error: BrokerError, owner: int | None, call: ServerCall) -> None:
        row, text = row_of(error), text_of(error)
        where = () if owner is None else self._forwarding.trailers(owner, call)
        await call.abort(row.code, text, [*write_details(row, text), *where])

    async def _wait(self, seconds: float) -> None:
        """Until something has changed, or for so long."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look())
        self._waiting += 1
        try:
            await asyncio.wait({self._looking}, timeout=seconds)
        finally:
            self._waiting -= 1

    async def _look(self) -> None:
        """Until something is other than now, or nobody waits any more."""
        before = self._state()
        while self._state() == before:
            await asyncio.sleep(LOOK_S)
            if not self._waiting:
                return

    def _state(self) -> tuple[bool, int | None, bool]:
        return self.local is not None, self._owner(), self._begins()

    async def _serve_here(self, method: Method, raw: Any, call: ServerCall) -> Any:
        """This member has become the owner while the call waited."""
        if method.takes_stream:
            call.serve_as(method)
            return await method.handler(None, call)
        request = call.decoded(method, raw)
        if method.gives_stream:
            call.serve_as(method)
            return await method.handler(request, call)
        return method.write(await method.handler(request, call))
