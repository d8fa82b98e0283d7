"""Claims: making them, acking them, extending them, and dropping their group.

A claim may be larger than what one tick may do, so it is made in parts, each leased by a grant of its own, and each
durable with the claim's record. Whoever asks for a claim that is only partly made goes on making it, also after a
crash. An ack is one write, of the group's new floor; the messages leave the store after it, a part in a tick.

All commands here have a tick to themselves. Removing what was acked is a chore, which shares its tick with others.
Each change of memory is an effect of its own (`GroupChange`, `ClaimPart`, `ClaimChange`, `ClaimEnd`, `PartRemoval`,
`ClaimExtension`, `GroupDrop`), since a command makes several of them or only some.
"""

from array import array
from dataclasses import dataclass, replace

from fila.broker.ack import plan_done
from fila.broker.admission import check_name
from fila.broker.commands import AckClaims, DropGroup, ExtendClaims, MakeClaim
from fila.broker.delivery import Delivery
from fila.broker.grants import put_grant
from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.broker.tick import Chore, Effect, Tick
from fila.config import LimitsConfig
from fila.core.claims import Claim, ClaimState, Group, Part
from fila.core.consumers import Consumer
from fila.core.errors import (
    BrokerError,
    ClaimLost,
    Fenced,
    InvalidArgument,
    LimitExceeded,
    LimitReached,
    NotNow,
    TooFarAhead,
    quoted,
)
from fila.core.ids import NS_PER_MS
from fila.core.leases import Grant
from fila.storage import codec, keys
from fila.storage.base import Family
from fila.storage.records import ClaimRecord, GroupRecord

DEFAULT_LEASE_MS = 900_000
"""Long enough for a reader to be restarted: what expires is read twice."""

PART_MESSAGES = 2_000
"""How many messages of a claim are leased, or removed, in one tick"""


@dataclass(frozen=True, slots=True)
class Making:
    """How far a claim is."""

    claim: Claim | None
    """None when there is nothing to claim"""
    done: bool


@dataclass(frozen=True, slots=True)
class AckedClaims:
    messages: int
    expired: list[int]
    """Claims whose messages are not acked: they went back to the queue"""


@dataclass(frozen=True, slots=True)
class ExtendedClaims:
    extended: list[int]
    expired: list[int]


def check_group(name: str, limits: LimitsConfig) -> None:
    """Raises InvalidArgument for a name that no group may have."""
    if not name:
        raise InvalidArgument("a group must have a name")
    check_name("the name of a group", name, limits)


def find_claim(queue: QueueState, name: str, number: int) -> Claim:
    """A claim of which somebody was told and which was not acked. Raises ClaimLost."""
    group = queue.groups.get(name) or Group(name)
    claim = group.claims.get(number)
    if number <= group.floor:
        raise _acked(group, number)
    if claim is None:
        raise _never_made(group, number)
    if not claim.sealed:
        raise NotNow(f"claim {number} of group {quoted(name)} is not complete yet; call Claim again")
    return claim


def plan_claim(tick: Tick, command: MakeClaim) -> Making:
    """Make a claim, or a part of it, or find the one that there is.

    Raises QueueNotFound, InvalidArgument, LimitExceeded, Fenced or ClaimLost.
    """
    queue, limits = tick.state.queue(command.queue), tick.state.limits
    if command.most > limits.max_claim_messages:
        raise LimitExceeded(f"max_messages is {command.most}, {limits.max_claim_messages} are allowed")
    lease_ns = _lease_ns(command.lease_ms, limits)
    group = _enter(queue, command, limits, tick.now)
    if command.after < group.floor:
        raise _acked(group, command.after + 1)
    if command.after > group.last:
        raise _never_made(group, command.after)
    claim = group.claims.get(command.after + 1)
    if claim is not None and (claim.sealed or claim.state(tick.due_by) is ClaimState.EXPIRED):
        _plan_change(tick, queue, claim, sealed=True)
        _plan_group(tick, queue, group, command.epoch)
        return Making(claim, done=True)
    if claim is None:
        if group.last - group.floor >= limits.max_claims:
            raise LimitReached(
                f"group {quoted(group.name)} has {limits.max_claims} claims that are not acked; ack some first"
            )
        claim = Claim(group, group.last + 1, 0, tick.now, tick.now + lease_ns)
    return _plan_part(tick, queue, claim, command)


