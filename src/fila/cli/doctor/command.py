"""The command: collects what the caller may see, runs the checks, prints what they find."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fila.cli import output
from fila.cli.doctor import access_checks, server_checks
from fila.cli.doctor.finding import Finding, Severity, exit_code
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import Client, QueueConfig, ServerInfo

MOST_QUEUES = 1000
"""Queues whose settings are looked at: one call each."""

_COLOURS = {Severity.UNSAFE: "red", Severity.WARNING: "yellow"}


@click.command(
    epilog="""\b
Examples:
  fila doctor
  fila doctor --config /etc/fila/fila.toml
  fila doctor --ignore durability --ignore journal
  fila doctor --fail-on unsafe --json

Exit codes: 0 nothing to mend, 1 warnings, 2 something is unsafe (or wrong usage), 3 no broker answers.

docs/doctor.md lists all checks."""
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Check this configuration file of the server too, on the server's own machine.",
)
@click.option("--ignore", "ignored", multiple=True, metavar="CHECK", help="Leave a check out. Repeatable.")
@click.option(
    "--fail-on",
    type=click.Choice(["warning", "unsafe"]),
    default="warning",
    help="The least severity that gives an exit code other than 0 (default: warning).",
)
@session_options
@pass_session
def doctor(session: Session, /, config_file: Path | None, ignored: tuple[str, ...], fail_on: str) -> None:
    """Check how the broker is set up, and print what is unsafe.

    Each line has a severity, the check, what it means, and what mends it. A check that needs a permission which the
    caller does not have is skipped; `admin` on the server sees everything.
    """
    findings = sorted(
        (found for found in _examine(session, config_file) if found.check not in ignored),
        key=lambda found: (found.severity, found.check),
    )
    if session.as_json:
        output.emit_json([_json(finding) for finding in findings])
    else:
        _show(findings)
    raise click.exceptions.Exit(exit_code(findings, warnings_fail=fail_on == "warning"))


def _examine(session: Session, config_file: Path | None) -> Iterator[Finding]:
    from fila.client import TLSError

    yield from access_checks.check_key_source(_key_file(session), in_environment=_key_in_environment(session))
    if config_file is not None:
        yield from access_checks.check_config_file(config_file)
    try:
        with session.client() as client:
            client.auth.who_am_i()  # who may not even ask this is told so, instead of a list of skipped checks
            yield from _examine_server(
                Looking(client, session.endpoint().addr.rpartition(":")[0].strip("[]"), config_file)
            )
    except TLSError as error:
        text = f"No secure connection: {error}."
        fix = "a certificate that clients accept, or --tls-ca and --tls-server-name"
        yield Finding(Severity.UNSAFE, "certificate", text, fix)


@dataclass(frozen=True, slots=True)
class Looking:
    """What the checks of a running server need."""

    client: Client
    host: str
    config_file: Path | None


def _examine_server(looking: Looking) -> Iterator[Finding]:
    for names, look in (
        ("server", _look_at_server),
        ("keys", _look_at_keys),
        ("queues", _look_at_queues),
    ):
        yield from _permitted(names, look, looking)


def _permitted(what: str, look: Callable[[Looking], Iterator[Finding]], looking: Looking) -> Iterator[Finding]:
    from fila.client import PermissionDeniedError

    try:
        yield from look(looking)
    except PermissionDeniedError as error:
        yield Finding(Severity.SKIPPED, what, f"Not checked: {error}.", "a key with this permission")


def _look_at_server(looking: Looking) -> Iterator[Finding]:
    server = looking.client.describe_server()
    now = datetime.now(UTC)
    yield from server_checks.check_reach(server)
    yield from server_checks.check_tls(server, looking.host, now)
    yield from server_checks.check_store(server)
    yield from server_checks.check_process(server, version("fila-client"), now)
    if looking.config_file is not None:
        yield from access_checks.check_restart(*_settings(looking.config_file, server))


def _look_at_keys(looking: Looking) -> Iterator[Finding]:
    auth = looking.client.auth
    principals, roles, rules = auth.list_principals(), auth.list_roles(), auth.list_certificate_rules()
    yield from access_checks.check_keys(auth.list_keys(), principals, roles, datetime.now(UTC))
    tls = looking.client.describe_server().tls if rules else None
    client_auth = "none" if tls is None else tls.client_auth
    yield from access_checks.check_certificate_rules(rules, client_auth, principals, roles)


def _look_at_queues(looking: Looking) -> Iterator[Finding]:
    client = looking.client
    queues: dict[str, QueueConfig] = {
        queue.name: client.queue_stats(queue.name, 1).config
        for queue in client.list_queues()[:MOST_QUEUES]
        if queue.dead_letter_queue
    }
    return access_checks.check_queues(queues)


def _settings(path: Path, server: ServerInfo) -> tuple[dict[str, object], dict[str, object]]:
    """Settings as the file and the environment have them, and as the running server has them."""
    try:
        from fila.server.main import configure
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"--config needs the server's package ({error.name} is missing): pip install 'fila[server]'"
        ) from error
    try:
        config = configure(["--config", str(path)])
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    tls = server.tls
    running: dict[str, object] = {
        "server.listen_addr": server.listen_addr,
        "server.insecure": server.insecure,
        "tls.cert": tls is not None,
        "tls.client_auth": "none" if tls is None else tls.client_auth,
        "storage.durability": server.store.durability,
        "journal.enabled": server.journal_enabled,
        "telemetry.prometheus_listen": server.http_listen_addr,
    }
    configured: dict[str, object] = {
        "server.listen_addr": config.server.listen_addr,
        "server.insecure": config.server.insecure,
        "tls.cert": config.tls.enabled,
        "tls.client_auth": config.tls.client_auth,
        "storage.durability": config.storage.survives,
        "journal.enabled": config.journal.enabled,
        "telemetry.prometheus_listen": config.telemetry.prometheus_listen,
    }
    if tls is not None:
        running["tls.min_version"], configured["tls.min_version"] = tls.min_version, config.tls.min_version
    return configured, running


def _key_in_environment(session: Session) -> bool:
    return session.endpoint().api_key_file is None and bool(os.environ.get("FILA_API_KEY"))


def _key_file(session: Session) -> Path | None:
    chosen = session.endpoint().api_key_file
    if chosen is not None:
        return chosen
    named = os.environ.get("FILA_API_KEY_FILE")
    return Path(named) if named and not os.environ.get("FILA_API_KEY") else None


def _show(findings: list[Finding]) -> None:
    width = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        name = finding.severity.name.lower()
        shown = output.style(f"{name:<8}", fg=_COLOURS.get(finding.severity), bold=finding.severity is Severity.UNSAFE)
        click.echo(f"{shown} {finding.check:<{width}}  {output.printable(f'{finding.text} Fix: {finding.fix}.')}")
    counts = {severity: sum(found.severity is severity for found in findings) for severity in Severity}
    if counts[Severity.UNSAFE] + counts[Severity.WARNING] == 0:
        click.echo("Nothing to mend in what was checked." if counts[Severity.SKIPPED] else "Nothing to mend.")
    else:
        click.echo(f"{counts[Severity.UNSAFE]} unsafe, {output.count(counts[Severity.WARNING], 'warning')}.")


def _json(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity.name.lower(),
        "check": finding.check,
        "text": finding.text,
        "fix": finding.fix,
    }
