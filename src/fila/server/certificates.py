"""The server's certificates: read at the start, checked, and taken up anew when their files change.

Rules of this file:
- A start with files that cannot be used fails. A running server keeps the certificates it has, and logs why.
- Only new connections use new certificates: none that is open is closed.
- What clients will refuse (an expired certificate, one for another purpose) is logged, not refused: it may be renewed
  in time.
"""

import asyncio
import ssl
import time
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from fila.config import TlsConfig
from fila.server.file_stamp import Stamp, stamp_of
from fila.settings import SettingsError
from fila.wire.protocol import ALPN
from fila.wire.tls_context import Identity, TlsFilesError, server_context
from fila.wire.tls_errors import explain

log = structlog.get_logger(__name__)

WATCH_S: Final = 2.0
"""How often the files are looked at. SIGHUP looks at once."""

EXPIRES_SOON_S: Final = 14 * 86_400
_OTHERS: Final = 0o007

_Stamp = tuple[Stamp | None, ...]


class Certificates:
    """The TLS contexts of the gRPC port and of the HTTP port. `load` comes first."""

    def __init__(self, config: TlsConfig) -> None:
        self._config = config
        self._identity = Identity(config.cert, config.key)
        self._stamp: _Stamp = ()
        self._timer: asyncio.TimerHandle | None = None
        self.found = Found("", 0.0, ())
        """What clients see in the certificate that is in use"""
        self._grpc: ssl.SSLContext
        self._http: ssl.SSLContext

    def load(self) -> None:
        """Raises SettingsError."""
        try:
            self._take_up()
        except TlsFilesError as error:
            raise SettingsError(f"tls: {error}") from error

    def grpc(self) -> ssl.SSLContext:
        return self._grpc

    def http(self) -> ssl.SSLContext:
        """The same certificates. A client certificate is never required here: probes have none."""
        return self._http

    def watch(self) -> None:
        """Look at the files again and again."""
        self.renew()
        self._timer = asyncio.get_running_loop().call_later(WATCH_S, self.watch)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def renew(self, *, always: bool = False) -> None:
        """Take up files that have changed. What cannot be used leaves all as it is."""
        if self._stamp_of_files() == self._stamp and not always:
            return
        try:
            self._take_up()
        except TlsFilesError as error:
            log.error("the new certificate files cannot be used: the old ones stay in use", reason=str(error))  # noqa: TRY400

    def _take_up(self) -> None:
        config = self._config
        self._stamp = self._stamp_of_files()  # before they are read: a change meanwhile is seen the next time
        make = partial(server_context, self._identity, client_ca=config.client_ca, min_version=config.min_version)
        http = make(client_auth="optional" if config.client_ca else "none", alpn="http/1.1")
        grpc = make(client_auth=config.client_auth, alpn=ALPN)
        self._http, self._grpc = http, grpc
        self._log_certificate()

    def _stamp_of_files(self) -> _Stamp:
        return tuple(stamp_of(path) for path in (self._config.cert, self._config.key, self._config.client_ca) if path)

    def _log_certificate(self) -> None:
        if Path(self._config.key).stat().st_mode & _OTHERS:
            log.warning("every user of this machine can read the private key: chmod 600", file=self._config.key)
        self.found = found = examine(self._identity)
        if found.error:
            log.warning("clients will refuse the certificate", file=self._config.cert, reason=found.error)
            return
        until = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found.not_after))
        if found.not_after - time.time() < EXPIRES_SOON_S:
            log.warning("the certificate expires soon", file=self._config.cert, valid_until=until)
        else:
            log.info("certificate loaded", file=self._config.cert, valid_until=until)


class Found(NamedTuple):
    """What a client sees in a certificate."""

    #: Why a client refuses it, and nothing else is known of it then; empty: it does not.
    error: str
    not_after: float
    names: tuple[str, ...]


def examine(identity: Identity) -> Found:
    """Shake hands with ourselves, as a client that trusts this very certificate."""
    try:
        return _examine(identity)
    except ssl.SSLError as error:
        return Found(explain(error), 0.0, ())


def _examine(identity: Identity) -> Found:
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(cafile=identity.cert)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server)
    server = server_context(identity, alpn=ALPN).wrap_bio(to_server, to_client, server_side=True)
    for end in (client, server, client, server):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = client.getpeercert()
    assert found is not None
    names = tuple(str(pair[1]) for pair in found.get("subjectAltName", ()))
    return Found("", float(ssl.cert_time_to_seconds(str(found["notAfter"]))), names)
