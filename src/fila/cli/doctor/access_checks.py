"""Checks of keys, queues, and of the files that the caller uses."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from fila.cli.doctor.finding import Finding, Severity, some

if TYPE_CHECKING:
    from fila.client import CertificateRuleInfo, KeyInfo, PrincipalInfo, QueueConfig, RoleInfo

UNUSED = timedelta(days=90)
ENDS_SOON = timedelta(days=14)
MOST_ADMIN_KEYS = 3


def check_keys(
    keys: Sequence[KeyInfo], principals: Iterable[PrincipalInfo], roles: Iterable[RoleInfo], now: datetime
) -> Iterator[Finding]:
    """Keys that never end, end soon, are not used, or may do too much."""
    valid = [key for key in keys if key.expires_at is None or key.expires_at > now]
    endless = [key.id for key in valid if key.expires_at is None]
    if endless:
        text = f"Keys that never expire: {some(endless)}. One that leaks stays usable until somebody notices."
        yield Finding(Severity.WARNING, "key-expiry", text, "fila auth key rotate KEY --ttl 90d")
    ending = [key.id for key in valid if key.expires_at is not None and key.expires_at - now < ENDS_SOON]
    if ending:
        text = f"Keys that expire within {ENDS_SOON.days} days: {some(ending)}. Their clients are refused then."
        yield Finding(Severity.WARNING, "key-ends-soon", text, "fila auth key rotate KEY --ttl 90d")
    unused = [key.id for key in valid if now - (key.last_used_at or key.created_at) > UNUSED]
    if unused:
        text = f"Keys that were not used for {UNUSED.days} days: {some(unused)}."
        yield Finding(Severity.WARNING, "key-unused", text, "fila auth key revoke KEY")
    admins = _admin_keys(valid, principals, roles)
    if len(admins) > MOST_ADMIN_KEYS:
        text = f"{len(admins)} keys may create keys and change rights: {some(admins)}."
        yield Finding(Severity.WARNING, "admin-keys", text, "give principals a smaller role: fila auth principal set")


def _admin_keys(keys: Iterable[KeyInfo], principals: Iterable[PrincipalInfo], roles: Iterable[RoleInfo]) -> list[str]:
    admins = _admins(principals, roles)
    return [key.id for key in keys if key.principal in admins]


def _admins(principals: Iterable[PrincipalInfo], roles: Iterable[RoleInfo]) -> set[str]:
    """A role that is narrowed to names ("admin:orders.**") administers no keys."""
    administering = {role.name for role in roles if "admin=server" in role.grants}
    return {each.name for each in principals if administering & set(each.roles)}


def check_certificate_rules(
    rules: Sequence[CertificateRuleInfo],
    client_auth: str,
    principals: Iterable[PrincipalInfo],
    roles: Iterable[RoleInfo],
) -> Iterator[Finding]:
    """Rules that never match, and rules that match too much."""
    if rules and client_auth == "none":
        text = "There are certificate rules, but the server asks nobody for a certificate: they match nothing."
        yield Finding(Severity.WARNING, "certificate-rules", text, 'tls.client_ca, and tls.client_auth = "optional"')
    admins = _admins(principals, roles)
    wide = [rule.id for rule in rules if rule.principal in admins and not _names_somebody(rule.pattern)]
    if wide:
        text = f"Every client certificate may create keys and change rights, by the rules {some(wide)}."
        yield Finding(Severity.UNSAFE, "certificate-admins", text, "fila auth certificate remove RULE")


def _names_somebody(pattern: str) -> bool:
    """Whether there is more in a pattern than stars and what every name of its kind has."""
    return any(character.isalnum() for character in re.sub(r"(CN|O|OU|C|DC)=", "", pattern, flags=re.IGNORECASE))


def check_queues(queues: Mapping[str, QueueConfig]) -> Iterator[Finding]:
    """Queues by name, without dead-letter queues."""
    endless = [name for name, config in queues.items() if config.max_attempts == 0]
    if endless:
        text = f"Queues that never give a message up: {some(endless)}. One that always fails is delivered for ever."
        yield Finding(Severity.NOTE, "max-attempts", text, "fila queue update QUEUE --max-attempts 10")


def check_key_source(key_file: Path | None, *, in_environment: bool) -> Iterator[Finding]:
    """Where the caller's own key comes from."""
    if in_environment:
        text = "The API key is in FILA_API_KEY: every program that your shell starts can read it."
        yield Finding(Severity.NOTE, "key-in-environment", text, "FILA_API_KEY_FILE or --api-key-file")
    if key_file is not None and _mode(key_file) & 0o077:
        text = f"Other users of this machine can read or replace the API key in {key_file}."
        yield Finding(Severity.UNSAFE, "key-file-mode", text, f"chmod 600 {key_file}, and rotate the key")


def check_config_file(path: Path) -> Iterator[Finding]:
    """The file of --config."""
    if _mode(path) & 0o022:
        text = f"Other users of this machine can change {path}, and so how the server runs at its next start."
        yield Finding(Severity.UNSAFE, "config-file-mode", text, f"chmod 644 {path}")


def check_restart(configured: Mapping[str, object], running: Mapping[str, object]) -> Iterator[Finding]:
    """Settings of the file that the running server does not have."""
    differing = [name for name, value in configured.items() if running[name] != value]
    if differing:
        text = f"The file and the running server differ: {some(differing)}."
        yield Finding(Severity.WARNING, "restart-pending", text, "restart fila-server")


def _mode(path: Path) -> int:
    """Permission bits; 0 for a file that is not there."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0
