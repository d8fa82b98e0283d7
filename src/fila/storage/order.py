"""Sorting the keys of messages that go out: a few of each tenant follow each other, so that they come as many short
ascending runs.

A sort takes runs as they are, but merges many short ones as slowly as if there was no order at all. Taking the first of
each run, then the second of each, and so on, makes few long runs of them: tenants have their turns in about the order
in which their messages came. Where that is wrong, sorting only takes longer.
"""

from collections.abc import Sequence
from itertools import compress, islice
from operator import lt
from typing import TypeVar

T = TypeVar("T")


_SAMPLE = 64
"""So many keys tell how long runs are: to look at all of them would take those that are in order longer."""


def positions_in_order(keys: Sequence[bytes]) -> list[int] | None:
    """Where the keys stand, in ascending order of the keys; None when each is larger than the one before it."""
    if all(map(lt, keys, islice(keys, 1, None))):
        return None
    return sorted(_unwoven(range(len(keys)), _usual_run(keys)), key=keys.__getitem__)


def _usual_run(keys: Sequence[bytes]) -> int:
    """How many keys are in a run, on average of those that are seen whole; 1 when there is only one run."""
    first = keys[:_SAMPLE]
    starts = list(compress(range(1, len(first)), map(lt, islice(first, 1, None), first)))
    if len(starts) < 2:
        return starts[0] if starts else 1
    return round((starts[-1] - starts[0]) / (len(starts) - 1))


def _unwoven(items: Sequence[T], run: int) -> Sequence[T]:
    """The first of each so many items, then the second of each."""
    if run == 1:
        return items
    found: list[T] = []
    for start in range(run):
        found += items[start::run]
    return found