@dataclass(slots=True)
class SuspectsCleared(Effect):
    """A claim is of many messages, and where no consumer is, nobody else would try suspects alone."""

    queue: QueueState

    def commit(self, _: Tick) -> None:
        self.queue.clear_suspects()


@dataclass(slots=True)
class ClaimPart(Effect):
    """Some more messages of a claim."""

    claim: Claim
    part: Part
    token: int

    def commit(self, _: Tick) -> None:
        claim = self.claim
        claim.token = self.token
        claim.parts.append(self.part)
        claim.group.claims[claim.number] = claim


def _plan_part(tick: Tick, queue: QueueState, claim: Claim, command: MakeClaim) -> Making:
    state, group = tick.state, claim.group
    if len(queue.suspects) and not len(queue.consumers):
        tick.add(SuspectsCleared(queue))
    wanted = max(0, (command.most or state.limits.max_claim_messages) - claim.size)
    limit = 0 if queue.record.paused else max(0, min(wanted, PART_MESSAGES, queue.ready))
    selection = queue.drr.select(limit, tick.now, command.cap or None)
    delivery = Delivery(queue, selection)
    tick.add(delivery)
    chosen = len(selection.messages)
    done = chosen in (wanted, queue.ready) or (chosen < limit and not selection.unfinished) or queue.record.paused
    if not chosen and not claim.parts:
        _plan_group(tick, queue, group, command.epoch)
        return Making(None, done)
    if chosen:
        number = state.sequence.reserve(tick.now, 1)
        members = {message[1]: message for message in selection.messages}
        claim_token = claim.token or number
        grant = Grant(number, claim_token, 0, claim.expires_at, members, claim=claim)
        part = Part(claim.size, array("Q", members), grant)
        put_grant(tick.batch, queue, grant)
        key = keys.claim_part(queue.name, group.name, claim.number, part.first)
        tick.batch.put(Family.CLAIMS, key, codec.claim_part(number, part.seqs))
        delivery.grants.append((Consumer(0, 0, lambda _: None, lambda _: None), grant))
        tick.add(ClaimPart(claim, part, claim_token))
    else:
        claim_token = claim.token
    _plan_change(tick, queue, claim, sealed=done, token=claim_token)
    _plan_group(tick, queue, group, command.epoch, last=claim.number)
    return Making(claim, done)


@dataclass(slots=True)
class ClaimChange(Effect):
    """Whether a claim is whole, so that readers may be told of it."""

    claim: Claim
    sealed: bool

    def commit(self, _: Tick) -> None:
        self.claim.sealed = self.sealed


def _plan_change(tick: Tick, queue: QueueState, claim: Claim, *, sealed: bool, token: int = 0) -> None:
    """Write a claim's record, unless it is sealed already."""
    if claim.sealed:
        return
    record = ClaimRecord(token or claim.token, claim.made_at, claim.expires_at, sealed)
    tick.batch.put(Family.CLAIMS, keys.claim(queue.name, claim.group.name, claim.number), codec.claim(record))
    tick.add(ClaimChange(claim, sealed))


@dataclass(slots=True)
class ClaimEnd(Effect):
    """Claims that are acked, and those that had expired before."""

    queue: QueueState
    acked: list[Claim]
    expired: list[Claim]

    def commit(self, tick: Tick) -> None:
        for claim in self.expired:
            del claim.group.claims[claim.number]
        for claim in self.acked:
            claim.acked = True
            tick.chores.append(ClaimRemoval(self.queue, claim))


