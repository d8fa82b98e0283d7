"""`fila hook`: try a script without applying its decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

import click

from fila.cli import completing, output
from fila.cli.enqueue import parse_headers
from fila.cli.session import Session, pass_session, session_options

if TYPE_CHECKING:
    from fila.client import EnqueueDecision, FailureDecision, HookTrial


@click.group(
    epilog="""\b
Examples:
  fila hook test policy.lua --queue orders -H tenant=acme
  fila hook test policy.lua --queue orders --next 20"""
)
def hook() -> None:
    """Test the Lua hooks of a queue."""


@hook.command(
    epilog="""\b
Examples:
  fila hook test policy.lua --queue orders -H tenant=acme -H plan=gold
  fila hook test policy.lua --queue orders -H tenant=acme --attempts 3 --error "timed out"
  fila hook test policy.lua --queue orders --next 20
  fila hook test --queue orders --next 20"""
)
@click.argument("script", type=click.File("r", encoding="utf-8"), required=False)
@click.option(
    "--queue",
    "queue_name",
    required=True,
    metavar="QUEUE",
    shell_complete=completing.queue_names,
    help="The queue whose name, limits and messages the script sees.",
)
@click.option(
    "-H",
    "--header",
    "--headers",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    callback=parse_headers,
    help="Add a header to the test message. Repeat the option for more headers.",
)
@click.option(
    "--payload-size",
    type=click.IntRange(min=0),
    default=0,
    metavar="BYTES",
    help="The payload size of the test message.",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="The number of failed attempts, for on_failure.",
)
@click.option("--error", default="", metavar="TEXT", help="The error text of the consumer, for on_failure.")
@click.option(
    "--next",
    "next_messages",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Test with the next N messages of the queue.",
)
@session_options
@pass_session
def test(session: Session, /, script: TextIO | None, queue_name: str, headers: dict[str, str], **given: Any) -> None:
    """Run SCRIPT on a message and print what it would decide. Nothing is changed.

    Without SCRIPT, the queue's own script is run. The message is made from the options; with --next, the script is run
    on the next messages of the queue.
    """
    source = script.read() if script is not None else ""
    given["next_messages"] = given["next_messages"] or 0
    with session.client() as client:
        trials = client.try_hook(queue_name, source, headers=headers, **given)
    if session.as_json:
        output.emit_json([_json(trial) for trial in trials])
    elif len(trials) == 1 and not given["next_messages"]:
        _show(trials[0])
    elif trials:
        output.table(("MESSAGE", "ON ENQUEUE", "ON FAILURE"), [_row(trial) for trial in trials])
    else:
        click.echo("No messages are waiting.", err=True)


def _show(trial: HookTrial) -> None:
    if trial.on_enqueue is not None:
        click.echo(output.style("on_enqueue", bold=True))
        output.pairs([(name.replace("_", " "), words) for name, words in _enqueue_rows(trial.on_enqueue).items()])
    if trial.on_failure is not None:
        click.echo(output.style("on_failure", bold=True))
        output.pairs([(name.replace("_", " "), words) for name, words in _failure_rows(trial.on_failure).items()])


def _enqueue_rows(decision: EnqueueDecision) -> dict[str, str | int]:
    told: dict[str, str | int] = {
        "fairness_key": decision.fairness_key,
        "weight": decision.weight,
        "throttle_keys": ", ".join(decision.throttle_keys) or "none",
        "cost": decision.cost,
        "priority": "set by the producer" if decision.priority is None else decision.priority,
        "delay": "set by the producer" if decision.delay_ms is None else output.duration(decision.delay_ms),
    }
    return told | ({"error": decision.error} if decision.error else {})


def _failure_rows(decision: FailureDecision) -> dict[str, str | int]:
    told: dict[str, str | int] = {"action": "dead letter" if decision.dead_letter else "retry"}
    if not decision.dead_letter:
        told["after"] = "the queue's delay" if decision.delay_ms is None else output.duration(decision.delay_ms)
    return told | ({"error": decision.error} if decision.error else {})


def _row(trial: HookTrial) -> tuple[str, str, str]:
    placed = _line(_enqueue_rows(trial.on_enqueue)) if trial.on_enqueue is not None else "-"
    judged = _line(_failure_rows(trial.on_failure)) if trial.on_failure is not None else "-"
    return trial.message_id, placed, judged


def _line(told: dict[str, str | int]) -> str:
    return " ".join(f"{name}={words}" for name, words in told.items() if words not in {"none", "set by the producer"})


def _json(trial: HookTrial) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(trial)
