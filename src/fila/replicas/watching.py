"""Members tell each other how they are, over connections of their own.

A later version may say more than this one knows: what comes behind is not read. What cannot be read at all is passed
over, so the member that says it counts as silent.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from time import monotonic_ns
from typing import Any, Final

import structlog

from fila.replicas.view import Beat, View
from fila.wire.address import split_address
from fila.wire.channel import Channel
from fila.wire.limits import Limits
from fila.wire.method import Method
from fila.wire.server_call import ServerCall
from fila.wire.status import RpcError, StatusCode
from fila.wire.stream import EOF

log = structlog.get_logger(__name__)

WATCH: Final = "/fila.cluster.Members/Watch"
BEAT_S: Final = 0.25
AGAIN_S: Final = 0.1
CONNECT_S: Final = 1.0


def telling(cluster: str, beat: Callable[[], Beat]) -> Method:
    """The method by which a member tells how it is, until the caller goes."""

    async def tell(asked: bytes, call: ServerCall) -> None:
        if asked != cluster.encode():
            await call.abort(StatusCode.FAILED_PRECONDITION, f"this member belongs to the cluster {cluster!r}")
        while True:
            await call.write(json.dumps(beat()).encode())
            await asyncio.sleep(BEAT_S)

    return Method(tell, bytes, bytes, gives_stream=True, standing=True, max_request_bytes=1024)


def read_beat(told: bytes) -> Beat | None:
    """None if it cannot be read."""
    try:
        beat: Any = json.loads(told)
    except ValueError:
        return None
    match beat:
        case [bool(owns), int(epoch), int(position), bool(tries), *_]:
            return Beat(owns, epoch, position, tries)
        case [bool(owns), int(epoch), int(position)]:
            return Beat(owns, epoch, position)
    return None


class Watching:
    """Watches one other member, until it is stopped."""

    def __init__(self, cluster: str, member: int, address: str, view: View) -> None:
        self._cluster = cluster
        self._member = member
        self._address = address
        self._view = view
        self._task = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while True:
            if await self._is_gone():
                self._view.gone(self._member)
            else:
                self._view.reached(self._member, monotonic_ns())
                await self._listen()
            await asyncio.sleep(AGAIN_S)

    async def _listen(self) -> None:
        """Until the connection is lost."""
        channel, unread = Channel(self._address, Limits()), 0
        try:
            with suppress(RpcError):
                call = channel.unary_stream(WATCH)(self._cluster.encode())
                while (told := await call.read()) is not EOF:
                    if (beat := read_beat(told)) is not None:
                        self._view.heard(self._member, beat, monotonic_ns())
                    elif (unread := unread + 1) == 1:
                        log.warning("a member says what this version cannot read", address=self._address)
        finally:
            await channel.close()

    async def _is_gone(self) -> bool:
        """Whether nobody listens there, as its machine says."""
        try:
            async with asyncio.timeout(CONNECT_S):
                _, writer = await asyncio.open_connection(*split_address(self._address))
        except ConnectionRefusedError:
            return True
        except (OSError, TimeoutError):
            return False
        writer.close()
        return False

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