def plan_ack_claims(tick: Tick, command: AckClaims) -> AckedClaims:
    """Raise the floor of a group. Raises QueueNotFound, InvalidArgument, Fenced, ClaimLost or NotNow."""
    queue = tick.state.queue(command.queue)
    group = _enter(queue, command, tick.state.limits, tick.now)
    if command.upto > group.last:
        raise _never_made(group, command.upto)
    ended = [claim for number, claim in group.claims.items() if group.floor < number <= command.upto]
    expired = [claim for claim in ended if claim.state(tick.due_by) is ClaimState.EXPIRED]
    acked = [claim for claim in ended if claim not in expired]
    for claim in acked:
        if not claim.sealed:
            raise NotNow(
                f"claim {claim.number} of group {quoted(group.name)} is not complete yet, so it cannot be acked"
            )
    for claim in expired:
        start = keys.claim(queue.name, group.name, claim.number)
        tick.batch.delete_range(Family.CLAIMS, start, keys.after(start))
    _plan_group(tick, queue, group, command.epoch, floor=max(command.upto, group.floor))
    tick.add(ClaimEnd(queue, acked, expired))
    return AckedClaims(sum(claim.held for claim in acked), [claim.number for claim in expired])


@dataclass(slots=True)
class PartRemoval(Effect):
    """A part of an acked claim that is gone, and with the last one the claim."""

    claim: Claim
    part: Part | None
    last: bool

    def commit(self, _: Tick) -> None:
        if self.part is not None:
            self.claim.parts.remove(self.part)
        if self.last:
            self.claim.group.claims.pop(self.claim.number, None)


@dataclass(slots=True)
class ClaimRemoval(Chore):
    """Takes the messages of an acked claim out of the store, a part in a tick."""

    queue: QueueState
    claim: Claim

    def plan(self, tick: Tick) -> bool:
        queue, claim = self.queue, self.claim
        if tick.state.queues.get(queue.name) is not queue:
            return True
        part = claim.parts[0] if claim.parts else None
        if part is not None:
            if part.grant is not None and part.grant.members:
                plan_done(tick, queue, part.grant, list(part.grant.members))
            key = keys.claim_part(queue.name, claim.group.name, claim.number, part.first)
            tick.batch.delete(Family.CLAIMS, key)
        last = len(claim.parts) <= 1
        if last:
            tick.batch.delete(Family.CLAIMS, keys.claim(queue.name, claim.group.name, claim.number))
        tick.add(PartRemoval(claim, part, last))
        return last


def unfinished_removals(state: BrokerState) -> list[Chore]:
    """Acked claims whose messages were not all removed when the broker was stopped."""
    groups = [(queue, group) for queue in state.queues.values() for group in queue.groups.values()]
    return [ClaimRemoval(queue, claim) for queue, group in groups for claim in group.claims.values() if claim.acked]


@dataclass(slots=True)
class ClaimExtension(Effect):
    """Claims that end later, or earlier."""

    queue: QueueState
    claims: list[Claim]
    expires_at: int

    def commit(self, tick: Tick) -> None:
        for claim in self.claims:
            claim.expires_at = self.expires_at
        self.queue.leases.move_end([grant for claim in self.claims for grant in claim.grants()], self.expires_at)
        tick.state.wakeups.look_up_due(tick.state.queues.values())


def plan_extend_claims(tick: Tick, command: ExtendClaims) -> ExtendedClaims:
    """Let all open claims of a group end later, or earlier. Raises QueueNotFound, InvalidArgument or Fenced."""
    state = tick.state
    queue = state.queue(command.queue)
    expires_at = tick.now + _lease_ns(command.lease_ms, state.limits)
    group = _enter(queue, command, state.limits, tick.now)
    open_claims = group.open(tick.due_by)
    for claim in open_claims:
        record = ClaimRecord(claim.token, claim.made_at, expires_at, claim.sealed)
        tick.batch.put(Family.CLAIMS, keys.claim(queue.name, group.name, claim.number), codec.claim(record))
        for grant in claim.grants():
            old = keys.grant_expiry(grant.expires_at, queue.name, grant.number)
            tick.batch.delete(Family.LEASE_EXPIRY, old)
            if expires_at < grant.expires_at:  # a record names no later end: the claim's may be gone before the grant's
                put_grant(tick.batch, queue, replace(grant, expires_at=expires_at))
            else:
                new = keys.grant_expiry(expires_at, queue.name, grant.number)
                tick.batch.put(Family.LEASE_EXPIRY, new, b"")
    if group.name in queue.groups:
        _plan_group(tick, queue, group, command.epoch)
    tick.add(ClaimExtension(queue, open_claims, expires_at))
    expired = [claim.number for claim in group.claims.values() if claim.state(tick.due_by) is ClaimState.EXPIRED]
    return ExtendedClaims([claim.number for claim in open_claims], expired)


