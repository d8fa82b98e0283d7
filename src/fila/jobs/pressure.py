"""Backlog: a word in the log when it grows past its mark, and a signal that producers can act on."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from fila.jobs.events import tell

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Backpressure:
    """The queue is past its mark: whoever can wait should. An HTTP API answers 429 with `Retry-After`."""

    depth: int
    mark: int
    retry_after_seconds: float


def backpressure(depth: int, mark: int, *, drained_per_second: float = 0.0) -> Backpressure | None:
    """None while producers are welcome. With the rate at which jobs are done, says when it is worth trying again."""
    if depth < mark:
        return None
    surplus = depth - mark + 1
    estimate = surplus / drained_per_second if drained_per_second > 0 else _RETRY_AFTER_SECONDS[0]
    low, high = _RETRY_AFTER_SECONDS
    return Backpressure(depth, mark, min(max(estimate, low), high))


#: However long the backlog, ask again within a minute: others may have given up, or workers may have been added.
_RETRY_AFTER_SECONDS = (1.0, 60.0)


class DepthWarning:
    """Logs once when the depth passes the mark, and once when half of it is gone again."""

    def __init__(self, mark: int) -> None:
        self._mark = mark
        self._over = False

    def see(self, depth: int) -> None:
        if not self._over and depth >= self._mark:
            self._over = True
            tell(logger, logging.WARNING, "backlog past its mark", depth=depth, warn_depth=self._mark)
        elif self._over and depth <= self._mark // 2:
            self._over = False
            tell(logger, logging.INFO, "backlog back to normal", depth=depth, warn_depth=self._mark)
