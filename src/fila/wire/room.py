"""How many bytes a server holds for its peers: of requests that come, that are worked on, of responses not yet sent.

Rules of this file:
- Everything that a peer can make the server keep is taken from one room. Each connection has an account; the accounts
  of one address are a peer.
- **Whoever holds most gives way.** When the room, or a share of it, is used up, the call that holds most ends: of the
  connection that holds most, of the peer that holds most. Who holds little is never refused for what others hold.
- A request that is larger than the window of its stream gets room for all of it at once, or waits in line. What has
  begun can therefore be completed, and nobody waits for somebody who waits. Responses that have to be read from the
  store get their room before they are read.
- In line, those come first whose connection holds least. Who has waited for `PATIENCE_S` takes from those that hold
  more: a peer that asks for room and does not use it loses it as soon as somebody else needs it.

No I/O; time is an argument.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from operator import attrgetter
from typing import Final, Protocol

PATIENCE_S: Final = 1.0


class Holder(Protocol):
    """A connection, for which bytes are held."""

    def give_way(self) -> bool:
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

    __slots__ = ("held", "holder", "peer", "reservations", "room", "turn")

    def __init__(self, room: "Room", peer: Peer, holder: Holder) -> None:
        self.room = room
        self.peer = peer
        self.holder = holder
        self.held = 0
        #: Calls with room for what has not come yet.
        self.reservations = 0
        #: Where its last request stands in the order of the gate.
        self.turn = 0

    def take(self, size: int) -> None:
        """Hold so many bytes more. Look at `over` afterwards."""
        self.held += size
        self.peer.held += size
        room = self.room
        room.held += size
        room.peak = max(room.peak, room.held)

    def give(self, size: int) -> None:
        self.held -= size
        self.peer.held -= size
        self.room.held -= size
        if self.room.line:
            self.room.on_freed()

    @property
    def over(self) -> bool:
        """Whether a share is used up."""
        shares = self.room.shares
        return self.held > shares.connection or self.peer.held > shares.peer or self.room.held > shares.server


@dataclass(slots=True, eq=False)
class Waiting:
    """A call in line for room."""

    account: Account
    size: int
    since: float
    granted: Callable[[], None]


class Room:
    """All that one server holds."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self.held = 0
        self.peak = 0
        self.peers: dict[str, Peer] = {}
        #: Calls in line, of each connection in the order in which they came.
        self.line: dict[Account, deque[Waiting]] = {}
        #: Called when there may be room for those in line.
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
        self.line.pop(account, None)

    def relieve(self, account: Account) -> None:
        """End calls until no share is used up."""
        shares = self.shares
        while account.held > shares.connection and account.holder.give_way():
            pass
        while account.peer.held > shares.peer and _greediest(account.peer).holder.give_way():
            pass
        while self.held > shares.server and _greediest(self._greediest_peer()).holder.give_way():
            pass

    def reserve(self, waiting: Waiting) -> bool:
        """Have room for what a call is going to hold. If there is none now, it waits in line."""
        if not self.line and self._fits(waiting):
            self._grant(waiting)
            return True
        self.line.setdefault(waiting.account, deque()).append(waiting)
        self.on_freed()
        return False

    def leave_line(self, waiting: Waiting) -> None:
        """It is not wanted any more."""
        waiting.size = -1

    def serve_line(self, now: float) -> None:
        """Give room to those who wait, as far as there is some."""
        for account in sorted(self.line, key=attrgetter("held")):
            while (waiting := self._first_of(account)) is not None:
                if not self._fits(waiting) and now - waiting.since >= PATIENCE_S:
                    self._make_room(waiting)
                if not self._fits(waiting):
                    break
                self.line[account].popleft()
                self._grant(waiting)
                waiting.granted()

    def _first_of(self, account: Account) -> Waiting | None:
        """The first of a connection that is still wanted."""
        line = self.line.get(account)
        while line and line[0].size < 0:
            line.popleft()
        if not line:
            self.line.pop(account, None)
            return None
        return line[0]

    def _grant(self, waiting: Waiting) -> None:
        waiting.account.reservations += 1
        waiting.account.take(waiting.size)

    def _fits(self, waiting: Waiting) -> bool:
        """A connection may have one thing under way whatever it holds; more, if its share allows. A quarter of the
        room is left to what needs no line.
        """
        account, size, shares = waiting.account, waiting.size, self.shares
        if self.held and self.held + size > shares.server * 3 // 4:
            return False
        if account.reservations and account.held + size > shares.connection:
            return False
        return account.peer.held == account.held or account.peer.held + size <= shares.peer

    def _make_room(self, waiting: Waiting) -> None:
        """End calls of others that hold more, as long as there are such."""
        while not self._fits(waiting):
            peer = self._greediest_peer()
            account = _greediest(peer)
            less = account is not waiting.account and account.held > waiting.account.held + waiting.size
            if not less or not account.holder.give_way():
                return

    def _greediest_peer(self) -> Peer:
        return max(self.peers.values(), key=attrgetter("held"))


def _greediest(peer: Peer) -> Account:
    return max(peer.accounts, key=attrgetter("held"))


class Gate:
    """Requests that are decoded and not answered yet: so many bytes at a time, or a single one.

    What is decoded takes several times its size, and whatever is inside is done before what comes later. Outside, those
    go first who have had least: a small request never waits for the large ones of others.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._inside = 0
        self._clock = 0
        self._numbers = count()
        self._outside: list[tuple[int, int, int, Callable[[], bool]]] = []

    def enter(self, account: Account, size: int, admitted: Callable[[], bool]) -> bool:
        """Whether a request may be decoded now. If not, `admitted` is called when it may; it says whether the request
        is still wanted.
        """
        if not self._outside and self._fits(size):
            self._inside += size
            return True
        account.turn = max(self._clock, account.turn) + size
        heappush(self._outside, (account.turn, next(self._numbers), size, admitted))
        return False

    def leave(self, size: int) -> None:
        self._inside -= size
        while self._outside and self._fits(self._outside[0][2]):
            self._clock, _, size, admitted = heappop(self._outside)
            self._inside += size
            if not admitted():
                self._inside -= size

    def _fits(self, size: int) -> bool:
        return not self._inside or self._inside + size <= self._most


def _nothing() -> None:
    pass
