"""Fields of sections, each with its default and its rule."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, field
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from types import MappingProxyType
from typing import Any

from fila.settings.section import Rule

#: Seconds and other numbers without a narrower bound: as seconds 31 years, as milliseconds 11 days.
MAX_NUMBER = 1_000_000_000


def setting(default: Any, rule: Rule, *, secret: bool = False) -> Any:
    """A field with this rule. Without a default (`MISSING`) it must be given. No message shows a secret's value."""
    return field(default=default, metadata={"rule": rule}, repr=not secret)


def whole_number(default: int, low: int, high: int = MAX_NUMBER) -> Any:
    """A whole number within these bounds."""
    # To Python, TOML's true and false are numbers too.
    rule = Rule(f"a whole number from {low} to {high}", lambda v: type(v) is int and low <= v <= high, int)
    return setting(default, rule)


def number(default: float, low: float, high: float = MAX_NUMBER) -> Any:
    """A number, whole or not, within these bounds."""

    def accepts(value: object) -> bool:
        return type(value) in {int, float} and low <= value <= high  # type: ignore[operator] # a number

    return setting(default, Rule(f"a number from {low:g} to {high:.10g}", accepts, float))


def seconds(default: float, *, low: float | None = None) -> Any:
    """Seconds, whole or not: more than 0, or from `low` on."""

    def accepts(value: object) -> bool:
        if type(value) not in {int, float} or not value <= MAX_NUMBER:  # type: ignore[operator] # nan is not
            return False
        return value > 0 if low is None else value >= low  # type: ignore[operator] # a number

    least = "more than 0" if low is None else f"at least {low:g}"
    return setting(default, Rule(f"a number of seconds, {least}, at most {MAX_NUMBER}", accepts, float))


def choice(default: str, *others: str) -> Any:
    """One of a few words."""
    choices = (default, *others)
    expected = "one of " + ", ".join(f'"{each}"' for each in sorted(choices))
    return setting(default, Rule(expected, lambda value: isinstance(value, str) and value in choices))


def flag(default: bool, *, words: bool = False) -> Any:
    """True or false. With `words`, variables may also say 1, 0, yes, no, on, off or nothing."""
    read = _words_flag if words else _flag
    return setting(default, Rule("true or false", lambda value: isinstance(value, bool), read))


def text(
    default: Any = MISSING,
    expected: str = "text",
    accepts: Callable[[str], bool] = lambda _: True,
    *,
    secret: bool = False,
) -> Any:
    """Text that is accepted by the function."""
    return setting(default, Rule(expected, lambda value: isinstance(value, str) and accepts(value)), secret=secret)


def text_list(
    default: tuple[str, ...] = (),
    expected: str = "a list of names",
    accepts: Callable[[str], bool] = lambda _: True,
) -> Any:
    """Names, each accepted by the function; in a variable, separated by commas."""

    def accepts_all(value: object) -> bool:
        return isinstance(value, (list, tuple)) and all(
            isinstance(each, str) and each and accepts(each) for each in value
        )

    return setting(default, Rule(expected, accepts_all, _names))


def mapping(
    default: Mapping[str, Any],
    expected: str,
    accepts: Callable[[Mapping[str, Any]], bool],
    from_text: Callable[[str], object] = str,
) -> Any:
    """A table of names and values. It is read-only: whoever gave it cannot change it later."""
    rule = Rule(expected, lambda value: isinstance(value, Mapping) and accepts(value), from_text)
    kept = MappingProxyType(dict(default))
    return field(default_factory=lambda: kept, metadata={"rule": rule})


def address(default: str, example: str, *, optional: bool = False) -> Any:
    """host:port. Port 0 means any free port. An optional one may be empty."""
    expected = f"an address such as {example}" + (", or nothing" if optional else "")
    return setting(default, Rule(expected, lambda value: (optional and value == "") or is_address(value)))


def is_address(value: object) -> bool:
    """Whether `value` is host:port, with a name, an IPv4 address or an IPv6 address in brackets."""
    match = re.fullmatch(r"(\[[^\]]*\]|[A-Za-z0-9._-]+):([0-9]{1,5})", value) if isinstance(value, str) else None
    if match is None or int(match[2]) > 65_535:
        return False
    host = match[1]
    try:
        if host.startswith("["):
            IPv6Address(host[1:-1])
        elif re.fullmatch(r"[0-9.]+", host):
            IPv4Address(host)
    except AddressValueError:
        return False
    return True


def _flag(value: str) -> object:
    return {"true": True, "false": False}.get(value.lower(), value)


def _words_flag(value: str) -> object:
    match value.strip().lower():
        case "1" | "true" | "yes" | "on":
            return True
        case "0" | "false" | "no" | "off" | "":
            return False
        case _:
            return value


def _names(value: str) -> tuple[str, ...]:
    names: Iterable[str] = (name.strip() for name in value.split(","))
    return tuple(name for name in names if name)
