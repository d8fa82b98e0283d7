"""Sorting the keys of messages that go out or are done: a few of each tenant follow each other, so that they come as
many short ascending runs.

A sort takes runs as they are, but merges many short ones as slowly as if there was no order at all. Taking the first of
each run, then the second of each, and so on, makes few long runs of them: tenants have their turns in about the order
in which their messages came. Where that is wrong, sorting only takes longer.
"""

from collections.abc import Sequence
from itertools import islice
from operator import gt
from typing import TypeVar

T = TypeVar("T")


def in_order(keys: list[bytes]) -> list[bytes]:
    """The keys, ascending."""
    run = _usual_run(keys)
    return sorted(_unwoven(keys, run)) if run else keys


def positions_in_order(keys: Sequence[bytes]) -> list[int] | None:
    """Where the keys stand, in ascending order of the keys; None when they ascend."""
    run = _usual_run(keys)
    return sorted(_unwoven(range(len(keys)), run), key=keys.__getitem__) if run else None


def _usual_run(keys: Sequence[bytes]) -> int:
    """How many keys ascend, on average, before one is smaller than the one before it; 0 when none is."""
    ends = sum(map(gt, keys, islice(keys, 1, None)))
    return max(1, round(len(keys) / (ends + 1))) if ends else 0


def _unwoven(items: Sequence[T], run: int) -> list[T]:
    """The first of each so many items, then the second of each."""
    found: list[T] = []
    for start in range(run):
        found += items[start::run]
    return found
