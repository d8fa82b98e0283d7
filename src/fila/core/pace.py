"""How fast something happens, as of the last few seconds."""

SPAN = 5_000_000_000
"""Nanoseconds that are counted together."""


class Pace:
    """Events a second over the present span and the one before it. Costs two numbers, whatever the rate."""

    __slots__ = ("_before", "_began", "_count")

    def __init__(self) -> None:
        self._began = 0
        self._count = 0
        self._before = 0

    def add(self, count: int, now: int) -> None:
        self._turn(now)
        self._count += count

    def per_second(self, now: int) -> float:
        """0 when nothing happened lately."""
        self._turn(now)
        inside = now - self._began
        # Of the span before, as much as is needed to look back over one whole span.
        return (self._count + self._before * (SPAN - inside) / SPAN) * 1e9 / SPAN

    def _turn(self, now: int) -> None:
        passed = now - self._began
        if passed >= SPAN:
            self._before = self._count if passed < 2 * SPAN else 0
            self._count = 0
            self._began = now - passed % SPAN
        elif passed < 0:  # the clock was set back
            self._began, self._before = now, 0
