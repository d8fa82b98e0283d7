"""Dead letters by error and by key, and the filter that a page was asked with. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fila.client import PeekedMessage
from fila.console.forms import number
from fila.console.limits import MAX_SHOWN_CHARS

#: Numbers and ids that differ from message to message, so that equal errors fall together.
_VARYING: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|0x[0-9a-f]+|\d+", re.IGNORECASE)
FIELDS: Final = ("error", "key", "header", "older_min", "newer_min")


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Dead letters whose last error reads the same."""

    #: The error with `#` for what varies.
    text: str
    #: A part of it that stands in all of them, for the filter.
    literal: str
    count: int
    #: The fairness keys with most of them.
    keys: tuple[tuple[str, int], ...]
    newest: PeekedMessage


def last_error(message: PeekedMessage) -> str:
    """The text of the last failed attempt, or how it failed."""
    if message.attempts:
        last = message.attempts[-1]
        return last.error or f"({last.kind})"
    return f"({message.dead_letter.reason})" if message.dead_letter is not None else "(unknown)"


def by_error(messages: Iterable[PeekedMessage]) -> list[ErrorGroup]:
    """The largest group first. `messages` come newest first."""
    groups: dict[str, list[PeekedMessage]] = {}
    for message in messages:
        text = _VARYING.sub("#", last_error(message)[:MAX_SHOWN_CHARS])
        groups.setdefault(text, []).append(message)
    found = [
        ErrorGroup(
            text,
            max(text.split("#"), key=len).strip(),
            len(each),
            tuple(Counter(one.fairness_key for one in each).most_common(3)),
            each[0],
        )
        for text, each in groups.items()
    ]
    return sorted(found, key=lambda group: -group.count)


def by_key(messages: Iterable[PeekedMessage]) -> list[tuple[str, int]]:
    return Counter(message.fairness_key for message in messages).most_common(25)


def filter_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """What a form asks for, as the SDK takes it. Raises BadForm."""
    given = dict(fields)
    header, _, value = given.get("header", "").partition("=")
    older, newer = number(given, "older_min"), number(given, "newer_min")
    found = {
        "error": given.get("error", "")[:MAX_SHOWN_CHARS] or None,
        "fairness_key": given.get("key", "")[:MAX_SHOWN_CHARS] or None,
        "headers": {header: value or None} if header else None,
        "min_age_ms": None if older is None else int(older * 60_000),
        "max_age_ms": None if newer is None else int(newer * 60_000),
    }
    return {name: value for name, value in found.items() if value is not None}


def options_of(fields: Mapping[str, str]) -> dict[str, str | None]:
    """The same as options of the command line."""
    minutes = {"older-than": fields.get("older_min"), "newer-than": fields.get("newer_min")}
    times = {name: f"{text}m" if text and text.isdecimal() else None for name, text in minutes.items()}
    return {"error": fields.get("error"), "key": fields.get("key"), "header": fields.get("header"), **times}
