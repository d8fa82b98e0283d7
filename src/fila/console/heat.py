"""How what a fairness key got compares with what it was entitled to, over time. Pure.

The scheduler serves a key in turns: for a moment a key gets four times its share, and then nothing. A cell therefore
looks back until the key should have had a few turns, at least one sample and at most a minute; before half of these
turns it says nothing.

A level is the logarithm (base 2) of share by entitlement, from -3 (an eighth or less) to 3 (eight times or more). A key
that had nothing waiting got what it wanted, which is level 0.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fila.console.history import History, Point

COLUMNS = 60
STRONGEST = 3
_TURNS = 4
_MAX_LOOK_BACK = 30


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
    return [_cell(points, end, key, turn * _TURNS, every) for end in reversed(ends)]


def _cell(points: Sequence[Point], end: int, key: str, needed: int, every: int) -> Cell | None:
    last = points[end].keys.get(key)
    found, sure = None, False
    for begin in range(end - 1, max(-1, end - max(_MAX_LOOK_BACK, every) - 1), -1):
        first = points[begin].keys.get(key)
        delivered = points[end].delivered - points[begin].delivered
        if last is None or first is None or delivered < 0 or last.delivered < first.delivered:
            break  # not seen, or the broker was restarted
        entitled = first.entitlement if first.pending else 0.0
        if not delivered or (not entitled and last.delivered == first.delivered):
            continue
        found = Cell((last.delivered - first.delivered) / delivered, entitled)
        sure = not entitled or entitled * delivered >= needed / 2
        if end - begin >= every and (not entitled or entitled * delivered >= needed):
            break
    return found if sure else None
