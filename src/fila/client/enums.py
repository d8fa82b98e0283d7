"""Numbers of the contract's enums as the names that the SDK has for them: DEAD_LETTER_REASON_MAX_ATTEMPTS is
"max_attempts".
"""

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1024)
def name_of(enum: Any, number: int) -> str:
    """Empty for 0. A number that only a later version knows is its own name."""
    if not number:
        return ""
    if number not in enum.values():
        return str(number)
    return str(enum.Name(number)).removeprefix(_prefix_of(enum)).lower()


@lru_cache(maxsize=256)
def number_of(enum: Any, name: str) -> Any:
    """Raises ValueError for a name that the contract does not have. What `name_of` gives is taken back."""
    if name.isdecimal() and name.isascii():
        return int(name)
    return enum.Value(f"{_prefix_of(enum)}{name.upper().replace('-', '_')}")


def names_of(enum: Any) -> list[str]:
    """All that there are, but for none."""
    return [name_of(enum, number) for number in enum.values() if number]


def _prefix_of(enum: Any) -> str:
    return str(enum.Name(0)).removesuffix("UNSPECIFIED")
