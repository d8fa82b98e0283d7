"""Text and numbers as people read them. What comes from a broker is made harmless here, before HTML escapes it."""

from datetime import UTC, datetime
from typing import Final

from fila.console.limits import MAX_SHOWN_CHARS

NONE: Final = "\N{EN DASH}"
"""Where there is no number."""
_BYTES: Final = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_TIMES: Final = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0))


def visible(text: str, most: int = MAX_SHOWN_CHARS, keep: str = "") -> str:
    """The text with control characters, ANSI sequences and bidi controls as escapes, and with an end.

    A name that could reorder the text around it, or hide a part of itself, is shown as what it is.
    """
    cut = text[:most]
    if not cut.isprintable():
        cut = "".join(
            char if char.isprintable() or char in keep else char.encode("unicode_escape", "replace").decode("ascii")
            for char in cut
        )
    return cut if len(text) <= most else f"{cut}… ({len(text) - most:,} more)"


def count(number: float) -> str:
    return f"{number:,.0f}"


def short(number: float) -> str:
    """To three digits: `950`, `12.4k`, `3.1M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if abs(number) >= size:
            return f"{number / (1e3 if unit == 'k' else size):,.1f}{unit}"
    return f"{number:,.0f}"


def rate(number: float | None) -> str:
    """A second."""
    if number is None:
        return NONE
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:,.1f}"


def percent(part: float) -> str:
    return f"{part:.1%}" if part < 0.1 else f"{part:.0%}"


def size(number: float) -> str:
    for unit, one in _BYTES:
        if number >= one:
            return f"{number / one:,.1f} {unit}"
    return f"{number:,.0f} B"


def seconds(value: float) -> str:
    """A time in the unit that fits it: `3 min`, `12 s`, `1.3 s`, `25 ms`."""
    if not value:
        return "0"
    for unit, one in _TIMES:
        if value >= 2 * one:
            return f"{value / one:,.0f} {unit}"
    if value >= 10:
        return f"{value:,.0f} s"
    if value >= 1:
        return f"{value:,.1f} s"
    return f"{value * 1000:,.0f} ms"


def age(since: datetime | None, now: datetime | None = None) -> str:
    """How long ago; a dash when never."""
    if since is None:
        return NONE
    return seconds(max(0.0, ((now or datetime.now(UTC)) - since).total_seconds()))


def until(when: datetime, now: datetime | None = None) -> str:
    """How long from now."""
    return seconds(max(0.0, (when - (now or datetime.now(UTC))).total_seconds()))


def moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"


def plural(number: int, noun: str) -> str:
    """`1 message`, `20,000 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
