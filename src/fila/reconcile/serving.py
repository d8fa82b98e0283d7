"""An ASGI application on a port, in a thread of its own. Signals are the business of whoever started it.

The thread ends before the process does: a timer of uvloop's that went off when the interpreter is gone would crash it.
"""

import atexit
import logging
import socket
import threading
import time
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10


class HttpServer:
    """Listens from construction on, so nobody else can be given the port; answers from `start()` on."""

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1", port: int = 0) -> None:
        """Raises OSError when the address cannot be had."""
        self._socket = socket.create_server((host, port), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        config = uvicorn.Config(
            app,
            log_level=logging.WARNING,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=STOP_TIMEOUT_S,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name=f"http-{self.port}", daemon=True)

    def start(self) -> None:
        """Answer in a thread. Returns when requests are answered. Raises RuntimeError, and then nothing is left."""
        self._thread.start()
        atexit.register(self._cut)
        try:
            self._await_start()
        except BaseException:
            atexit.unregister(self._cut)
            self._cut()
            raise

    def stop(self, *, wait: bool = True) -> None:
        """Finish the requests under way and close; without `wait`, cut them."""
        atexit.unregister(self._cut)
        self._end(wait=wait, patience_s=None)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def _await_start(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the HTTP server did not start")
            time.sleep(0.002)

    def _cut(self) -> None:
        """Stop, and do not wait for ever: not for a start that hangs, nor at the end of the process for a handler."""
        self._end(wait=False, patience_s=STOP_TIMEOUT_S)

    def _end(self, *, wait: bool, patience_s: float | None) -> None:
        self._server.force_exit = not wait
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(patience_s)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])
