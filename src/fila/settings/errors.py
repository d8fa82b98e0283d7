"""What is said about a setting that cannot be used."""

from collections.abc import Iterable
from difflib import get_close_matches


class SettingsError(ValueError):
    """A setting cannot be used. The text says in one line where it was set, its name and what is allowed."""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a section, key or variable that does not exist, with the name that was probably meant."""
    names = list(known)
    near = get_close_matches(name.rpartition(".")[2], names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown {what} {name}: expected one of {', '.join(names)}{hint}"


def shown(value: object) -> str:
    """A value as a message shows it. Python refuses to print a number of more than 4300 digits."""
    try:
        return repr(value)
    except ValueError:
        return "a number of too many digits"
