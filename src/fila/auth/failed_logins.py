"""Failed logins of one address are answered later and later.

A key cannot be guessed, but trying costs the server time and fills its log. Only what fails waits: others behind the
same address, with a key that is right, do not notice.
"""

from ipaddress import IPv6Network, ip_address
from typing import Final

FIRST_S: Final = 0.05
LONGEST_S: Final = 5.0
FORGET_S: Final = 60.0
MAX_ADDRESSES: Final = 10_000


class FailedLogins:
    """Counts failures by address, and by network of 64 bits for IPv6. Time is an argument, in seconds."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, float]] = {}
        """How many, and when the last one was; those that failed last stand last"""

    def fail(self, address: str, now: float) -> tuple[int, float]:
        """One more. Returns how many in a row, and for how many seconds its answer waits."""
        where = _network(address)
        count, last = self._counts.pop(where, (0, now))
        count = 1 if now - last > FORGET_S else count + 1
        self._counts[where] = count, now
        if len(self._counts) > MAX_ADDRESSES:
            del self._counts[next(iter(self._counts))]
        return count, min(LONGEST_S, FIRST_S * 2 ** min(count - 1, 10))

    def __len__(self) -> int:
        return len(self._counts)


def _network(address: str) -> str:
    """Whoever has one IPv6 address has 2**64 of them."""
    try:
        found = ip_address(address)
    except ValueError:
        return ""
    return address if found.version == 4 else str(IPv6Network((int(found), 64), strict=False))
