"""Checks of arguments, with errors that name the argument."""

import reprlib
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from fila.client.enums import names_of, number_of
from fila.client.errors import InvalidArgumentError
from fila.wire.addresses import Addresses

R = TypeVar("R")


def made(request: Callable[..., R], **fields: Any) -> R:
    """A request message. Raises InvalidArgumentError, with the name of the field, for a value of the wrong type."""
    try:
        return request(**fields)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(_wrong(request, fields) or str(error)) from error


def _wrong(request: Callable[..., object], fields: dict[str, Any]) -> str:
    for name, value in fields.items():
        try:
            request(**{name: value})
        except (TypeError, ValueError) as error:
            return f"{name} = {reprlib.repr(value)}: {error}"
    return ""


def known_names(noun: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises InvalidArgumentError for an unknown name, and suggests the one that was probably meant."""
    names = list(known)
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"valid names are {', '.join(names)}"
            raise InvalidArgumentError(f"unknown {noun} {name}: {hint}")


def chosen(name: str, enum: Any, value: str) -> Any:
    """The number of a word. Raises InvalidArgumentError, with all words that there are, for one that is none."""
    try:
        return number_of(enum, value)
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name} must be one of {', '.join(names_of(enum))}, not {value!r}") from error


def several(name: str, value: Iterable[str]) -> list[str]:
    """Names as a list. Raises InvalidArgumentError for a single string, whose letters would be taken for names."""
    if isinstance(value, str | bytes):
        raise InvalidArgumentError(f"{name} must be a list, such as [{value!r}], not a string")
    try:
        return list(value)
    except TypeError as error:
        raise InvalidArgumentError(f"{name} must be a list: {error}") from error


def addresses_of(addr: str | Sequence[str]) -> Addresses:
    """Raises InvalidArgumentError."""
    try:
        return Addresses(addr)
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"addr = {addr!r}: {error}") from error
