"""Backlog: a warning in the log, and a signal that slows producers down."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from fila.jobs.events import log_safely

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Backpressure:
    """The queue is too long: producers should wait. An HTTP API answers 429 with `Retry-After`."""

    depth: int
    mark: int
    retry_after_seconds: float


def backpressure(depth: int, mark: int, *, drained_per_second: float = 0.0) -> Backpressure | None:
    """None below the mark. Else how long to wait, estimated from the rate at which jobs are done if that is given."""
    if depth < mark:
        return None
    surplus = depth - mark + 1
    estimate = surplus / drained_per_second if drained_per_second > 0 else _RETRY_AFTER_SECONDS[0]
    low, high = _RETRY_AFTER_SECONDS
    return Backpressure(depth, mark, min(max(estimate, low), high))


#: However long the backlog, ask again within a minute: others may have given up, or workers may have been added.
_RETRY_AFTER_SECONDS = (1.0, 60.0)


class DepthWarning:
    """Logs once when the depth reaches the mark, and once when it falls to half of it."""

    def __init__(self, mark: int) -> None:
        self._mark = mark
        self._over = False

    def see(self, depth: int) -> None:
        if not self._over and depth >= self._mark:
            self._over = True
            log_safely(logger, logging.WARNING, "backlog above warn_depth", depth=depth, warn_depth=self._mark)
        elif self._over and depth <= self._mark // 2:
            self._over = False
            log_safely(logger, logging.INFO, "backlog below half of warn_depth", depth=depth, warn_depth=self._mark)
