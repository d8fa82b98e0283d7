"""Rebuilding the broker's memory from its store.

One pass over each family, in an order in which each finds what it needs: queues, then what is known of single messages
(attempts, leases, claims, delays), then the messages themselves, each going where its state says: into a grant, into
the schedule, or into its lane. What refers to nothing any more is removed at the end.
"""

import struct
from contextlib import suppress
from dataclasses import dataclass, field

from fila.broker.access import PREFIX, load_record
from fila.broker.queue import LARGE_BYTES, QueueState
from fila.broker.scripts import Scripting
from fila.broker.staging import batch_of
from fila.broker.state import BrokerState
from fila.config import AuditConfig, LimitsConfig
from fila.core.claims import Claim, Group, Part
from fila.core.dedup import NOWHERE
from fila.core.errors import InvalidArgument, StoreCorrupt, StoreFailed
from fila.core.fair_key import FairKey
from fila.core.lane import Lane
from fila.core.leases import Grant
from fila.core.throttle import ThrottleManager
from fila.core.transactions import Producer, Ranges, Transaction, in_turn
from fila.storage import codec, keys
from fila.storage.base import Batch, Family, Storage
from fila.storage.records import CommitRecord

CLOCK_KEY = b"clock"


@dataclass(slots=True)
class _Found:
    """What the store says of single messages, before the messages themselves are seen."""

    held: dict[int, tuple[Grant, int]] = field(default_factory=dict)
    """Sequence number -> (the latest grant that lists it, attempts at that time)"""
    due: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """Sequence number -> (when it is due, the key that says so)"""
    grants: list[tuple[str, Grant]] = field(default_factory=list)
    suspects: list[tuple[QueueState, Lane, int, int]] = field(default_factory=list)
    """Messages that are delivered alone: lane, sequence number, cost"""


def recover(
    store: Storage,
    node: int,
    limits: LimitsConfig,
    scripting: Scripting | None = None,
    audit: AuditConfig | None = None,
    throttles: ThrottleManager | None = None,
) -> BrokerState:
    """The broker's state as of the last durable write. `throttles` that are not only its own are given, without limits.

    Raises StoreCorrupt.
    """
    state = BrokerState(node, limits, scripting or Scripting(), audit, throttles)
    try:
        state.clock_mark = int.from_bytes(store.get(Family.DEFAULT, CLOCK_KEY) or b"", "big")
        state.sequence.last = state.clock_mark
        state.audit.load(store)
        _load_config(state, store)
        for _, value in store.scan(Family.QUEUES):
            record = codec.read_queue(value)
            state.add(QueueState(record, state.throttles, state.scripts.recompile(record)))
        cleanup = Batch()
        _load_attempts(state, store)
        _load_producers(state, store)
        _load_staged(state, store)
        found = _Found()
        _load_grants(state, store, found)
        _load_claims(state, store, found)
        _load_due(store, found)
        _load_messages(state, store, found)
        _drop_stale(found, cleanup)
    except (ValueError, LookupError, struct.error) as cause:
        raise StoreCorrupt("the store is damaged: it contains an entry that cannot be read") from cause
    if len(cleanup):
        with suppress(StoreFailed):  # what refers to nothing does no harm: a broker must start on a full disk too
            store.write(cleanup)
    return state


def _load_config(state: BrokerState, store: Storage) -> None:
    for key, value in store.scan(Family.STATE):
        name, end = keys.read_name(key, 0)
        if end != len(key):
            raise ValueError("a key has the wrong length")
        if name.startswith(PREFIX):
            load_record(state.access, name, codec.read_setting(value))
            continue
        try:
            # A bucket is full when it is new, and so it is full at any later time: there is no clock yet.
            state.apply_setting(name, codec.read_setting(value), now=0)
        except InvalidArgument as cause:
            raise StoreCorrupt("a runtime setting cannot be read") from cause


def _load_attempts(state: BrokerState, store: Storage) -> None:
    for key, value in store.scan(Family.ATTEMPTS):
        queue, seq, number = keys.read_attempt(key)
        if not number:
            codec.read_death(value)
            if queue in state.queues:  # its attempts follow, if it has any: one that was dropped may have none
                state.queues[queue].attempts[seq] = 0
        elif queue in state.queues:
            state.queues[queue].attempts[seq] = number  # the last of them is the highest
            state.queues[queue].note_suspicion(seq, codec.read_attempt(value).kind)


