"""TLS of a client: whom it trusts, and what it shows of itself.

Precedence: 1. the argument `tls`, 2. $FILA_TLS, $FILA_TLS_CA, $FILA_TLS_CERT, $FILA_TLS_KEY and $FILA_TLS_SERVER_NAME,
3. no TLS.

Files are read again when they have changed, so certificates are renewed by replacing them: new connections use the new
ones.
"""

import os
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fila.client.errors import InvalidArgumentError
from fila.wire.protocol import ALPN
from fila.wire.tls_context import ClientTls, Identity, TlsFilesError, client_context

VARIABLE: Final = "FILA_TLS"
_SWITCH: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


@dataclass(frozen=True, slots=True)
class TLS:
    """How to secure a connection. Paths of PEM files.

    Client("broker.example:5555", tls=TLS(ca="ca.pem"))
    Client("broker.example:5555", tls=TLS(ca="ca.pem", cert="billing.pem", key="billing.key"))
    """

    #: The CAs that may have signed the broker's certificate. None: those of the system.
    ca: str | None = None
    #: The client's certificate, followed by those of intermediate CAs, and its private key.
    cert: str | None = None
    key: str | None = None
    #: Whom the broker's certificate must be for, if not the host that is connected to.
    server_name: str | None = None

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise InvalidArgumentError("TLS: cert and key belong together")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> "TLS | None":
        """What the variables ask for; None: no TLS. Raises InvalidArgumentError."""
        environ = os.environ if environ is None else environ
        names = ("ca", "cert", "key", "server_name")
        given = {name: environ.get(f"{VARIABLE}_{name.upper()}") or None for name in names}
        switch = environ.get(VARIABLE, "")
        wanted = _SWITCH.get(switch.lower()) if switch else any(given.values())
        if wanted is None:
            raise InvalidArgumentError(f"{VARIABLE} is {switch!r}, expected true or false")
        return cls(**given) if wanted else None


def client_tls(tls: TLS | bool | None) -> ClientTls | None:
    """What the wire needs. Raises InvalidArgumentError for files that cannot be used."""
    if tls is None:
        tls = TLS.from_env()
    elif tls is True:
        tls = TLS()
    if not tls:
        return None
    return ClientTls(_CurrentContext(tls), tls.server_name or "")


class _CurrentContext:
    """Makes the context anew when a file has changed. Files that cannot be used leave it as it was."""

    def __init__(self, tls: TLS) -> None:
        self._tls = tls
        self._files = [Path(path) for path in (tls.ca, tls.cert, tls.key) if path is not None]
        self._context, self._stamps = self._read()

    def _read(self) -> tuple[ssl.SSLContext, list[tuple[int, int, int] | None]]:
        """Again while files change under the reading: a pair that is being renewed may be half new."""
        while True:
            stamps = self._stamps_of_files()
            try:
                return self._make(), stamps
            except TlsFilesError as error:
                if stamps == self._stamps_of_files():
                    raise InvalidArgumentError(f"TLS: {error}") from error

    def __call__(self) -> ssl.SSLContext:
        stamps = self._stamps_of_files()
        if stamps != self._stamps:
            with suppress(TlsFilesError):  # it may be half written; the next connection looks again
                self._context, self._stamps = self._make(), stamps
        return self._context

    def _make(self) -> ssl.SSLContext:
        tls = self._tls
        identity = None if tls.cert is None or tls.key is None else Identity(tls.cert, tls.key)
        return client_context(ca=tls.ca or "", identity=identity, alpn=ALPN)

    def _stamps_of_files(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in self._files]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
