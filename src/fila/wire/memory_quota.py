"""The memory quota: how many bytes a server holds for its peers, of requests and of responses that are not sent yet.

Rules of this file:
- Everything that a peer can make the server keep is taken from one quota. Each connection has an account; the accounts
  of one address are a peer.
- **Whoever holds most is evicted first.** When the quota, or a share of it, is exceeded, the call that holds most ends:
  of the connection that holds most, of the peer that holds most. Who holds little never loses a call to what others
  hold.
- A request that is larger than the flow-control window of its stream reserves memory for all of it, or waits in a
  queue. What has begun can therefore be completed, and nobody waits for somebody who waits. Responses that have to be
  read from the store reserve their memory before they are read.
- In the queue, those come first whose connection holds least. Who has waited for `PREEMPT_AFTER_S` evicts those that
  hold more: a peer that reserves memory and does not use it loses it as soon as somebody else needs it.

No I/O; time is an argument.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Protocol

PREEMPT_AFTER_S: Final = 1.0


class Holder(Protocol):
    """A connection, for which bytes are held."""

    def evict(self) -> bool:
        """End the call that holds most. Returns whether there was one."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How many bytes are held at most."""

    server: int = 64 << 20
    peer: int = 48 << 20
    connection: int = 24 << 20


class Peer:
    """The connections of one address."""

    __slots__ = ("accounts", "address", "held")

    def __init__(self, address: str) -> None:
        self.address = address
        self.held = 0
        self.accounts: set[Account] = set()


class Account:
    """What is held for one connection."""

    __slots__ = ("held", "holder", "peer", "quota", "reservations", "virtual_time")

    def __init__(self, quota: "MemoryQuota", peer: Peer, holder: Holder) -> None:
        self.quota = quota
        self.peer = peer
        self.holder = holder
        self.held = 0
        #: Calls with memory for what has not come yet.
        self.reservations = 0
        #: The order of its last request among those that wait to be decoded (`WorkLimit`).
        self.virtual_time = 0

    def take(self, size: int) -> None:
        """Hold so many bytes more. Look at `over` afterwards."""
        self.held += size
        self.peer.held += size
        quota = self.quota
        quota.held += size
        quota.peak = max(quota.peak, quota.held)

    def give(self, size: int) -> None:
        self.held -= size
        self.peer.held -= size
        self.quota.held -= size
        if self.quota.queue:
            self.quota.on_freed()

    @property
    def over(self) -> bool:
        """Whether a share is exceeded."""
        shares = self.quota.shares
        return self.held > shares.connection or self.peer.held > shares.peer or self.quota.held > shares.server


@dataclass(slots=True, eq=False)
class Reservation:
    """Memory that a call asks for."""

    account: Account
    size: int
    since: float
    granted: Callable[[], None]


class MemoryQuota:
    """All that one server holds."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self.held = 0
        self.peak = 0
        self.peers: dict[str, Peer] = {}
        #: Reservations that wait, of each connection in the order in which they came.
        self.queue: dict[Account, deque[Reservation]] = {}
        #: Called when there may be memory for those that wait.
        self.on_freed: Callable[[], None] = _nothing

    def open(self, address: str, holder: Holder) -> Account:
        peer = self.peers.get(address)
        if peer is None:
            peer = self.peers[address] = Peer(address)
        account = Account(self, peer, holder)
        peer.accounts.add(account)
        return account

    def close(self, account: Account) -> None:
        account.give(account.held)
        peer = account.peer
        peer.accounts.discard(account)
        if not peer.accounts:
            self.peers.pop(peer.address, None)
        self.queue.pop(account, None)

    def relieve(self, account: Account) -> None:
        """Evict calls until no share is exceeded."""
        shares = self.shares
        while account.held > shares.connection and account.holder.evict():
            pass
        while account.peer.held > shares.peer and _largest(account.peer).holder.evict():
            pass
        while self.held > shares.server and _largest(self._largest_peer()).holder.evict():
            pass

    def reserve(self, reservation: Reservation) -> bool:
        """Whether there is memory for what a call is going to hold. If there is none now, it waits in the queue."""
        if not self.queue and self._fits(reservation):
            self._grant(reservation)
            return True
        self.queue.setdefault(reservation.account, deque()).append(reservation)
        self.on_freed()
        return False

    def cancel(self, reservation: Reservation) -> None:
        """It is not wanted any more."""
        reservation.size = -1

    def serve_queue(self, now: float) -> None:
        """Grant what waits, as far as there is memory."""
        for account in sorted(self.queue, key=attrgetter("held")):
            while (reservation := self._first_of(account)) is not None:
                if not self._fits(reservation) and now - reservation.since >= PREEMPT_AFTER_S:
                    self._preempt(reservation)
                if not self._fits(reservation):
                    break
                self.queue[account].popleft()
                self._grant(reservation)
                reservation.granted()

    def _first_of(self, account: Account) -> Reservation | None:
        """The first of a connection that is still wanted."""
        queue = self.queue.get(account)
        while queue and queue[0].size < 0:
            queue.popleft()
        if not queue:
            self.queue.pop(account, None)
            return None
        return queue[0]

    def _grant(self, reservation: Reservation) -> None:
        reservation.account.reservations += 1
        reservation.account.take(reservation.size)

    def _fits(self, reservation: Reservation) -> bool:
        """A connection may have one reservation whatever it holds; more, if its share allows. A quarter of the quota is
        left to what needs no reservation.
        """
        account, size, shares = reservation.account, reservation.size, self.shares
        if self.held and self.held + size > shares.server * 3 // 4:
            return False
        if account.reservations and account.held + size > shares.connection:
            return False
        return account.peer.held == account.held or account.peer.held + size <= shares.peer

    def _preempt(self, reservation: Reservation) -> None:
        """Evict calls of others that hold more, as long as there are such."""
        while not self._fits(reservation):
            account = _largest(self._largest_peer())
            if account is reservation.account or account.held <= reservation.account.held + reservation.size:
                return
            if not account.holder.evict():
                return

    def _largest_peer(self) -> Peer:
        return max(self.peers.values(), key=attrgetter("held"))


def _largest(peer: Peer) -> Account:
    return max(peer.accounts, key=attrgetter("held"))


def _nothing() -> None:
    pass