def _load_producers(state: BrokerState, store: Storage) -> None:
    heard: dict[str, tuple[tuple[int, int], int]] = {}
    for key, value in store.scan(Family.DEDUP):
        if key.startswith(keys.KEY_MARK):
            queue, dedup_key = keys.read_dedup(key)
            if queue in state.queues:
                state.queues[queue].dedup.add(dedup_key, *codec.read_dedup(value))
        else:
            producer, sequence = keys.read_producer_batch(key)
            record = codec.read_produced(value)
            heard[producer] = max(heard.get(producer, (NOWHERE, 0)), ((record.epoch, sequence), record.heard_at))
    for producer, (place, at) in sorted(heard.items(), key=lambda item: item[1][1]):
        state.producers.advance(producer, place, at)
    for queue_state in state.queues.values():
        queue_state.dedup.sort()


def _load_staged(state: BrokerState, store: Storage) -> None:
    """What is staged, and what was committed and is still to be enqueued."""
    known = state.transactions
    commits: dict[str, CommitRecord] = {}
    for key, value in store.scan(Family.STAGED, keys.STAGED_PRODUCER, keys.after(keys.STAGED_PRODUCER)):
        name, commit = keys.read_staging_producer(key), codec.read_commit(value)
        known.producers[name] = Producer(name, commit.last, commit.heard_at, moved=frozenset(commit.moved))
        commits[name] = commit
    for key, value in store.scan(Family.STAGED, keys.STAGED_CALL, keys.after(keys.STAGED_CALL)):
        name, number, part, sequence = keys.read_staged(key)
        record = codec.read_staged(value)
        producer = known.producers.setdefault(name, Producer(name))
        transaction = producer.open.setdefault(number, Transaction(number, 0))
        staged = batch_of(record)
        transaction.add((part, sequence), staged, record.expires_at)
        state.hold(staged, 1)
        known.size += record.size
    for producer in known.producers.values():
        committed = producer.open.pop(producer.last, None)
        if committed is not None:
            publishing = in_turn(committed.parts(), commits[producer.name].parts, producer.moved)
            producer.publishing.extend(publishing)


def _load_grants(state: BrokerState, store: Storage, found: _Found) -> None:
    # In the order of their numbers, so that a later grant of a message replaces an earlier one.
    for key, value in store.scan(Family.LEASES):
        queue, number = keys.read_grant(key)
        record = codec.read_grant(value)
        grant = Grant(number, record.token, 0, record.expires_at, listed=len(record.members))
        state.sequence.last = max(state.sequence.last, number)
        found.grants.append((queue, grant))
        for seq in record.members:
            found.held[seq] = (grant, record.attempts.get(seq, 0))


def _load_claims(state: BrokerState, store: Storage, found: _Found) -> None:
    """Groups, each followed by its claims, and these by their parts. A claim says when its grants end."""
    grants = {(queue, grant.number): grant for queue, grant in found.grants}
    for key, value in store.scan(Family.CLAIMS):
        name, group_name, numbers = keys.read_claim(key)
        queue = state.queues[name]
        if not numbers:
            record = codec.read_group(value)
            queue.groups[group_name] = Group(group_name, record.epoch, record.floor, record.last)
            continue
        group = queue.groups[group_name]
        if len(numbers) == 1:
            made = codec.read_claim(value)
            acked = numbers[0] <= group.floor
            claim = Claim(group, numbers[0], made.token, made.made_at, made.expires_at, made.sealed, acked)
            group.claims[claim.number] = claim
        else:
            claim = group.claims[numbers[0]]
            number, seqs = codec.read_claim_part(value)
            grant = grants.get((name, number))
            claim.parts.append(Part(numbers[1], seqs, grant))
            if grant is not None:
                grant.claim, grant.expires_at = claim, claim.expires_at


def _load_due(store: Storage, found: _Found) -> None:
    for key, _ in store.scan(Family.SCHEDULED):
        due, _, seq = keys.read_scheduled(key)
        found.due[seq] = (due, key)


def _load_messages(state: BrokerState, store: Storage, found: _Found) -> None:
    lanes: dict[keys.KeyParts, _LoadedLane] = {}
    here: dict[bytes, _LoadedLane] = {}  # the lanes of the queue whose messages come, by the ends of their keys
    before: bytes | None = None
    apart = found.held.keys() | found.due.keys()
    apart |= {seq for queue in state.queues.values() for seq in queue.suspicion}
    hidden = Ranges(state.transactions.hidden())
    for key, value in store.scan(Family.MESSAGES):
        if before is None or not key.startswith(before):
            (before, _), _ = keys.read_message(key)
            here = {}
        at = len(before)
        seq = int.from_bytes(key[at : at + keys.SEQ_BYTES], "big")
        if hidden.starts and seq in hidden:
            continue
        behind = key[at + keys.SEQ_BYTES :]
        lane = here.get(behind)
        if lane is None:
            lane = here[behind] = lanes[before, behind] = _LoadedLane(*_find_lane(state, (before, behind)))
        if not value.startswith(lane.head):
            lane.read_head(value)
        if len(value) > LARGE_BYTES:
            lane.queue.large.add(seq)
        if lane.measured:
            lane.queue.capacity.measure(seq, len(value) - len(lane.head))
        if seq in apart:
            lane.put_apart(seq, found)
        else:
            lane.ready.append(seq)
        lane.last = seq
    newest: dict[FairKey, int] = {}
    for lane in lanes.values():
        lane.weigh(newest)
    for lane in lanes.values():
        lane.take_in()
    for queue, home, seq, cost in found.suspects:  # after the weights of their keys are known
        queue.come_back(home, seq, cost)
    state.sequence.last = max(state.sequence.last, *newest.values(), 0)
    for name, grant in found.grants:
        if grant.members:
            listed = grant.listed
            state.queues[name].leases.add(grant)
            grant.listed = listed
    for queue in state.queues.values():
        queue.capacity.messages = queue.size


