"""Shows peeked messages: as a table, one message in full, or as JSON."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from fila.cli import output, render

if TYPE_CHECKING:
    from fila.client import FailedAttempt, PeekedMessage

_ERROR_CHARS = 60
_PAYLOAD_CHARS = 40


def show_table(messages: Sequence[PeekedMessage]) -> None:
    """One line for each message: id, age, last error, beginning of the payload."""
    titles = ("ID", "AGE", "STATE", "KEY", "ATTEMPTS", "LAST ERROR", "SIZE", "PAYLOAD")
    output.table(titles, [_row(message) for message in messages])


def _row(message: PeekedMessage) -> list[str | int]:
    last = message.attempts[-1] if message.attempts else None
    return [
        message.id,
        age(message.enqueued_at),
        message.state,
        message.fairness_key,
        message.attempt_count,
        _short((last.error or f"({last.kind})") if last else "", _ERROR_CHARS),
        render.size(message.payload_size),
        _short(_first_line(message), _PAYLOAD_CHARS),
    ]


def _first_line(message: PeekedMessage) -> str:
    payload = message.payload
    if not payload:
        return ""
    if len(payload) < message.payload_size:  # it may end inside a character
        payload = payload.decode(errors="ignore").encode() if _is_text(payload) else payload
    return render.payload_lines(payload)[0]


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(payload) - 3
    return True


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def age(when: datetime) -> str:
    """The time since then, in the largest unit that fits: `45 s`, `3 min`, `2 h`, `10 d`."""
    seconds = max(0, int((datetime.now(UTC) - when).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def show(message: PeekedMessage) -> None:
    """One message in full: its fields, failed attempts, headers and payload."""
    _section(f"Message {output.printable(message.id)}")
    rows: list[tuple[str, str | int]] = [
        ("queue", message.queue),
        ("state", f"{message.state} until {output.moment(message.until)}" if message.until else message.state),
        ("enqueued", f"{output.moment(message.enqueued_at)} ({age(message.enqueued_at)} ago)"),
        ("fairness key", f"{message.fairness_key} (weight {message.weight})"),
        ("priority", message.priority),
        ("cost", message.cost),
        ("throttle keys", ", ".join(message.throttle_keys) or "none"),
        ("attempts", message.attempt_count),
    ]
    letter = message.dead_letter
    if letter is not None:
        rows += [
            ("source queue", letter.source_queue),
            ("dead since", f"{output.moment(letter.died_at)} ({age(letter.died_at)} ago)"),
            ("reason", letter.reason),
        ]
    output.pairs(rows)
    if message.attempts:
        _section("\nFailed attempts")
        for attempt in message.attempts:
            _show_attempt(attempt)
    if message.headers:
        _section("\nHeaders")
        output.pairs([(output.printable(name), value) for name, value in sorted(message.headers.items())])
    _section(f"\nPayload ({render.size(message.payload_size)})")
    for line in render.payload_lines(message.payload):
        click.echo(f"  {line}")


def _show_attempt(attempt: FailedAttempt) -> None:
    click.echo(f"  {attempt.attempt:>3}  {output.moment(attempt.failed_at)}  {attempt.kind}")
    for line in attempt.error.split("\n") if attempt.error else ():
        click.echo(f"       {output.printable(line)}")


def as_json(message: PeekedMessage) -> dict[str, Any]:
    """All fields of the message. The payload is in `payload` if it is UTF-8 text, else in `payload_base64`."""
    try:
        payload = {"payload": message.payload.decode()}
    except UnicodeDecodeError:
        payload = {"payload_base64": base64.b64encode(message.payload).decode("ascii")}
    letter = message.dead_letter
    return {
        "id": message.id,
        "queue": message.queue,
        "state": message.state,
        "until": message.until.isoformat() if message.until else None,
        "fairness_key": message.fairness_key,
        "weight": message.weight,
        "priority": message.priority,
        "cost": message.cost,
        "throttle_keys": list(message.throttle_keys),
        "attempt_count": message.attempt_count,
        "enqueued_at": message.enqueued_at.isoformat(),
        "dead_letter": None
        if letter is None
        else {"source_queue": letter.source_queue, "died_at": letter.died_at.isoformat(), "reason": letter.reason},
        "attempts": [
            {"attempt": one.attempt, "failed_at": one.failed_at.isoformat(), "kind": one.kind, "error": one.error}
            for one in message.attempts
        ],
        "headers": message.headers,
        "payload_size": message.payload_size,
        **payload,
    }


def _section(title: str) -> None:
    click.echo(output.style(title, bold=True))
