"""Members tell each other how they are, over connections of their own."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from time import monotonic_ns
from typing import Final

from fila.replicas.view import Beat, View
from fila.wire.address import split_address
from fila.wire.channel import Channel
from fila.wire.limits import Limits
from fila.wire.method import Method
from fila.wire.server_call import ServerCall
from fila.wire.status import RpcError, StatusCode
from fila.wire.stream import EOF

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
        channel = Channel(self._address, Limits())
        try:
            with suppress(RpcError):
                call = channel.unary_stream(WATCH)(self._cluster.encode())
                while (told := await call.read()) is not EOF:
                    self._view.heard(self._member, Beat(*json.loads(told)), monotonic_ns())
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
