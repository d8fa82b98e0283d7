"""How many bytes of requests are worked on at a time.

What is decoded takes several times its size, and whatever is being worked on is done before what comes later. Those who
have had least go first (fair queueing by a virtual time): a small request never waits for the large ones of others.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from fila.wire.memory_quota import Account


class WorkLimit:
    """Requests that are decoded and not answered yet: so many bytes at a time, or a single one."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._active = 0
        self._clock = 0
        self._numbers = count()
        self._waiting: list[tuple[int, int, int, Callable[[], bool]]] = []

    def enter(self, account: Account, size: int, admitted: Callable[[], bool]) -> bool:
        """Whether a request may be decoded now. If not, `admitted` is called when it may; it says whether the request
        is still wanted.
        """
        if not self._waiting and self._fits(size):
            self._active += size
            return True
        account.virtual_time = max(self._clock, account.virtual_time) + size
        heappush(self._waiting, (account.virtual_time, next(self._numbers), size, admitted))
        return False

    def leave(self, size: int) -> None:
        self._active -= size
        while self._waiting and self._fits(self._waiting[0][2]):
            self._clock, _, size, admitted = heappop(self._waiting)
            self._active += size
            if not admitted():
                self._active -= size

    def _fits(self, size: int) -> bool:
        return not self._active or self._active + size <= self._max
