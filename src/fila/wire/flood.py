"""Flood protection: how much a peer may send of what costs it little and us something.

| limit | counts | burst | a second |
|---|---|---:|---:|
| `control` | SETTINGS, PING, empty DATA, PRIORITY, GOAWAY, acknowledgements of nothing | 200 | 50 |
| `resets` | RST_STREAM of the peer, requests that we refuse (rapid reset, CVE-2023-44487) | 2000 | 500 |
| `evictions` | calls that end because this connection holds too much memory | 200 | 20 |

A PING that follows what we sent is free: clients measure bandwidth with it. Going beyond a limit ends the connection
with GOAWAY(ENHANCE_YOUR_CALM).
"""

from fila.wire import frames
from fila.wire.frames import ConnectionFailed


class FloodLimit:
    """A token bucket: so many at once, and so many a second from then on. Time is an argument."""

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


class FloodGuard:
    """The limits of one connection. `now` is the time at which something last arrived."""

    __slots__ = ("_control", "_evictions", "_resets", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._control = FloodLimit(200, 50)
        self._resets = FloodLimit(2000, 500)
        self._evictions = FloodLimit(200, 20)

    def count_control(self, what: str) -> None:
        """Raises ConnectionFailed."""
        self._spend(self._control, what)

    def count_reset(self, what: str) -> None:
        """Raises ConnectionFailed."""
        self._spend(self._resets, what)

    def count_eviction(self, what: str) -> None:
        """Raises ConnectionFailed."""
        self._spend(self._evictions, what)

    def _spend(self, limit: FloodLimit, what: str) -> None:
        if not limit.spend(self.now):
            raise ConnectionFailed(frames.ENHANCE_YOUR_CALM, f"too many {what}")


class TrustedPeer(FloodGuard):
    """Of a connection between parts of one program: nothing is limited."""

    def _spend(self, limit: FloodLimit, what: str) -> None:
        pass
