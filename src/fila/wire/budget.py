"""How much of what costs the other side nothing a peer may send."""


class Budget:
    """So many at once, and so many a second from then on. Time is an argument."""

    __slots__ = ("_at", "_burst", "_left", "_per_s")

    def __init__(self, burst: int, per_s: float) -> None:
        self._burst = float(burst)
        self._per_s = per_s
        self._left = float(burst)
        self._at: float | None = None

    def spend(self, now: float) -> bool:
        """Whether there was something left to spend."""
        if self._at is not None:
            self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
