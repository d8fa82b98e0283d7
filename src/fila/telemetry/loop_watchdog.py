"""The watchdog of the event loop: measures its turns and logs slow ones.

A turn is what runs between two moments at which the event loop can look for other work (`fila.wire.loop_turns`): all
clients wait for its end. Each is counted by its kind and length; one that takes too long is logged with what it did.

| kind | a turn of it |
|---|---|
| `tick` | one tick of the engine, with its write, its deliveries and its answers |
| `receive` | what one read from a connection led to: frames, requests of streams, responses that have room again |
| `send` | what a connection that takes bytes again led to |
| `call` | one step of a call's handler, from one wait to the next |
| `look` | one step of a look for metrics |
"""

from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise
from time import monotonic_ns

import structlog

from fila.metrics.metric import Distribution, Samples
from fila.telemetry import catalog

log = structlog.get_logger(__name__)

KINDS = ("tick", "receive", "send", "call", "look")
BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""In seconds."""
assert all(low < high for low, high in pairwise(BOUNDS))

NS_PER_S = 1_000_000_000
_BOUNDS_NS = [int(bound * NS_PER_S) for bound in BOUNDS]
_SHORT_NS = _BOUNDS_NS[0]

WINDOW_NS = 60 * NS_PER_S
"""The longest turn is that of the last one to two windows."""
LOG_EVERY_NS = NS_PER_S
"""Slow turns that follow each other faster are counted and not logged."""


class _Tally:
    """What is known of the turns of one kind."""

    __slots__ = ("before", "counts", "longest", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0
        self.longest = 0
        """Of this window,"""
        self.before = 0
        """and of the window before"""


class LoopWatchdog:
    """Counts the turns of one event loop."""

    def __init__(self, slow_ms: int, clock: Callable[[], int] = monotonic_ns) -> None:
        """LoopWatchdog that take `slow_ms` or longer are logged; 0 logs none."""
        self._clock = clock
        self._slow_ns = slow_ms * 1_000_000
        self._tallies = {kind: _Tally() for kind in KINDS}
        self._window_ends = clock() + WINDOW_NS
        self._quiet_until = 0
        self._unlogged = 0

    def ended(self, kind: str, began: int, describe: Callable[[], str]) -> None:
        """A turn has ended. `describe` says what it did, without anything that a user sent."""
        now = self._clock()
        took = now - began
        tally = self._tallies[kind]
        tally.total += took
        tally.counts[0 if took <= _SHORT_NS else bisect_left(_BOUNDS_NS, took)] += 1
        if now >= self._window_ends:
            self._begin_window(now)
        tally.longest = max(tally.longest, took)
        if took >= self._slow_ns > 0:
            self._log(kind, took, now, describe)

    def collect(self, samples: Samples) -> None:
        """Add the samples of all kinds of turns."""
        now = self._clock()
        if now >= self._window_ends:
            self._begin_window(now)
        for kind, tally in self._tallies.items():
            spread = Distribution(BOUNDS, tuple(tally.counts), tally.total / NS_PER_S)
            samples[catalog.TURNS_TAKEN].append(((kind,), spread))
            longest = max(tally.longest, tally.before) / NS_PER_S
            samples[catalog.LONGEST_TURN].append(((kind,), longest))

    def _begin_window(self, now: int) -> None:
        skipped = now >= self._window_ends + WINDOW_NS
        self._window_ends = now + WINDOW_NS
        for tally in self._tallies.values():
            tally.before, tally.longest = (0 if skipped else tally.longest), 0

    def _log(self, kind: str, took: int, now: int, describe: Callable[[], str]) -> None:
        if now < self._quiet_until:
            self._unlogged += 1
            return
        log.warning(
            "slow turn of the event loop",
            kind=kind,
            ms=took // 1_000_000,
            doing=describe(),
            slow_turns_not_logged=self._unlogged,
        )
        self._quiet_until = now + LOG_EVERY_NS
        self._unlogged = 0
