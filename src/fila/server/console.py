"""`fila-server --console`: the console as a process beside the server, which ends with it.

The console is another process, so nothing that a browser does holds up the event loop of the broker. It ends when its
stdin does: also when the server is killed. When it fails, the broker goes on.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fila.config import Config
from fila.settings import SettingsError
from fila.wire.address import split_address

STOP_S = 5.0


class ConsoleMissing(Exception):
    """The extra is not installed. The text names it."""


@contextmanager
def console_beside(config: Config, listen: str) -> Iterator[None]:
    """While the context is open, the console runs. Raises ConsoleMissing or SettingsError."""
    command = console_command(config, listen)
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:  # noqa: S603 - our own program
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def console_command(config: Config, listen: str) -> list[str]:
    """How the console is started. Raises ConsoleMissing or SettingsError."""
    for package in ("fila.console", "jinja2", "starlette", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise ConsoleMissing(f"the console needs the package {package}: pip install 'fila[console]'")
    host, port = split_address(config.server.listen_addr)
    if not port:
        raise SettingsError("--console needs a port of the server that is known: give --listen a port other than 0")
    if config.tls.enabled and not any(name.startswith("FILA_TLS") for name in os.environ):
        raise SettingsError(
            "--console does not know whom to trust: set FILA_TLS_CA to the CA of the server's certificate, and "
            "FILA_TLS_SERVER_NAME to its name, or start `fila console` by itself"
        )
    addr = f"127.0.0.1:{port}" if host in {"", "0.0.0.0", "::"} else config.server.listen_addr  # noqa: S104
    # A program without a Python is the command too when it is called so (release/fila.spec).
    command = [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "fila.cli.main"]
    return [*command, "console", "--addr", addr, "--listen", listen, "--with-parent"]
