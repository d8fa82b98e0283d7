"""Checks of the server: who reaches it, TLS, files, the disk, the clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from fila.cli.doctor.finding import Finding, Severity

if TYPE_CHECKING:
    from fila.client import ServerInfo, ServerTls

EXPIRES_SOON = timedelta(days=30)
CLOCK_SKEW = timedelta(seconds=5)

_OTHERS = 0o007
_GROUP_WRITE = 0o020
_GROUP = 0o070


def check_reach(server: ServerInfo) -> Iterator[Finding]:
    """Who can connect, and what the way there shows."""
    beyond = not is_local(server.listen_addr)
    certified = server.tls is not None and server.tls.client_auth == "required"
    if server.insecure and not (server.has_keys or certified):
        yield Finding(
            Severity.UNSAFE if beyond else Severity.WARNING,
            "open",
            f"server.insecure is true and there are no keys: whoever reaches {server.listen_addr} may read, change and "
            "delete everything.",
            "fila auth init, then remove server.insecure",
        )
    elif server.insecure:
        yield Finding(
            Severity.WARNING,
            "insecure-setting",
            "server.insecure is true. Today keys or client certificates keep others out; with a new data directory, or "
            "without tls.client_auth, the server is open to everyone.",
            "remove server.insecure",
        )
    if server.protected_mode:
        yield Finding(
            Severity.NOTE,
            "protected-mode",
            "There are no keys: every user of the server's machine may do everything, and other machines are refused.",
            "fila auth init",
        )
    if server.tls is None and server.has_keys and beyond:
        yield Finding(
            Severity.UNSAFE,
            "plaintext",
            "There is no TLS: whoever is on the path reads API keys and messages.",
            "set tls.cert and tls.key",
        )
    yield from _check_metrics(server)


def _check_metrics(server: ServerInfo) -> Iterator[Finding]:
    if not server.http_listen_addr or is_local(server.http_listen_addr):
        return
    certified = server.tls is not None and server.tls.client_auth == "required"
    if server.insecure and not (server.has_keys or certified):
        text = "shows names of queues and keys to whoever reaches it."
        fix = 'fila auth init, or telemetry.prometheus_listen = "127.0.0.1:9464"'
        yield Finding(Severity.UNSAFE, "metrics", f"/metrics on {server.http_listen_addr} {text}", fix)
    elif server.tls is None and server.has_keys:
        text = "has no TLS: the key of whoever scrapes it travels in plaintext."
        fix = 'set tls.cert and tls.key, or telemetry.prometheus_listen = "127.0.0.1:9464"'
        yield Finding(Severity.WARNING, "metrics", f"/metrics on {server.http_listen_addr} {text}", fix)


def check_tls(server: ServerInfo, host: str, now: datetime) -> Iterator[Finding]:
    """The certificate and the settings of TLS. `host` is what clients connect to."""
    tls = server.tls
    if tls is None:
        return
    if tls.certificate_error:
        text = f"Clients refuse the server's certificate: {tls.certificate_error}."
        yield Finding(Severity.UNSAFE, "certificate", text, "replace the files of tls.cert and tls.key")
    if tls.certificate_expires_at is not None and tls.certificate_expires_at - now < EXPIRES_SOON:
        left = max(0, (tls.certificate_expires_at - now).days)
        text = f"The server's certificate expires in {left} days; from then on clients refuse it."
        yield Finding(Severity.WARNING, "certificate-expiry", text, "replace the files of tls.cert and tls.key")
    named = any(_is_for(name, host) for name in tls.certificate_names)
    if not (tls.certificate_error or named or is_local(f"{host}:0")):  # other clients connect by another name
        yield Finding(
            Severity.WARNING,
            "certificate-name",
            f"The server's certificate is not for {host}: clients that connect to it need another server_name.",
            f"a certificate whose subjectAltName has {host}",
        )
    yield from _check_tls_settings(tls)


def _check_tls_settings(tls: ServerTls) -> Iterator[Finding]:
    if tls.client_auth == "optional":
        yield Finding(
            Severity.NOTE,
            "client-certificates",
            "A client certificate is verified if one is shown, and not required.",
            'tls.client_auth = "required"',
        )
    if tls.min_version == "1.2":
        text = "TLS 1.2 is accepted (with forward secrecy and authenticated encryption only)."
        yield Finding(Severity.NOTE, "tls-version", text, 'tls.min_version = "1.3", once all clients speak it')
    if tls.key_file_mode & (_OTHERS | _GROUP_WRITE):
        text = f"Other users of the server's machine can read or replace its private key {tls.key_file}."
        yield Finding(Severity.UNSAFE, "private-key-mode", text, f"chmod 600 {tls.key_file}, and a new key")


def check_store(server: ServerInfo) -> Iterator[Finding]:
    """The data directory, the disk, and what a confirmed write survives."""
    store = server.store
    if store.data_dir_mode & (_OTHERS | _GROUP):
        worse = store.data_dir_mode & (_OTHERS | _GROUP_WRITE)
        yield Finding(
            Severity.UNSAFE if worse else Severity.WARNING,
            "data-dir-mode",
            f"Other users of the server's machine can reach its data directory {store.data_dir} (mode "
            f"{store.data_dir_mode:04o}): messages, configuration values and hashes of keys.",
            f"chmod 700 {store.data_dir}",
        )
    if store.free_bytes < 2 * store.min_free_bytes:
        yield Finding(
            Severity.WARNING,
            "disk",
            f"{store.free_bytes >> 20:,} MiB are free on the disk; below {store.min_free_bytes >> 20:,} MiB producers "
            "are refused.",
            "consume or purge messages, or a larger disk",
        )
    if store.durability == "wal":
        text = "A confirmed message survives a crash of the server, not a power failure of its machine."
        yield Finding(Severity.NOTE, "durability", text, 'storage.durability = "fsync"')
    elif not store.durability:
        text = "Messages are kept in memory: they are gone when the server stops."
        yield Finding(Severity.NOTE, "durability", text, 'storage.store = "rocksdb"')
    if not server.journal_enabled:
        text = "The journal is off: what became of a message cannot be looked up later."
        yield Finding(Severity.NOTE, "journal", text, "journal.enabled = true")


def check_process(server: ServerInfo, client_version: str, now: datetime) -> Iterator[Finding]:
    """The user it runs as, its version and its clock."""
    if server.runs_as_root:
        text = "The server runs as root: a defect of it would put the whole machine at risk."
        yield Finding(Severity.WARNING, "root", text, "run fila-server as a user of its own")
    if server.version != client_version:
        text = f"The server has version {server.version}, this command has {client_version}."
        yield Finding(Severity.WARNING, "version", text, f"pip install fila-client=={server.version}")
    skew = abs(server.now - now)
    if skew > CLOCK_SKEW:
        yield Finding(
            Severity.WARNING,
            "clock",
            f"The clocks of server and client differ by {skew.total_seconds():,.0f} s: keys and certificates expire by "
            "the clock of whoever checks them.",
            "set both by NTP",
        )


def is_local(addr: str) -> bool:
    """Whether only programs of the same machine can reach an address that a server listens on."""
    host = addr.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_for(name: str, host: str) -> bool:
    if name.startswith("*."):
        return host.partition(".")[2].lower() == name[2:].lower()
    try:
        return ip_address(name) == ip_address(host)
    except ValueError:
        return name.lower() == host.lower()
