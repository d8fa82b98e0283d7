"""What must not be enqueued twice: messages by a key of the user's, batches by their producer's count."""

from collections import OrderedDict
from collections.abc import Iterator

SEQUENCES_KEPT = 64
"""How many batches of a producer can be answered again. The SDK has at most 8 under way."""
SEQUENCE_JUMP = 1_000_000
"""By how much the count of a known producer may grow at once"""

Place = tuple[int, int]
"""A batch among all of its producer: the producer's incarnation (epoch), and the count in it"""
NOWHERE: Place = (0, 0)


class DedupKeys:
    """The dedup keys of one queue that are inside its window, those that end first in front."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, key: str, now: int) -> int | None:
        """The sequence number of the message that has this key, if its time is not over."""
        seq, expires_at = self._by_key.get(key, (0, 0))
        return seq if expires_at > now else None

    def add(self, key: str, seq: int, expires_at: int) -> None:
        """Remember a key, also one whose time was over."""
        self._by_key[key] = (seq, expires_at)
        self._by_key.move_to_end(key)

    def expired(self, now: int, limit: int) -> list[str]:
        """Keys whose time is over, oldest first. Changes nothing."""
        found: list[str] = []
        for key, (_, expires_at) in self._by_key.items():
            if expires_at > now or len(found) >= limit:
                break
            found.append(key)
        return found

    def forget(self, keys: list[str], now: int) -> None:
        """Drop keys whose time is over. One that was used anew since it was named stays."""
        for key in keys:
            if self._by_key.get(key, (0, now))[1] <= now:
                self._by_key.pop(key, None)

    def sort(self) -> None:
        """Put keys that were added in any order in the order of their end."""
        self._by_key = OrderedDict(sorted(self._by_key.items(), key=lambda item: item[1][1]))


class Producers:
    """The last batch of every producer that was heard of lately."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[Place, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last)

    def last(self, producer: str) -> Place:
        """A producer's last batch; `NOWHERE` for one that is not known."""
        return self._last.get(producer, (NOWHERE, 0))[0]

    def advance(self, producer: str, place: Place, now: int) -> None:
        self._last[producer] = (place, now)
        self._last.move_to_end(producer)

    def idle(self, since: int, keep: int) -> Iterator[str]:
        """Producers not heard of after `since`, and those in excess of `keep`, longest silent first."""
        excess = len(self._last) - keep
        for index, (producer, (_, heard)) in enumerate(self._last.items()):
            if heard > since and index >= excess:
                return
            yield producer

    def forget(self, producer: str) -> None:
        self._last.pop(producer, None)
