"""What fairness keys had delivered that have no message any more.

A key is forgotten with its last message, so that keys of the past cost nothing. What it had delivered is remembered a
while longer, so that shares are told of all who got something, not only of those who still wait. Memory is bounded: of
the keys that emptied last, at least `KEPT` and at most twice as many. The others are told together.
"""

KEPT = 1000


class Drained:
    """Deliveries and last weight of keys that emptied, in two generations: the older goes when the younger is full."""

    __slots__ = ("_older", "_younger")

    def __init__(self) -> None:
        self._younger: dict[str, tuple[int, int]] = {}
        self._older: dict[str, tuple[int, int]] = {}

    def add(self, name: str, delivered: int, weight: int) -> None:
        """A key has emptied, perhaps not for the first time."""
        known = self._younger.get(name) or self._older.pop(name, None)
        self._younger[name] = (delivered + known[0] if known else delivered, weight)
        if len(self._younger) >= KEPT:
            self._older, self._younger = self._younger, {}

    def delivered(self, name: str) -> int:
        """What a key had delivered before it emptied the last time, as far as that is remembered."""
        known = self._younger.get(name) or self._older.get(name)
        return known[0] if known else 0

    def all(self) -> dict[str, tuple[int, int]]:
        """Deliveries and weight by key."""
        return {**self._older, **self._younger}
