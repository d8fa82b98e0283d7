"""Which of the messages that were sent to a consumer its application was handed.

A consumer reads ahead: most of what it holds waits in its process and was seen by nobody. It hands messages to its
application in the order in which they were sent, so that one number says how far it is. The number comes late: a
message beyond it may have been handed, one up to it was.

Rules of this file:
- numbers that do not grow, or that count more than was sent, change nothing for what was not sent;
- leases of one consumer are handed in the order of their tokens, and a message keeps its token while it is held.
"""

from collections import deque
from collections.abc import Iterable, Iterator


class Hands:
    """How far one consumer is. Keeps what was sent and not handed, and what was handed of one lease."""

    __slots__ = ("_handed", "_of_token", "_sent", "_token", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, list[int]]] = deque()
        """What was sent and not handed: the token of a lease, and messages in order"""
        self._sent = 0
        self._handed = 0
        self._token = 0
        """The lease up to which messages were handed: of leases before it all were, of later ones none"""
        self._of_token: list[list[int]] = []
        """What was handed of the lease `_token`"""

    def send(self, token: int, seqs: list[int]) -> None:
        """Messages of a lease were sent."""
        self._waiting.append((token, seqs))
        self._sent += len(seqs)

    def report(self, count: int) -> None:
        """So many messages were handed since the beginning."""
        more = min(count, self._sent) - self._handed
        while more > 0:
            token, seqs = self._waiting.popleft()
            if token != self._token:
                self._token, self._of_token = token, []
            self._of_token.append(seqs[:more])
            self._handed += min(more, len(seqs))
            if len(seqs) > more:
                self._waiting.appendleft((token, seqs[more:]))
            more -= len(seqs)

    def among(self, token: int, seqs: Iterable[int]) -> set[int]:
        """Which of the messages of a lease were handed."""
        if token < self._token:
            return set(seqs)
        if token > self._token:
            return set()
        return set(seqs).intersection(*[{seq for some in self._of_token for seq in some}])

    def waiting(self) -> Iterator[int]:
        """What was sent and not handed, in order."""
        for _, seqs in self._waiting:
            yield from seqs
