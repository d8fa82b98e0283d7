"""Extensions: leases that end later, or earlier.

Extensions are planned after all commands of a tick: whoever acks a message meanwhile is not refused because its lease
moved. Of several extensions of one message the last one holds. Messages that share lease and new end share a new grant
under the same token.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from fila.broker.admission import check_delay
from fila.broker.commands import ExtendGroup, Failure
from fila.broker.grants import put_grant
from fila.broker.queue import QueueState
from fila.broker.tick import Effect, Order, Tick
from fila.core.errors import ECHO, BrokerError, InvalidArgument, MessageNotFound, quoted
from fila.core.ids import NS_PER_MS
from fila.core.leases import Grant

_Move = tuple[QueueState, Grant, int]
"""A message's queue, the grant that holds it, and when its lease ends from now on."""


@dataclass(slots=True)
class Extensions(Effect):
    """All leases that are extended in a tick."""

    order: ClassVar[Order] = Order.EXTENSION

    asked: list[tuple[ExtendGroup, list[Failure]]] = field(default_factory=list)
    """What was asked, and where to say what failed"""
    grants: list[tuple[QueueState, Grant]] = field(default_factory=list)
    """The new ones"""

    def commit(self, tick: Tick) -> None:
        for queue, grant in self.grants:
            queue.leases.add(grant)
            tick.state.wakeups.ends(grant.expires_at)


def ask_extension(tick: Tick, group: ExtendGroup, failures: list[Failure]) -> None:
    """Have leases extended when all commands of the tick are planned; what fails is added to `failures`."""
    tick.one(Extensions).asked.append((group, failures))


def plan_extensions(tick: Tick) -> None:
    """Extend what was asked for in this tick."""
    for extensions in tick.all(Extensions):
        moves: dict[int, _Move] = {}
        for group, failures in extensions.asked:
            failures.extend(_find_moves(tick, group, moves))
        _plan_moves(tick, extensions, moves)


def _plan_moves(tick: Tick, extensions: Extensions, moves: dict[int, _Move]) -> None:
    grants: dict[tuple[str, int, int, int], Grant] = {}
    for seq, (queue, grant, expires_at) in moves.items():
        lease = (queue.name, grant.token, grant.consumer, expires_at)
        if lease not in grants:
            number = tick.state.sequence.reserve(tick.now, 1)
            grants[lease] = Grant(number, grant.token, grant.consumer, expires_at)
            extensions.grants.append((queue, grants[lease]))
        grants[lease].members[seq] = grant.members[seq]
        tick.leases.drop(queue, grant, 1)
    for queue, grant in extensions.grants:
        put_grant(tick.batch, queue, grant)


def _find_moves(tick: Tick, group: ExtendGroup, moves: dict[int, _Move]) -> list[Failure]:
    """Note which messages of a group get a new end. Returns those that do not."""
    try:
        queue = tick.state.queue(group.queue)
        check_delay(group.extend_ms, tick.state.limits, "extend_ms")
    except BrokerError as error:
        return [Failure(group.queue, message_id, error) for message_id in group.message_ids]
    failures: list[Failure] = []
    expires_at = tick.now + (group.extend_ms * NS_PER_MS or queue.visibility_ns)
    for message_id, seq, grant in tick.leases.holders(tick.state.ids, queue, group):
        if grant is None:
            failures.append(Failure(queue.name, message_id, MessageNotFound(message_id, queue.name)))
        elif grant.claim is not None:
            of = f"claim {grant.claim.number} of group {quoted(grant.claim.group.name)}"
            refusal = InvalidArgument(f"message {message_id[:ECHO]} is held by {of}: extend the claims of the group")
            failures.append(Failure(queue.name, message_id, refusal))
        else:
            moves[seq] = (queue, grant, expires_at)
    return failures
