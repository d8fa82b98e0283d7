"""Why a message is still waiting: everything that holds it up, in the order in which it must pass.

Nothing here changes anything. The scheduler itself is asked what it would deliver next, by letting it choose and
putting its choice back, so that what is said here and what happens then cannot differ. Where that would be too much to
look at, the answer is an estimate and says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from fila.broker.queue import QueueState
from fila.core.claims import Claim
from fila.core.errors import NoSuchMessage, quoted
from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.core.lifecycle import State
from fila.core.throttle import Throttle

LOOK_AHEAD = 2000
"""How many deliveries the scheduler is asked for. What comes later is estimated."""

COSTS_LOOKED_AT = 10_000
"""Messages of whose key or whose rivals the costs are added up. What lies behind them counts as much on average."""

STRIDE = 5000
"""How much is looked at in one go while a message is searched for."""


class Cause(NamedTuple):
    """What follows from a reason of this kind."""

    timed: bool = False
    """It ends by itself, at a known time and not earlier."""
    endless: bool = False
    """When it ends depends on somebody: there is no estimate."""


CAUSES: dict[str, Cause] = {
    "leased": Cause(endless=True),
    "delayed": Cause(timed=True),
    "paused": Cause(endless=True),
    "no_consumer": Cause(endless=True),
    "no_credit": Cause(),
    "isolated": Cause(endless=True),
    "in_flight_cap": Cause(endless=True),
    "throttled": Cause(timed=True),
    "behind_own_key": Cause(),
    "turn": Cause(),
}
"""By the codes of reasons. A limit of a throttle key has `throttle.KEY` as its setting."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that holds a message up."""

    code: str
    """One of `CAUSES`"""
    text: str
    until: int | None = None
    """When it ends, if that is a matter of time."""
    subject: str = ""
    """The throttle key, or the consumer."""
    setting: str = ""
    """What an operator would change."""
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one message waits, and until when."""

    seq: int
    state: State
    fairness_key: str
    priority: int
    cost: int
    attempts: int
    throttle_keys: tuple[str, ...]
    reasons: list[Reason]
    ahead: int
    """Deliveries of this queue before it."""
    exact: bool
    """Whether `ahead` is counted rather than estimated."""
    not_before: int
    """It is not delivered earlier, unless settings change."""
    estimate: int | None
    """When it is delivered if all goes on as it does. None if that depends on somebody who is not there."""


@dataclass(frozen=True, slots=True)
class Found:
    """A message and where it is."""

    seq: int
    lane: Lane
    cost: int
    state: State
    until: int = 0
    """When its delay or its lease ends."""
    consumer: int = 0
    claim: Claim | None = None
    alone: bool = False
    """Whether it waits to be delivered alone."""


def search(queue: QueueState, seq: int) -> Iterator[Found | None]:
    """Look for a message wherever it may be. Yields None when the caller may want to do something else meanwhile."""
    grant = queue.leases.find(seq)
    if grant is not None:
        lane, _, cost = grant.members[seq]
        yield Found(seq, lane, cost, State.LEASED, grant.expires_at, grant.consumer, grant.claim)
        return
    for step, (due, delayed, lane, cost) in enumerate(queue.schedule.all()):
        if delayed == seq:
            yield Found(seq, lane, cost, State.DELAYED, due)
            return
        if not step % STRIDE:
            yield None
    suspect = queue.suspects.lane_of(seq)
    if suspect is not None:
        yield Found(seq, suspect.home, suspect.key.cost(seq), State.READY, alone=True)
        return
    for step, key in enumerate(list(queue.keys.values())):
        for lane in key.lanes.values():
            if lane.holds(seq):
                yield Found(seq, lane, key.cost(seq), State.READY)
                return
        if not step % STRIDE:
            yield None


def first_of(queue: QueueState, key_name: str) -> Found:
    """The message of a key that is delivered next among its own. Raises NoSuchMessage."""
    key = queue.keys.get(key_name)
    lanes = [lane for lane in key.lanes.values() if len(lane)] if key else []
    if key is None or not lanes:
        for seq, lane, cost in queue.suspects.all():
            if lane.key.name == key_name:
                return Found(seq, lane, cost, State.READY, alone=True)
        raise NoSuchMessage(f"no message of fairness key {quoted(key_name)} waits in queue {quoted(queue.name)}")
    open_lanes = [lane for lane in lanes if lane.gate is None]
    lane = min(open_lanes or lanes, key=lambda lane: (lane.priority, lane.oldest))
    return Found(lane.oldest, lane, key.cost(lane.oldest), State.READY)


def next_of(queue: QueueState, now: int) -> Found:
    """The message that is delivered next. Raises NoSuchMessage."""
    selection = queue.drr.select(1, now)
    queue.drr.rollback(selection)
    if selection.messages:
        lane, seq, cost = selection.messages[0]
        return Found(seq, lane, cost, State.READY)
    waiting = [key for key in queue.keys.values() if key.ready]
    if waiting:
        return first_of(queue, min(waiting, key=lambda key: key.oldest).name)
    for seq, lane, cost in queue.suspects.all():
        return Found(seq, lane, cost, State.READY, alone=True)
    raise NoSuchMessage(f"no message waits in queue {quoted(queue.name)}")


def explain(queue: QueueState, found: Found, now: int) -> Explanation:
    """Why a message waits."""
    waits = found.state is State.READY and not found.alone
    throttles = found.lane.throttles_of(found.seq) if waits else found.lane.throttles
    reasons = [*_state_reasons(found, now), *_queue_reasons(queue)]
    if found.alone:
        reasons.append(_isolation_reason(queue))
    reasons += [reason for throttle in throttles for reason in _throttle_reasons(throttle, found.cost, now)]
    ahead = _Ahead(0, 0, exact=True)
    if found.alone:
        before = [cost for seq, _, cost in queue.suspects.all() if seq < found.seq]
        ahead = _Ahead(len(before), sum(before), exact=False)
    elif found.state is not State.LEASED:
        ahead = _ahead(queue, found, now)
        reasons += _turn_reasons(queue, found, ahead)
    not_before = max([now, *(reason.until for reason in reasons if reason.until and CAUSES[reason.code].timed)])
    return Explanation(
        seq=found.seq,
        state=found.state,
        fairness_key=found.lane.key.name,
        priority=found.lane.priority,
        cost=found.cost,
        attempts=queue.attempts.get(found.seq, 0),
        throttle_keys=tuple(throttle.name for throttle in throttles),
        reasons=reasons,
        ahead=ahead.messages,
        exact=ahead.exact,
        not_before=not_before,
        estimate=_estimate(queue, found, throttles, reasons, ahead, not_before, now),
    )


NEVER = 1 << 64
"""No sequence number is as high."""


def _state_reasons(found: Found, now: int) -> Iterator[Reason]:
    seconds = max(0, found.until - now) / 1e9
    if found.state is State.LEASED:
        yield _lease_reason(found, seconds)
    elif found.state is State.DELAYED:
        yield Reason("delayed", f"its delay ends in {seconds:.3g} s", found.until, "", "delay_ms", {"seconds": seconds})


def _lease_reason(found: Found, seconds: float) -> Reason:
    subject, setting = str(found.consumer), "visibility_timeout_ms"
    who = f"consumer {found.consumer}" if found.consumer else "a consumer from before the last restart"
    if found.claim is not None:
        subject, setting = found.claim.group.name, "lease_ms"
        who = f"claim {found.claim.number} of group {quoted(subject)}"
        if found.claim.acked:
            return Reason("leased", f"{who} was acked: it is being removed", None, subject, "", {})
    text = f"{who} holds it for another {seconds:.3g} s, unless it settles or extends"
    return Reason("leased", text, found.until, subject, setting, {"seconds": seconds})


def _queue_reasons(queue: QueueState) -> Iterator[Reason]:
    if queue.record.paused:
        yield Reason("paused", f"queue {quoted(queue.name)} is paused", setting="paused")
    consumers = queue.consumers.all()
    if not consumers:
        yield Reason("no_consumer", "nobody consumes the queue", numbers={"consumers": 0})
    elif not queue.consumers.has_credit:
        held = sum(consumer.in_flight for consumer in consumers)
        text = f"all {len(consumers)} consumers hold as much as they may ({held} messages)"
        numbers: dict[str, float] = {"consumers": len(consumers), "in_flight": held}
        yield Reason("no_credit", text, setting="max_in_flight", numbers=numbers)


def _isolation_reason(queue: QueueState) -> Reason:
    trying = sum(consumer.trying for consumer in queue.consumers.all())
    text = (
        "a consumer was lost while it held this message, so it is delivered alone: to a consumer that holds nothing "
        f"({len(queue.suspects)} such messages wait, {trying} are being tried)"
    )
    return Reason("isolated", text, numbers={"suspects": len(queue.suspects), "trying": trying})


def _throttle_reasons(throttle: Throttle, cost: int, now: int) -> Iterator[Reason]:
    setting = f"throttle.{throttle.name}"
    if throttle.away:
        yield Reason("throttled", f"{quoted(throttle.name)} is with another worker now", None, throttle.name, setting)
    elif throttle.cap is not None and throttle.in_flight >= throttle.cap:
        text = f"{throttle.in_flight} messages of {quoted(throttle.name)} are in flight, {throttle.cap} are allowed"
        numbers: dict[str, float] = {"in_flight": throttle.in_flight, "max_in_flight": throttle.cap}
        yield Reason("in_flight_cap", text, None, throttle.name, setting, numbers)
    bucket = throttle.bucket
    if bucket is not None and not bucket.holds(cost, now):
        at = bucket.ready_at(cost, now)
        tokens = bucket.tokens(now)
        have = f"{quoted(throttle.name)} has {tokens:.3g} tokens, the message costs {cost}"
        text = f"{have}; enough tokens in {(at - now) / 1e9:.3g} s"
        yield Reason("throttled", text, at, throttle.name, setting, {"tokens": tokens, "cost": cost})


def _turn_reasons(queue: QueueState, found: Found, ahead: "_Ahead") -> Iterator[Reason]:
    own = sum(count for _, count in _own_ahead(found))
    if own:
        text = f"{own} messages of its own key go first"
        yield Reason("behind_own_key", text, subject=found.lane.key.name, setting="priority", numbers={"messages": own})
    keys = _keys_before(queue, found.lane.key)
    if keys:
        about = "" if ahead.exact else "about "
        text = f"it is the turn of {keys} other keys first ({about}{ahead.messages} deliveries before it in all)"
        yield Reason("turn", text, setting="weight", numbers={"keys": keys, "deliveries": ahead.messages})


class _Ahead(NamedTuple):
    """Deliveries of the queue that come first, what they cost, and whether that is certain."""

    messages: int
    cost: float
    exact: bool


def _ahead(queue: QueueState, found: Found, now: int) -> _Ahead:
    selection = queue.drr.select(min(LOOK_AHEAD, queue.ready), now)
    queue.drr.rollback(selection)
    for position, (_, seq, _) in enumerate(selection.messages):
        if seq == found.seq:
            return _Ahead(position, sum(cost for _, _, cost in selection.messages[:position]), exact=True)
    key, quantum = found.lane.key, queue.drr.quantum
    own = _own_ahead(found)
    messages = sum(count for _, count in own)
    cost = sum(_cost_of(lane, count, COSTS_LOOKED_AT) for lane, count in own)
    rounds = ceil((cost + found.cost) / (key.weight * quantum))
    sample = max(1, COSTS_LOOKED_AT // len(queue.keys))
    for other in queue.keys.values():
        if other is key or not other.ready:
            continue
        whole = sum(_cost_of(lane, len(lane), sample) for lane in other.lanes.values())
        spent = min(whole, rounds * other.weight * quantum)
        cost += spent
        messages += ceil(other.ready * spent / whole)
    return _Ahead(messages, cost, exact=False)


def _own_ahead(found: Found) -> list[tuple[Lane, int]]:
    """How many messages of the same key go first, by lane."""
    key, lane = found.lane.key, found.lane
    ahead: list[tuple[Lane, int]] = []
    for other in key.lanes.values():
        if other.priority < lane.priority and other.gate is None:
            ahead.append((other, len(other)))
        elif other.priority == lane.priority and (other.gate is None or other.id == lane.id):
            ahead.append((other, other.older(found.seq)))
    return ahead


def _cost_of(lane: Lane, count: int, sample: int) -> float:
    """What the oldest messages of a lane cost, by the first so many of them."""
    costs = lane.key.special.costs
    if not costs or not count:
        return count
    seqs = lane.between(0, NEVER, min(count, sample))
    return sum([costs.get(seq, 1) for seq in seqs]) * (count / len(seqs))


def _keys_before(queue: QueueState, key: FairKey) -> int:
    """Keys with something to deliver that stand before this one."""
    count = 0
    for other in queue.drr.order():
        if other is key:
            break
        count += bool(other.ready)
    return count


def _estimate(
    queue: QueueState,
    found: Found,
    throttles: tuple[Throttle, ...],
    reasons: list[Reason],
    ahead: _Ahead,
    not_before: int,
    now: int,
) -> int | None:
    if any(CAUSES[reason.code].endless for reason in reasons):
        return None
    at = max([not_before, *(_through(throttle, found, now) for throttle in throttles)])
    credit = sum(free for _, free in queue.consumers.with_credit())
    if ahead.messages < credit:
        return at
    pace = queue.cost_pace.per_second(now)
    return max(at, now + round(ahead.cost / pace * 1e9)) if pace else None


def _through(throttle: Throttle, found: Found, now: int) -> int:
    """When a throttle has let everything of the same key pass that goes first, and this message."""
    if throttle.bucket is None:
        return now
    key = found.lane.key
    own = 0.0
    for lane in key.lanes.values():
        if throttle in lane.throttles and lane.priority <= found.lane.priority:
            count = len(lane) if lane.priority < found.lane.priority else lane.older(found.seq)
            own += _cost_of(lane, count, COSTS_LOOKED_AT)
    gate = found.lane.gate
    rivals = [*gate.keys] if gate is not None and gate.throttle is throttle else []
    others, sample = 0.0, max(1, COSTS_LOOKED_AT // max(1, len(rivals)))
    for rival in rivals:
        if rival is not key:
            lanes = [lane for lane in rival.lanes.values() if throttle in lane.throttles]
            theirs = sum(_cost_of(lane, len(lane), sample) for lane in lanes)
            others += min(theirs, (own + found.cost) * rival.weight / key.weight)
    return throttle.bucket.ready_after(ceil(own + others), found.cost, now)
