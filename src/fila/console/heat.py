"""How what a fairness key got compares with what it was entitled to, over time. Pure.

The scheduler serves a key in turns: for a moment a key gets four times its share, and then nothing. A cell therefore
looks back until the key should have had a few turns, at least one sample and at most a minute and a half. With
fewer than four turns, of which one more or less would be a quarter, it says nothing.

A level is the logarithm (base 2) of share by entitlement, from -3 (an eighth or less) to 3 (eight times or more). A key
that had nothing waiting at some time got what it wanted, which is level 0.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fila.console.history import History, Point

COLUMNS = 60
STRONGEST = 3
_TURNS, _FEWEST_TURNS = 6, 4
_MAX_LOOK_BACK = 45


class Cell(NamedTuple):
    """What a key got in a stretch of time, and was entitled to."""

    share: float
    entitled: float

    @property
    def level(self) -> int:
        if not self.entitled:
            return 0
        if not self.share:
            return -STRONGEST
        return max(-STRONGEST, min(STRONGEST, round(math.log2(self.share / self.entitled))))


def cells(history: History, key: str, turn: int, every: int = 1) -> list[Cell | None]:
    """A cell for each column, oldest first; None where nothing can be said. A turn of the key delivers `turn`."""
    points = list(history.points)
    ends = range(len(points) - 1, 0, -every)[:COLUMNS]
    return [_cell(points, end, key, turn, every) for end in reversed(ends)]


def _cell(points: Sequence[Point], end: int, key: str, turn: int, every: int) -> Cell | None:
    """Backwards from `end`, while the key had messages waiting; `expected` is what its weight entitled it to."""
    last = points[end].keys.get(key)
    expected, found = 0.0, None
    for begin in range(end - 1, max(-1, end - max(_MAX_LOOK_BACK, every) - 1), -1):
        first = points[begin].keys.get(key)
        delivered = points[end].delivered - points[begin].delivered
        if last is None or first is None or delivered < 0 or last.delivered < first.delivered:
            break  # not seen, or the broker was restarted
        if not delivered:
            continue
        share = (last.delivered - first.delivered) / delivered
        if not (first.pending and last.pending):
            return Cell(share, 0.0) if share else None
        expected += first.entitlement * (points[begin + 1].delivered - points[begin].delivered)
        found = Cell(share, expected / delivered)
        if end - begin >= every and expected >= turn * _TURNS:
            break
    return found if expected >= turn * _FEWEST_TURNS else None
