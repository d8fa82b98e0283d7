"""When a stream begins a batch: once there is enough for it, or it was waited for long enough."""

import time
from collections.abc import Callable

from fila.spark.options import Trigger


class Patience:
    """The time since the last batch, held against what a trigger allows."""

    def __init__(self, trigger: Trigger, clock: Callable[[], float] = time.monotonic) -> None:
        self._trigger, self._clock = trigger, clock
        self._since = clock()

    @property
    def always(self) -> bool:
        """Whether any number is enough, so that nothing needs to be counted."""
        return self._trigger.least == 1

    def enough(self, count: int) -> bool:
        """Whether a batch of so many should begin now."""
        if 0 < count < self._trigger.least:
            return self._clock() - self._since >= self._trigger.max_delay_ms / 1000
        return count > 0

    def taken(self) -> None:
        """A batch begins."""
        self._since = self._clock()
