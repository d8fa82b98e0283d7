"""Names of our own as numbers of the contract's enums: "max_attempts" is DEAD_LETTER_REASON_MAX_ATTEMPTS."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from fila.core.errors import InvalidArgument


@lru_cache(maxsize=256)
def number_of(enum: Any, name: str) -> Any:
    """The number of a name, 0 for none. Raises ValueError for a name that the contract does not have."""
    return enum.Value(f"{prefix_of(enum)}{name.upper().replace('-', '_')}") if name else 0


@lru_cache(maxsize=256)
def prefix_of(enum: Any) -> str:
    """What all names of an enum begin with, by the first of them."""
    return str(enum.Name(0)).removesuffix("UNSPECIFIED")


def word_of(enum: Any, number: int, words: Iterable[str], field: str) -> str:
    """Which of our words a number of a request stands for. Raises InvalidArgument, with the field, for none of them."""
    for word in words:
        if number_of(enum, word) == number:
            return word
    raise InvalidArgument(f"{field} is {number}, which is no {enum.DESCRIPTOR.name} of a request")
