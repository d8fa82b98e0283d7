"""Shows a consumed message: a few lines of text, or one line of JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from fila.cli import output

if TYPE_CHECKING:
    from fila.client import ConsumeMessage

_HEX_BYTES = 24


def human(message: ConsumeMessage) -> str:
    """One line about the message, one line of headers if it has any, then the payload, indented.

    The indentation distinguishes a payload from the line of the next message, whatever the payload contains.
    """
    about = "  ".join(
        (
            output.style(output.printable(message.id), bold=True),
            f"key {output.style(output.printable(message.fairness_key), fg='cyan')}",
            f"attempt {message.attempt_count + 1}",
            size(len(message.payload)),
        )
    )
    lines = [about]
    if message.headers:
        headers = " ".join(f"{output.printable(k)}={output.printable(v)}" for k, v in sorted(message.headers.items()))
        lines.append(output.style(f"  {headers}", dim=True))
    lines += [f"  {line}" for line in payload_lines(message.payload)]
    return "\n".join(lines)


def payload_lines(payload: bytes) -> list[str]:
    """The lines of a text; of binary data, the first bytes in hex."""
    if not payload:
        return ["(empty)"]
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        shown = payload[:_HEX_BYTES].hex(" ")
        return [f"(binary) {shown}{' ...' if len(payload) > _HEX_BYTES else ''}"]
    return [output.printable(line, keep="\t") for line in text.removesuffix("\n").split("\n")]


def size(number: int) -> str:
    """`12 B`, `1.5 KiB`, `4.0 MiB`."""
    if number < 1024:
        return f"{number} B"
    return f"{number / 1024:.1f} KiB" if number < 1024 * 1024 else f"{number / 1024 / 1024:.1f} MiB"


def as_json(message: ConsumeMessage) -> dict[str, Any]:
    """All fields of the message. The payload is in `payload` if it is UTF-8 text, else in `payload_base64`."""
    try:
        payload = {"payload": message.payload.decode()}
    except UnicodeDecodeError:
        payload = {"payload_base64": base64.b64encode(message.payload).decode("ascii")}
    return {
        "id": message.id,
        "queue": message.queue,
        "fairness_key": message.fairness_key,
        "weight": message.weight,
        "priority": message.priority,
        "attempt_count": message.attempt_count,
        "enqueued_at": message.enqueued_at.isoformat(),
        "leased_at": message.leased_at.isoformat(),
        "headers": dict(message.headers),
        **payload,
    }
