"""TLS contexts from certificate files, of servers and of clients, with one sentence for what is wrong with them.

Rules of this file:
- TLS 1.2 and 1.3 with forward secrecy and authenticated encryption: what HTTP/2 allows (RFC 9113, 9.2).
- No session tickets: each connection shows its certificates anew, so one that was taken away is of no more use.
- A file is never asked for a password: an encrypted key is refused.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2. Those of TLS 1.3 are all good."""

CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class TlsFilesError(ValueError):
    """Certificate files that cannot be used. The text names the file and what is wrong."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate, with the chain to its CA behind it, and its private key. Paths of PEM files."""

    cert: str
    key: str


@dataclass(frozen=True, slots=True)
class ClientTls:
    """How a client secures its connections. Each new connection uses the context of then."""

    #: Raises TlsFilesError.
    context: Callable[[], ssl.SSLContext]
    #: Whom the server's certificate must be for; empty: the host that is connected to.
    server_name: str = ""


def server_context(
    identity: Identity, *, client_ca: str = "", client_auth: str = "none", min_version: str = "1.2", alpn: str
) -> ssl.SSLContext:
    """Raises TlsFilesError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, min_version, alpn)
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
    _load_identity(context, identity)
    context.verify_mode = CLIENT_AUTH[client_auth]
    if client_ca:
        _load_ca(context, client_ca)
    return context


def client_context(*, ca: str = "", identity: Identity | None = None, alpn: str) -> ssl.SSLContext:
    """Trusts the CAs in the file `ca`, or those of the system. Raises TlsFilesError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _restrict(context, "1.2", alpn)
    if ca:
        _load_ca(context, ca)
    else:
        context.load_default_certs()
    if identity is not None:
        _load_identity(context, identity)
    return context


def _restrict(context: ssl.SSLContext, min_version: str, alpn: str) -> None:
    context.minimum_version = VERSIONS[min_version]
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols([alpn])


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    for path in (identity.cert, identity.key):
        _check_readable(path)
    try:
        context.load_cert_chain(identity.cert, identity.key, password=_no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsFilesError(f"the key {identity.key} does not belong to the certificate {identity.cert}") from error
        raise TlsFilesError(f"{identity.cert} and {identity.key} are not a certificate and its key in PEM") from error


def _load_ca(context: ssl.SSLContext, path: str) -> None:
    _check_readable(path)
    try:
        context.load_verify_locations(cafile=path)
    except ssl.SSLError as error:
        raise TlsFilesError(f"{path} has no CA certificate in PEM") from error


def _check_readable(path: str) -> None:
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise TlsFilesError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TlsFilesError(f"{path!r} is not a path") from error


def _no_password() -> NoReturn:
    raise TlsFilesError("the private key is encrypted: give one without a passphrase, readable by its owner alone")
