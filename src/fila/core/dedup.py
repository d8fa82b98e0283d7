"""What must not be enqueued twice: messages by a key of the user's, batches by their producer's count."""

from collections import OrderedDict, deque
from collections.abc import Iterator

SEQUENCES_KEPT = 64
"""How many batches of a producer can be answered again. The SDK has at most 8 under way."""


class DedupKeys:
    """The dedup keys of one queue that are inside its window."""

    __slots__ = ("_by_age", "_by_key")

    def __init__(self) -> None:
        self._by_key: dict[str, tuple[int, int]] = {}
        self._by_age: deque[tuple[int, str]] = deque()

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, key: str, now: int) -> int | None:
        """The sequence number of the message that has this key, if its time is not over."""
        seq, expires_at = self._by_key.get(key, (0, 0))
        return seq if expires_at > now else None

    def add(self, key: str, seq: int, expires_at: int) -> None:
        self._by_key[key] = (seq, expires_at)
        self._by_age.append((expires_at, key))

    def expired(self, now: int, limit: int) -> list[str]:
        """Keys whose time is over, oldest first. Changes nothing."""
        found: list[str] = []
        for expires_at, key in self._by_age:
            if expires_at > now or len(found) >= limit:
                break
            found.append(key)
        return found

    def forget(self, keys: list[str]) -> None:
        """Drop keys that `expired` named, in its order. One that was used anew since stays."""
        for key in keys:
            expires_at, oldest = self._by_age.popleft()
            assert oldest == key
            if self._by_key.get(key, (0, -1))[1] == expires_at:
                del self._by_key[key]

    def sort(self) -> None:
        """Put keys that were added in any order in the order of their age."""
        self._by_age = deque(sorted(self._by_age))


class Producers:
    """The last batch of every producer that was heard of lately."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last)

    def last(self, producer: str) -> int:
        """The count of a producer's last batch; 0 for one that is not known."""
        return self._last.get(producer, (0, 0))[0]

    def advance(self, producer: str, sequence: int, now: int) -> None:
        self._last[producer] = (sequence, now)
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
