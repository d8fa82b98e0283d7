"""The HTTP server in a thread of its own, for programs without an event loop."""

import asyncio
import socket
import threading
from typing import Self

from fila.metrics.http import Pages, PageServer


class PageThread:
    """Listens from construction on, and answers from `start` to `stop`."""

    def __init__(self, pages: Pages, host: str, port: int) -> None:
        """Port 0 is a free one. Raises OSError when the address cannot be used."""
        self._pages = pages
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family)
        self.port: int = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="fila-metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the port. Connections that are open are cut."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
        self._listener.close()
        if not self._loop.is_closed():
            self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = PageServer(self._pages)
        await server.serve(self._listener)
        await self._stopping.wait()
        await server.close()
