"""The console on a port. It refuses to show itself to other machines without TLS, unless told to."""

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from fila.client import TLS
from fila.client.api_key import FILE_VARIABLE, KEY_VARIABLE
from fila.console.app import console_app
from fila.console.limits import MAX_REQUESTS
from fila.console.links import Links
from fila.console.sessions import COOKIE
from fila.wire.address import is_loopback, split_address

_STOP_S = 3


class NotServed(Exception):
    """The console cannot or must not listen there. The text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Serving:
    """Where to listen, and which broker to show."""

    addr: str
    listen: str = "127.0.0.1:5550"
    tls: TLS | None = None
    #: Further names by which browsers may open it, such as that of a proxy.
    hosts: tuple[str, ...] = ()
    #: A certificate and its key, for HTTPS.
    cert: str | None = None
    key: str | None = None
    insecure: bool = False
    reports: Path | None = None
    #: End when stdin does: with the process that started this one.
    with_parent: bool = False

    def check(self) -> tuple[str, int]:
        """Host and port. Raises NotServed."""
        try:
            host, port = split_address(self.listen)
        except ValueError as error:
            raise NotServed(str(error)) from error
        if (self.cert is None) != (self.key is None):
            raise NotServed("--cert and --key belong together: give both or neither")
        if not (self.cert or self.insecure or host == "localhost" or is_loopback(host)):
            raise NotServed(
                f"{self.listen} can be reached by other machines, and keys would travel in plaintext: give --cert and "
                "--key for HTTPS, listen on 127.0.0.1, or add --insecure"
            )
        return host, port


def serve(serving: Serving, on_ready: Callable[[str], object]) -> None:
    """Until SIGTERM or Ctrl-C. `on_ready` is given the address to open. Raises NotServed."""
    host, port = serving.check()
    for variable in (KEY_VARIABLE, FILE_VARIABLE):  # a key of our own would be everybody's
        os.environ.pop(variable, None)
    try:
        listener = socket.create_server((host, port), family=_family(host), backlog=128)
    except OSError as error:
        raise NotServed(f"cannot listen on {serving.listen}: {os.strerror(error.errno or 0)}") from error
    with listener:
        asyncio.run(_serve(serving, host, listener, on_ready))


async def _serve(serving: Serving, host: str, listener: socket.socket, on_ready: Callable[[str], object]) -> None:
    port = listener.getsockname()[1]
    secure = serving.cert is not None
    links = Links(serving.addr, serving.tls)
    keyless = not serving.hosts  # behind a proxy, everybody seems to be on this machine
    hosts = _hosts(host, port, serving.hosts)
    cookie = f"{COOKIE}_{port}"
    app = console_app(links, hosts, cookie, secure=secure, keyless=keyless, reports=serving.reports)
    config = uvicorn.Config(
        app,
        log_level=logging.WARNING,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=MAX_REQUESTS,
        timeout_graceful_shutdown=_STOP_S,
        ssl_certfile=serving.cert,
        ssl_keyfile=serving.key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise NotServed(f"the certificate {serving.cert} cannot be used: {error}") from error
    if serving.with_parent:
        _end_with_parent()
    shown = f"[{host}]" if ":" in host else "localhost" if is_loopback(host) else host
    address = f"{'https' if secure else 'http'}://{shown}:{port}/"
    await _Server(config, lambda: on_ready(address)).serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Tells when it answers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def _hosts(host: str, port: int, names: Iterable[str]) -> list[str]:
    """The values of Host that are ours. A name without a port is meant with every port that a proxy may have."""
    own = [f"[{host}]" if ":" in host else host, "localhost", "127.0.0.1", "[::1]"]
    given = [form for name in names for form in ((name,) if ":" in name else (name, f"{name}:{port}"))]
    return [f"{each}:{port}" for each in own] + given


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _end_with_parent() -> None:
    """A thread waits for the end of stdin, which comes however the parent ends."""

    def wait() -> None:
        while sys.stdin.buffer.read(4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
