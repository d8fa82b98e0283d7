"""A payload as text, JSON or hex. Never more than the bytes that were fetched, and never as anything that runs."""

import json
from collections.abc import Iterator

from fila.console.words import visible

VIEWS = ("text", "json", "hex")
_WIDTH = 16
#: JSON that is nested deeper, or has more lines, is shown as text.
_MAX_LINES = 5000


def best_view(payload: bytes) -> str:
    """The view that tells most."""
    if as_json(payload) is not None:
        return "json"
    return "text" if _is_text(payload) else "hex"


def as_text(payload: bytes) -> str:
    """Control characters other than line breaks and tabs are escapes; so is what is not UTF-8."""
    return visible(payload.decode("utf-8", "backslashreplace"), most=len(payload) * 4 + 4, keep="\n\t")


def as_json(payload: bytes) -> str | None:
    """Indented; None for what is not JSON."""
    try:
        text = json.dumps(json.loads(payload), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    if text.count("\n") > _MAX_LINES:
        return None
    return visible(text, most=len(text), keep="\n")


def as_hex(payload: bytes) -> str:
    return "\n".join(_hex_lines(payload))


def _hex_lines(payload: bytes) -> Iterator[str]:
    for offset in range(0, len(payload), _WIDTH):
        row = payload[offset : offset + _WIDTH]
        plain = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in row)
        yield f"{offset:06x}  {row.hex(' '):<{_WIDTH * 3}} {plain}"


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and b"\x00" not in payload  # cut inside a character
    return b"\x00" not in payload
