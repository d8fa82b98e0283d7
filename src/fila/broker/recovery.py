"""Rebuilding the broker's memory from its store.

One pass over each family, in an order in which each finds what it needs: queues, then what is known of single messages
(attempts, leases, delays), then the messages themselves, each going where its state says: into a grant, into the
schedule, or into its lane. What refers to nothing any more is removed at the end.
"""

import struct
from dataclasses import dataclass, field

from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.config import LimitsConfig
from fila.core.errors import StoreCorrupt
from fila.core.leases import Grant
from fila.core.pending import FairKey, Lane
from fila.storage import codec, keys
from fila.storage.base import Batch, Family, Storage

CLOCK_KEY = b"clock"


@dataclass(slots=True)
class _Found:
    """What the store says of single messages, before the messages themselves are seen."""

    held: dict[int, tuple[Grant, int]] = field(default_factory=dict)
    """Sequence number -> (the latest grant that lists it, attempts at that time)"""
    due: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """Sequence number -> (when it is due, the key that says so)"""
    grants: list[tuple[str, Grant]] = field(default_factory=list)


def recover(store: Storage, node: int, limits: LimitsConfig) -> BrokerState:
    """The broker's state as of the last durable write. Raises StoreCorrupt."""
    state = BrokerState(node, limits)
    try:
        state.clock_mark = int.from_bytes(store.get(Family.DEFAULT, CLOCK_KEY) or b"", "big")
        state.sequence.last = state.clock_mark
        for _, value in store.scan(Family.QUEUES):
            record = codec.read_queue(value)
            state.queues[record.name] = QueueState(record)
        cleanup = store.batch()
        _load_attempts(state, store)
        _load_producers(state, store)
        found = _Found()
        _load_grants(state, store, found)
        _load_due(store, found)
        _load_messages(state, store, found)
        _drop_stale(found, cleanup)
    except (ValueError, IndexError, struct.error) as cause:
        raise StoreCorrupt("the store holds an entry that cannot be read") from cause
    if len(cleanup):
        store.write(cleanup)
    return state


def _load_attempts(state: BrokerState, store: Storage) -> None:
    for key, value in store.scan(Family.ATTEMPTS):
        queue, seq = keys.read_attempts(key)
        if queue in state.queues:
            state.queues[queue].attempts[seq] = codec.read_attempts(value)


def _load_producers(state: BrokerState, store: Storage) -> None:
    heard: dict[str, tuple[int, int]] = {}
    for key, value in store.scan(Family.DEDUP):
        if key.startswith(keys.KEY_MARK):
            queue, dedup_key = keys.read_dedup(key)
            if queue in state.queues:
                state.queues[queue].dedup.add(dedup_key, *codec.read_dedup(value))
        else:
            producer, sequence = keys.read_producer_batch(key)
            heard[producer] = max(heard.get(producer, (0, 0)), (sequence, codec.read_produced(value)[0]))
    for producer, (sequence, at) in sorted(heard.items(), key=lambda item: item[1][1]):
        state.producers.advance(producer, sequence, at)
    for queue_state in state.queues.values():
        queue_state.dedup.sort()


def _load_grants(state: BrokerState, store: Storage, found: _Found) -> None:
    # In the order of their numbers, so that a later grant of a message replaces an earlier one.
    for key, value in store.scan(Family.LEASES):
        queue, number = keys.read_grant(key)
        record = codec.read_grant(value)
        grant = Grant(number, record.token, 0, record.expires_at)
        state.sequence.last = max(state.sequence.last, number)
        found.grants.append((queue, grant))
        for seq in record.members:
            found.held[seq] = (grant, record.attempts.get(seq, 0))


def _load_due(store: Storage, found: _Found) -> None:
    for key, _ in store.scan(Family.SCHEDULED):
        due, _, seq = keys.read_scheduled(key)
        found.due[seq] = (due, key)


def _load_messages(state: BrokerState, store: Storage, found: _Found) -> None:
    prefix = head = b""
    weight = cost = 1
    queue: QueueState | None = None
    lane: Lane | None = None
    latest: dict[FairKey, int] = {}
    held, due = found.held, found.due
    for key, value in store.scan(Family.MESSAGES):
        if key[: -keys.SEQ_BYTES] != prefix:
            prefix = key[: -keys.SEQ_BYTES]
            queue, lane = _find_lane(state, prefix)
        if queue is None or lane is None:
            continue
        if not value.startswith(head) or not head:
            head = codec.split_message(value)[0]
            weight, cost = codec.read_head(head)
        seq = int.from_bytes(key[-keys.SEQ_BYTES :], "big")
        owner = lane.key
        owner.live += 1
        if seq > latest.get(owner, 0):
            latest[owner] = seq
            owner.weight = weight
        if seq in held and held[seq][1] == queue.attempts.get(seq, 0):
            held[seq][0].members[seq] = (lane, seq, cost)
        elif seq in due:
            queue.schedule.add((due.pop(seq)[0], seq, lane, cost))
        else:
            queue.make_ready(lane, seq, cost)
    state.sequence.last = max(state.sequence.last, *latest.values(), 0)
    for name, grant in found.grants:
        if grant.members:
            state.queues[name].leases.add(grant)


def _find_lane(state: BrokerState, prefix: bytes) -> tuple[QueueState | None, Lane | None]:
    name, key_name, priority = keys.read_lane(prefix)
    queue = state.queues.get(name)
    if queue is None:
        return None, None
    owner = queue.keys.get(key_name)
    if owner is None:
        owner = queue.keys[key_name] = FairKey(key_name)
    return queue, Lane(owner, priority, prefix)


def _drop_stale(found: _Found, cleanup: Batch) -> None:
    for name, grant in found.grants:
        if not grant.members:
            cleanup.delete(Family.LEASES, keys.grant(name, grant.number))
            cleanup.delete(Family.LEASE_EXPIRY, keys.grant_expiry(grant.expires_at, name, grant.number))
    for _, key in found.due.values():
        cleanup.delete(Family.SCHEDULED, key)
