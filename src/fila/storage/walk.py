"""Reading many keys of RocksDB at once: keys that stand near each other are walked to, all others are looked up."""

from collections.abc import Iterator, Sequence
from typing import cast

from rocksdict import Rdict, ReadOptions

WORTH_A_WALK = 8
"""So many wanted keys are walked to in their order, for as long as they stand near each other."""
_STEPS = 8
"""How far to walk to the next one before it is sought"""
_DETOUR = 16
"""What seeking costs, in steps"""
_NEARBY = ReadOptions()
_NEARBY.set_max_skippable_internal_keys(4 * _DETOUR)  # behind those that are wanted, thousands may be deleted


def read_in_order(source: Rdict, keys: Sequence[bytes]) -> list[bytes | None]:
    """The values of ascending keys."""
    values = _walk(source, keys)
    if len(values) < len(keys):
        values += cast("list[bytes | None]", source.get(list(keys[len(values) :])))
    return values


def _walk(source: Rdict, keys: Sequence[bytes]) -> list[bytes | None]:
    """The values of ascending keys that stand near each other: cheaper than to look each up, above all in files.

    Of the first ones only, when they turn out not to, or when a walk finds nothing: why, looking up tells.
    """
    values: list[bytes | None] = []
    begun, detours = -1, 0
    while begun < len(values) < len(keys) and detours <= len(values) + len(keys) // 2:
        begun = len(values)
        wanted = iter(keys[begun:])
        key: bytes | None = next(wanted)
        strangers = 0
        for here, value in cast("Iterator[tuple[bytes, bytes]]", source.items(from_key=key, read_opt=_NEARBY)):
            if here != key:
                while key is not None and here > key:
                    values.append(None)
                    key = next(wanted, None)
                if key is None:
                    return values
                if here != key:
                    strangers += 1
                    if strangers > _STEPS:
                        break
                    continue
            values.append(value)
            key = next(wanted, None)
            if key is None:
                return values
            strangers = 0
        detours += _DETOUR
    return values
