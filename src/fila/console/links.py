"""The connections to the broker: one for each key that is signed in, one for those without a key."""

import hashlib
from dataclasses import dataclass, field

from fila.client import TLS, AsyncClient
from fila.console.limits import BROKER_TIMEOUT_S, MAX_LINKS
from fila.console.sweeps import Sweeps
from fila.console.watch import Watch


@dataclass(slots=True)
class Link:
    """One key's connection, with what is sampled through it. Pages of the same key share it."""

    name: str
    client: AsyncClient
    watch: Watch
    sweeps: Sweeps = field(default_factory=Sweeps)
    users: int = 0

    async def close(self) -> None:
        await self.sweeps.close()
        await self.watch.close()
        await self.client.close()


@dataclass(slots=True)
class Links:
    """All connections. A key is known by its digest."""

    addr: str
    tls: TLS | None = None
    _open: dict[str, Link] = field(default_factory=dict)

    def open(self, key: str | None) -> Link:
        """The link of a key, which is opened if nobody has it. Raises FilaError for what cannot be a key."""
        name = _name(key)
        link = self._open.get(name)
        if link is None:
            client = AsyncClient(self.addr, timeout=BROKER_TIMEOUT_S, api_key=key, tls=self.tls)
            link = self._open[name] = Link(name, client, Watch(client))
        link.users += 1
        return link

    async def leave(self, link: Link) -> None:
        """One user less; the last one closes it."""
        link.users -= 1
        if link.users <= 0 and self._open.get(link.name) is link:
            del self._open[link.name]
            await link.close()

    async def close(self) -> None:
        for link in list(self._open.values()):
            await link.close()
        self._open.clear()

    def has_room_for(self, key: str | None) -> bool:
        """Whether the key is known, or may become known."""
        return _name(key) in self._open or len(self._open) < MAX_LINKS


def _name(key: str | None) -> str:
    return "" if key is None else hashlib.sha256(key.encode()).hexdigest()
