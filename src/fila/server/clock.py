"""The broker's clock: the time of the wall clock at the start, and from then on the time that has really passed.

Rules of this file:
- It never goes back and never jumps, however the wall clock is set: delays, leases and windows last as long as they
  should. Message ids and ages follow it, so they stay in order.
- It counts the time for which the machine was suspended, where the system says how long that was.
- When the wall clock says something else, it is followed slowly: 1 % faster or slower until both agree. So after the
  wall clock was set by an hour, a lease of 30 s lasts 29.7 to 30.3 s for four days, and times that the broker tells are
  off by what is left of the hour.
- A store knows a time that has been. A start never begins before it: leases and delays that were kept also end as they
  should when the wall clock was set back while no server ran.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

_SLEW_BITS: Final = 10
_MOST_SLEW: Final = 10
"""Of 1024: about 1 %"""
STEP_NS: Final = 1_000_000_000
"""A wall clock that is off by so much more or less than a moment ago was set."""

wall_ns: Callable[[], int] = time.time_ns
elapsed_ns: Callable[[], int] = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic_ns
)


class SteadyClock:
    """Tells nanoseconds since the epoch. `adjust` is to be called a few times a second."""

    def __init__(self, not_before: int = 0) -> None:
        self._began = elapsed_ns()
        self._base = max(wall_ns(), not_before)
        self._slew = 0
        self._ahead = self._base - wall_ns()

    def __call__(self) -> int:
        passed = elapsed_ns() - self._began
        return self._base + passed + (passed * self._slew >> _SLEW_BITS)

    def adjust(self) -> int:
        """Follow the wall clock. Returns by how much it was set since the last time; 0 when it was not."""
        passed = elapsed_ns() - self._began
        self._base += passed + (passed * self._slew >> _SLEW_BITS)
        self._began += passed
        before, self._ahead = self._ahead, self._base - wall_ns()
        wanted = -(self._ahead << _SLEW_BITS) // max(1, passed)  # to agree when as much time has passed again
        self._slew = max(-_MOST_SLEW, min(_MOST_SLEW, wanted))
        was_set = before - self._ahead
        return was_set if abs(was_set) >= STEP_NS else 0
