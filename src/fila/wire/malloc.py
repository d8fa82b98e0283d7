"""glibc malloc: keep memory that was freed for what comes next, and give it back when nothing needs it.

Batches are blocks of a few hundred kilobytes that live for a moment. By default glibc takes such blocks from the kernel
one by one and gives them back at once, and the faults on their fresh pages then cost more than the rest of receiving
them: 1.2 to 1.8 us a kilobyte against 0.4 (bare batches of 500 KB, one run on a loaded machine).
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final

_LARGEST: Final = (32 << 20) - (1 << 16)


@cache
def keep_freed_memory() -> None:
    """Once for a process. What is kept is what was in use once, and at most 64 MiB of it.

    glibc learns: after a block that it had taken from the kernel is freed, blocks up to that size come from memory that
    it keeps, up to twice that size; 32 MiB is the most it takes for a lesson. The block is never touched, so it costs
    nothing. With another allocator this does nothing.
    """
    bytes(_LARGEST)


def give_back_memory() -> None:
    """Give what was freed, and is kept although nothing needs it, back to the system. With another allocator this does
    nothing.
    """
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
