"""`fila explain`: why a message is still waiting."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from fila.cli import completing, output
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import Explanation


@click.command(
    epilog="""\b
Examples:
  fila explain orders
  fila explain orders --key acme
  fila explain orders --message 018bcfe5-6800-7000-8000-00000000002a
  fila explain orders --key acme --json"""
)
@click.argument("queue", shell_complete=completing.queue_names)
@click.option("--message", "message_id", default="", metavar="ID", help="Explain the message with this id.")
@click.option(
    "--key",
    "fairness_key",
    default="",
    metavar="KEY",
    shell_complete=completing.fairness_keys,
    help="Explain the first message of this fairness key.",
)
@session_options
@pass_session
def explain(session: Session, /, queue: str, message_id: str, fairness_key: str) -> None:
    """Explain why a message of QUEUE is still waiting.

    The command prints the reasons, the settings behind them, and when the message will be delivered. Without --message
    or --key, it explains the next message to be delivered.
    """
    if message_id and fairness_key:
        raise click.UsageError("Give --message or --key, not both.")
    with session.client() as client:
        about = client.explain(queue, message_id, fairness_key=fairness_key)
    if session.as_json:
        output.emit_json(_json(about))
    else:
        _show(about, datetime.now(UTC))


def _show(about: Explanation, now: datetime) -> None:
    click.echo(output.style(f"Message {output.printable(about.message_id)}", bold=True))
    waited = (now - about.enqueued_at).total_seconds()
    output.pairs(
        [
            ("fairness key", about.fairness_key),
            ("priority", about.priority),
            ("attempts", about.attempt_count),
            ("throttle keys", ", ".join(about.throttle_keys) or "none"),
            ("enqueued", f"{output.moment(about.enqueued_at)} ({waited:,.1f} s ago)"),
            ("state", about.state),
        ]
    )
    click.echo(output.style("\nWhy it waits", bold=True))
    if not about.reasons:
        click.echo("  It does not wait: it is being delivered now.")
    for number, reason in enumerate(about.reasons, 1):
        code = output.style(reason.code, fg="yellow")
        setting = f"  [{output.printable(reason.setting)}]" if reason.setting else ""
        click.echo(f"  {number}. {code}: {output.printable(reason.text)}{output.style(setting, dim=True)}")
    click.echo(output.style("\nWhen", bold=True))
    about_so = "" if about.exact else "about "
    rows: list[tuple[str, str | int]] = [("deliveries ahead", f"{about_so}{about.deliveries_ahead:,}")]
    if about.not_before > now:
        rows.append(("not before", _in(about.not_before, now)))
    estimate = about.estimated_at
    rows.append(("estimate", _in(estimate, now) if estimate else "unknown: it depends on consumers"))
    output.pairs(rows)


def _in(when: datetime, now: datetime) -> str:
    seconds = (when - now).total_seconds()
    return "now" if seconds <= 0 else f"in {seconds:,.1f} s ({output.moment(when)})"


def _json(about: Explanation) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list | tuple) else value

    told: dict[str, Any] = plain(asdict(about))
    return told
