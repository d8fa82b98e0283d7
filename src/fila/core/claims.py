"""Claims: batches of messages with a number, for readers that must be able to read the same again.

A *group* reads a queue in numbered claims: 1, 2, 3, ... Each is one lease of messages that the scheduler chose. Whoever
works for the group needs to remember one number, and finds the same messages in the same order under it until it acks.

Rules of this file:
- claims of a group are numbered without gaps; all up to `floor` are done, none above `last` was ever made;
- a claim's messages and their positions never change: a message that leaves the claim leaves a hole;
- a claim ends when its time is over, all of it at that moment, whether or not its messages are back in the queue yet;
- an acked claim does not end: what it still holds is on its way out of the store.

A claim is made, and acked, in parts that fit into a tick each. Nobody is told of one before it is `sealed`.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from fila.core.lane import Taken
from fila.core.leases import Grant

EPOCH_AHEAD = 86_400 * 10**9
"""How far an epoch may be ahead of the broker's clock, in nanoseconds since 1970: a day"""
EPOCH_STEPS = 1_000
"""How far it may be ahead of the last one, whatever that is: there is always a next one"""


class ClaimState(Enum):
    OPEN = "open"
    EXPIRED = "expired"
    """It holds nothing any more: its messages came back and will be in a later claim."""
    ACKED = "acked"


@dataclass(slots=True)
class Part:
    """Messages of a claim that were leased in one tick."""

    first: int
    """The position of its first message in the claim"""
    seqs: "array[int]"
    grant: Grant | None
    """None when none of them is held any more"""

    def position(self, seq: int) -> int:
        """Where one of its messages stands in the claim."""
        return self.first + self.seqs.index(seq)


@dataclass(slots=True, eq=False)
class Claim:
    """One claim of a group."""

    group: "Group"
    number: int
    token: int
    made_at: int
    expires_at: int
    sealed: bool = False
    acked: bool = False
    parts: list[Part] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many messages it was made of."""
        return self.parts[-1].first + len(self.parts[-1].seqs) if self.parts else 0

    @property
    def held(self) -> int:
        """How many messages it still holds."""
        return sum(len(grant.members) for grant in self.grants())

    def grants(self) -> list[Grant]:
        """Those that hold something."""
        return [part.grant for part in self.parts if part.grant is not None and part.grant.members]

    def state(self, now: int) -> ClaimState:
        if self.acked:
            return ClaimState.ACKED
        return ClaimState.OPEN if now < self.expires_at else ClaimState.EXPIRED

    def slice(self, low: int, high: int) -> Iterator[tuple[Part, list[Taken]]]:
        """What it still holds of the positions from `low` up to, not including, `high`, a part at a time."""
        for part in list(self.parts):
            if part.grant is not None:
                held = part.grant.members
                seqs = part.seqs[max(0, low - part.first) : max(0, high - part.first)]
                yield part, [held[seq] for seq in seqs if seq in held]


@dataclass(slots=True, eq=False)
class Group:
    """Who reads a queue in claims."""

    name: str
    epoch: int = 0
    """The highest that was seen; whoever comes with a lower one is fenced off."""
    floor: int = 0
    last: int = 0
    claims: dict[int, Claim] = field(default_factory=dict)
    """Those above `floor`, and those that are still on their way out."""

    def furthest_epoch(self, now: int) -> int:
        """The highest epoch that its next reader may have: the time, or a little more than the last one."""
        return max(self.epoch + EPOCH_STEPS, now + EPOCH_AHEAD)

    def open(self, now: int) -> list[Claim]:
        """Claims that can be read, acked and extended."""
        return [claim for claim in self.claims.values() if claim.state(now) is ClaimState.OPEN]
