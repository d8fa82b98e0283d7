"""What a server holds in memory for one stream, counted in the account of its connection.

| part | bytes of |
|---|---|
| `reserved` | a request that is larger than the flow-control window: not received yet, but there is memory for it |
| `in_progress` | the request that was read last and is not answered |
| `promised` | a response that is going to be made |
| `unsent` | responses that wait for the peer's window |

Besides them `held` counts the call itself and the requests that were received and not read. `held` is the sum of all.
"""

from collections.abc import Callable

from fila.wire.memory_quota import Account, Reservation


class StreamMemory:
    """Owns the counts of one stream. Every change reaches the account at once."""

    __slots__ = ("account", "for_response", "held", "in_progress", "promised", "reservation", "reserved", "unsent")

    def __init__(self, account: Account, size: int) -> None:
        self.account = account
        self.held = 0
        self.reserved = 0
        self.in_progress = 0
        self.promised = 0
        self.unsent = 0
        #: What it waits for, and whether that is a response.
        self.reservation: Reservation | None = None
        self.for_response = False
        self._hold(size)

    # A request.

    def received(self, size: int) -> None:
        """Bytes came, for some of which memory was reserved."""
        if self.reserved:
            known = min(self.reserved, size)
            self.reserved -= known
            size -= known
            if not self.reserved:
                self.account.reservations -= 1
        if size:
            self._hold(size)

    def begin_request(self, size: int) -> None:
        """A request was read; the one before it is done."""
        self.finish_request()
        self.in_progress = size

    def finish_request(self) -> None:
        """The request that was read last is answered."""
        self._free(self.in_progress)
        self.in_progress = 0

    def reserve_request(self, size: int, now: float, granted: Callable[[], None]) -> bool:
        """Whether there is memory for the rest of a request. If not, `granted` is called when there is."""
        return self._reserve(size, now, granted, for_response=False)

    def grant_request(self, missing: int) -> int:
        """Use the reservation for a request of which so many bytes are missing now. Returns for how many it is used."""
        size = self._granted()
        self.reserved = min(size, missing)
        self._free(size - self.reserved)
        if not self.reserved:
            self.account.reservations -= 1
        return self.reserved

    # A response.

    def reserve_response(self, size: int, now: float, granted: Callable[[], None]) -> bool:
        """Whether there is memory to make a response. If not, `granted` is called when there is."""
        if self.promised:
            return True
        if self.reservation is not None or not self._reserve(size, now, granted, for_response=True):
            return False
        self.grant_response()
        return True

    def grant_response(self) -> None:
        self.promised = self._granted()

    def finish_response(self) -> None:
        """The response is made, or will not be."""
        if self.promised:
            self.account.reservations -= 1
            self._free(self.promised)
            self.promised = 0

    def queue(self, size: int) -> None:
        """A response waits for the peer's window."""
        self.unsent += size
        self._hold(size)

    def sent_all(self) -> None:
        self._free(self.unsent)
        self.unsent = 0

    def close(self) -> None:
        """Nothing is held any more."""
        if self.reservation is not None:
            self.account.quota.cancel(self.reservation)
            self.reservation = None
        self.account.reservations -= bool(self.reserved) + bool(self.promised)
        self.reserved = self.promised = self.in_progress = self.unsent = 0
        self._free(self.held)

    def _reserve(self, size: int, now: float, granted: Callable[[], None], *, for_response: bool) -> bool:
        self.reservation = Reservation(self.account, size, now, granted)
        self.for_response = for_response
        return self.account.quota.reserve(self.reservation)

    def _granted(self) -> int:
        """The account has taken the bytes of the reservation; they are those of this stream now."""
        assert self.reservation is not None
        size, self.reservation = self.reservation.size, None
        self.held += size
        return size

    def _hold(self, size: int) -> None:
        self.held += size
        self.account.take(size)

    def _free(self, size: int) -> None:
        if size:
            self.held -= size
            self.account.give(size)
