"""Calls to a server of this machine at the path of a Unix socket."""

from typing import Final

from fila.wire.channel import Channel
from fila.wire.client_protocol import ClientProtocol
from fila.wire.limits import Limits

_NOWHERE: Final = "localhost:0"
"""What stands in `:authority`. Nothing is looked up by it."""


class UnixChannel(Channel):
    """As `Channel`. Who may connect is a matter of the folder's permissions."""

    def __init__(self, path: str, limits: Limits, keepalive: tuple[float, float]) -> None:
        super().__init__(_NOWHERE, limits, keepalive)
        self._path = path

    async def _open(self, host: str, port: int) -> ClientProtocol:
        """Raises OSError."""
        del host, port
        _, protocol = await self.loop.create_unix_connection(self._made, self._path)
        return protocol
