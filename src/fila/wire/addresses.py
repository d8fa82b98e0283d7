"""The addresses of one server or cluster: which to use now, and which next. Callable from any thread."""

from collections.abc import Sequence
from threading import Lock
from typing import Final

from fila.wire.address import split_address

MAX_ADDRESSES: Final = 64
"""How many are remembered. Those that a server has named go first, those that the program has given stay."""


class Addresses:
    """The one in use comes first, the others take over in turn when it cannot be reached."""

    def __init__(self, given: str | Sequence[str]) -> None:
        """`given` is one address, several with commas between them, or a list. Raises ValueError for none."""
        several = given.split(",") if isinstance(given, str) else given
        self._known = [address for each in several if (address := each.strip())]
        if not self._known:
            raise ValueError("an address of the form host:port is needed")
        self._given = len(self._known)
        self._current = self._known[0]
        self._lock = Lock()

    @property
    def current(self) -> str:
        return self._current

    def __len__(self) -> int:
        return len(self._known)

    def in_turn(self) -> list[str]:
        """All of them, beginning with the one in use."""
        with self._lock:
            at = self._known.index(self._current)
            return self._known[at:] + self._known[:at]

    def use(self, address: str) -> None:
        """This one is reached."""
        with self._lock:
            if address in self._known:
                self._current = address

    def leave(self, address: str) -> None:
        """This one cannot be reached, or goes away: if it is in use, the next one is from now on."""
        with self._lock:
            if address == self._current:
                at = self._known.index(address) + 1
                self._current = self._known[at % len(self._known)]

    def follow(self, address: str) -> bool:
        """A server has named another one: use that from now on. Returns False for what is no address."""
        try:
            split_address(address)
        except ValueError:
            return False
        with self._lock:
            if address not in self._known:
                if len(self._known) >= max(MAX_ADDRESSES, self._given + 1):
                    del self._known[self._given]
                self._known.append(address)
            self._current = address
        return True