class _LoadedLane:
    """The messages of one priority of a key, gathered so that the many ordinary ones are taken in together.

    Those that share weight, cost and throttles follow each other; `head` is the beginning of their records.
    """

    __slots__ = ("cost", "head", "lane", "lanes", "last", "measured", "queue", "ready", "runs", "weight")

    def __init__(self, queue: QueueState, lane: Lane) -> None:
        self.queue = queue
        self.measured = queue.capacity.sizes is not None
        self.lane = lane
        self.lanes: dict[tuple[str, ...], Lane] = {(): lane}
        """By throttle keys"""
        self.head = b"\x00"  # begins no record
        self.weight = self.cost = 1
        self.last = 0
        self.ready: list[int] = []
        self.runs: list[tuple[Lane, int, list[int]]] = []
        """Messages that are ready, with their lane and cost"""

    def read_head(self, record: bytes) -> None:
        self.head = codec.head_of(record)
        self.weight, self.cost, throttle_keys = codec.read_head(self.head)
        if self.queue.record.source:  # dead letters keep their throttle keys, but nothing holds them up
            throttle_keys = ()
        lane = self.lanes.get(throttle_keys)
        if lane is None:
            throttles = self.queue.throttles.find_all(throttle_keys)
            lane = Lane(self.lane.key, self.lane.priority, self.lane.key_parts, throttles)
            self.lanes[throttle_keys] = lane
        self.lane = lane
        self.ready = []
        self.runs.append((lane, self.cost, self.ready))

    def put_apart(self, seq: int, found: _Found) -> None:
        """Put a message that is not in a lane where it belongs: its grant, the schedule, or the suspects."""
        message = (self.lane, seq, self.cost)
        grant, attempts = found.held.get(seq, (None, 0))
        if grant is not None and attempts == self.queue.attempts.get(seq, 0):
            grant.members[seq] = message
            for throttle in self.lane.throttles:
                throttle.in_flight += 1
        elif seq in found.due:
            self.queue.schedule.add((found.due.pop(seq)[0], seq, self.lane, self.cost))
        elif seq in self.queue.suspicion:
            found.suspects.append((self.queue, *message))
            return
        else:
            self.ready.append(seq)
            return
        self.lane.key.outside_lanes += 1

    def weigh(self, newest: dict[FairKey, int]) -> None:
        """The weight of a key is that of its newest message."""
        key = self.lane.key
        if self.last > newest.get(key, 0):
            newest[key] = self.last
            key.weight = self.weight
            cache = self.queue.lane_cache
            cache.weighted = cache.weighted or self.weight != 1

    def take_in(self) -> None:
        for lane, cost, seqs in self.runs:
            if cost == 1:
                self.queue.make_many_ready(lane, seqs)
            else:
                for seq in seqs:
                    self.queue.make_ready(lane, seq, cost)


def _find_lane(state: BrokerState, key_parts: keys.KeyParts) -> tuple[QueueState, Lane]:
    name, key_name, priority = keys.read_lane(keys.joined(key_parts))
    queue = state.queues.get(name)
    if queue is None:
        raise StoreCorrupt("the store is damaged: it contains messages of an unknown queue")
    owner = queue.keys.get(key_name)
    if owner is None:
        owner = queue.keys[key_name] = FairKey(key_name)
    return queue, Lane(owner, priority, key_parts)


def _drop_stale(found: _Found, cleanup: Batch) -> None:
    for name, grant in found.grants:
        if not grant.members:
            cleanup.delete(Family.LEASES, keys.grant(name, grant.number))
            cleanup.delete(Family.LEASE_EXPIRY, keys.grant_expiry(grant.expires_at, name, grant.number))
    for _, key in found.due.values():
        cleanup.delete(Family.SCHEDULED, key)
