"""What a member knows of the others, and when it is its turn to try to own the shard.

Rules of this file:
- this only decides who *tries*: the log decides who owns. A wrong view costs a takeover, never a message;
- an owner that was heard, and at whose address nobody listens any more, has ended: its turn is over at once;
- one that is silent, or was never heard, is given up when the log has not moved for `SILENCE` and a bit that differs by
  member. So an owner that does not hear all others writes to the log, also when it has nothing to say;
- the member that has read furthest tries first, the others `TURN` later, one after the other.

No I/O. Time is an argument, in nanoseconds.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

SILENCE: Final = 3_000_000_000
TURN: Final = 500_000_000


class Beat(NamedTuple):
    """What a member says of itself."""

    owns: bool
    epoch: int
    position: int
    tries: bool = False
    """Whether it is about to own the shard"""


@dataclass(slots=True)
class _Other:
    heard_at: int
    beat: Beat | None = None
    """None: it has not said anything yet"""
    gone: bool = False
    took_at: int | None = None
    """When it said that it tries, or its barrier was read"""


class View:
    """The members by their numbers, seen by one of them."""

    def __init__(self, me: int, members: int, now: int, jitter: int = 0) -> None:
        """`jitter` is added to the time after which an owner is given up."""
        self._me = me
        self._patience = SILENCE + jitter
        self._others = {number: _Other(now) for number in range(members) if number != me}
        self._moved_at = now
        self._free_since: int | None = None

    def heard(self, member: int, beat: Beat, now: int) -> None:
        other = self._others[member]
        if beat.tries and not (other.beat is not None and other.beat.tries):
            other.took_at = now
        other.heard_at, other.beat, other.gone = now, beat, False

    def gone(self, member: int) -> None:
        """Nobody listens at its address."""
        self._others[member].gone = True

    def reached(self, member: int, now: int) -> None:
        """Somebody listens at its address again, and has said nothing yet."""
        other = self._others[member]
        if other.gone:
            other.heard_at, other.beat, other.gone = now, None, False

    def took(self, member: int, now: int) -> None:
        """Its barrier counts. It may take a moment until it says that it owns the shard."""
        if member in self._others:
            self._others[member].took_at = now

    def log_moved(self, now: int) -> None:
        """Somebody has written to the log: there is an owner."""
        self._moved_at = now

    def owner(self, now: int) -> int | None:
        """Who says that it owns the shard, as far as it can be asked."""
        owners = [
            (other.beat.epoch, number)
            for number, other in self._others.items()
            if other.beat is not None and other.beat.owns and self._lives(other, now)
        ]
        return max(owners, default=(0, None))[1]

    def misses_some(self, now: int) -> bool:
        """Whether there is a member of which nothing is heard, and which may hear nothing of this one."""
        return any(other.beat is None or not self._lives(other, now) for other in self._others.values())

    def should_try(self, position: int, now: int) -> bool:
        """Whether it is the turn of this member, which has read so far."""
        if self._is_owned(now):
            self._free_since = None
            return False
        if self._free_since is None:
            self._free_since = now
        return now >= self._free_since + TURN * self._before(position, now)

    def furthest(self, now: int) -> int | None:
        """Who is to own the shard when this member goes."""
        lives = self._standbys(now)
        return max(lives, key=lambda each: (each[0], -each[1]))[1] if lives else None

    def _is_owned(self, now: int) -> bool:
        """Whether somebody owns the shard, or may for all that is known."""
        others = self._others.values()
        may_live = any(
            other.beat is None or (other.beat.owns and not other.gone)
            for other in others
            if not self._lives(other, now)
        )
        if may_live and now - self._moved_at < self._patience:
            return True
        return any(
            other.beat is None or other.beat.owns or self._just_took(other, now)
            for other in others
            if self._lives(other, now)
        )

    def _just_took(self, other: _Other, now: int) -> bool:
        return other.took_at is not None and now - other.took_at < self._patience

    def _before(self, position: int, now: int) -> int:
        """How many try before this member."""
        return sum((-at, number) < (-position, self._me) for at, number in self._standbys(now))

    def _standbys(self, now: int) -> list[tuple[int, int]]:
        return [
            (other.beat.position, number)
            for number, other in self._others.items()
            if other.beat is not None and not other.beat.owns and self._lives(other, now)
        ]

    def _lives(self, other: _Other, now: int) -> bool:
        return not other.gone and now - other.heard_at < self._patience
