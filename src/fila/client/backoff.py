"""Exponential backoff with jitter: how long to wait before the next attempt."""

import random
from typing import Final

#: The longest pause that a broker can ask for: a wrong answer must not hold a client for hours.
ASKED_MOST_S: Final = 30.0


class Backoff:
    """Doubles from `first_s` to `most_s`. Jitter keeps clients from reconnecting at the same moment."""

    __slots__ = ("_first_s", "_most_s", "_next_s")

    def __init__(self, first_s: float = 0.02, most_s: float = 1.0) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._next_s = first_s

    def reset(self) -> None:
        self._next_s = self._first_s

    def next_wait_s(self, asked_s: float = 0.0) -> float:
        """`asked_s` is how long the broker asked to wait at least."""
        wait_s = self._next_s
        self._next_s = min(self._most_s, wait_s * 2)
        return max(wait_s * random.uniform(0.5, 1.0), min(asked_s, ASKED_MOST_S))
