"""Moments on an axis, as short as tells them apart."""

from datetime import UTC, datetime

_DAY_NS = 86_400 * 10**9


def starts(first_ns: int, step_ns: int, count: int) -> list[str]:
    """When each of so many windows begins: no two alike.

    Windows of less than a second have parts of it, windows on several days have the day.
    """
    last_ns = first_ns + (count - 1) * step_ns
    style = "%H:%M:%S"
    if first_ns // _DAY_NS != last_ns // _DAY_NS:
        style = "%Y-%m-%d %H:%M:%S" if last_ns - first_ns >= 365 * _DAY_NS else "%m-%d %H:%M:%S"
    digits = next(digits for digits in range(10) if step_ns >= 10 ** (9 - digits))
    return [_told(first_ns + number * step_ns, style, digits) for number in range(count)]


def _told(ns: int, style: str, digits: int) -> str:
    second, rest = divmod(ns, 10**9)
    text = datetime.fromtimestamp(second, UTC).strftime(style)
    return f"{text}.{rest // 10 ** (9 - digits):0{digits}d}" if digits else text