@dataclass(slots=True)
class GroupDrop(Effect):
    queue: QueueState
    name: str

    def commit(self, _: Tick) -> None:
        self.queue.groups.pop(self.name, None)


def plan_drop_group(tick: Tick, command: DropGroup) -> None:
    """Forget a group. Raises QueueNotFound, or NotNow while it holds messages."""
    queue = tick.state.queue(command.queue)
    group = queue.groups.get(command.group)
    if group is None:
        return
    if any(claim.acked for claim in group.claims.values()) or group.open(tick.due_by):
        raise NotNow(f"group {quoted(group.name)} holds messages; ack its claims, or let them expire")
    start = keys.group(queue.name, group.name)
    tick.batch.delete_range(Family.CLAIMS, start, keys.after(start))
    tick.add(GroupDrop(queue, group.name))


def _enter(queue: QueueState, command: MakeClaim | AckClaims | ExtendClaims, limits: LimitsConfig, now: int) -> Group:
    """The group, which may be new. Raises Fenced, TooFarAhead, InvalidArgument or LimitExceeded."""
    name, epoch = command.group, command.epoch
    group = queue.groups.get(name)
    if group is None:
        check_group(name, limits)
        if len(queue.groups) >= limits.max_groups:
            raise LimitReached(f"queue {quoted(queue.name)} has {limits.max_groups} groups, which is the limit")
        group = Group(name)
    if epoch < group.epoch:
        raise Fenced(
            f"epoch {epoch} of group {quoted(name)} is fenced: epoch {group.epoch} reads queue {quoted(queue.name)} now"
        )
    if epoch > group.furthest_epoch(now):
        raise TooFarAhead(
            f"epoch {epoch} of group {quoted(name)} is too far ahead: the last one is {group.epoch}; use that number "
            "plus 1, or the start time, at most in nanoseconds since 1970"
        )
    return group


@dataclass(slots=True)
class GroupChange(Effect):
    """Where a group stands from now on."""

    queue: QueueState
    group: Group
    record: GroupRecord

    def commit(self, _: Tick) -> None:
        group, record = self.group, self.record
        self.queue.groups[group.name] = group
        group.epoch, group.floor, group.last = record.epoch, record.floor, record.last


def _plan_group(
    tick: Tick, queue: QueueState, group: Group, epoch: int, *, floor: int | None = None, last: int | None = None
) -> None:
    """Write where a group stands, unless it stands there already."""
    now = GroupRecord(group.epoch, group.floor, group.last)
    then = GroupRecord(epoch, group.floor if floor is None else floor, group.last if last is None else last)
    if then == now and group.name in queue.groups:
        return
    tick.batch.put(Family.CLAIMS, keys.group(queue.name, group.name), codec.group(then))
    tick.add(GroupChange(queue, group, then))


def _lease_ns(lease_ms: int, limits: LimitsConfig) -> int:
    if not 0 <= lease_ms <= limits.max_claim_lease_ms:
        raise InvalidArgument(f"lease_ms must be from 0 to {limits.max_claim_lease_ms}, not {lease_ms}")
    return (lease_ms or min(DEFAULT_LEASE_MS, limits.max_claim_lease_ms)) * NS_PER_MS


def _acked(group: Group, number: int) -> BrokerError:
    return ClaimLost(
        f"claim {number} of group {quoted(group.name)} was acked already: the floor of the group is {group.floor}. "
        f"Your checkpoint is older than that; continue at claim {group.floor + 1}"
    )


def _never_made(group: Group, number: int) -> BrokerError:
    return ClaimLost(
        f"claim {number} of group {quoted(group.name)} does not exist: the last one is {group.last}. "
        f"Your checkpoint is of another group, or the queue was deleted since; continue at claim {group.last + 1}"
    )
