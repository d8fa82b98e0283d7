"""Rebuilding the broker's memory from its store.

One pass over each family, in an order in which each finds what it needs: queues, then what is known of single messages
(attempts, leases, claims, delays), then the messages themselves (`loading.py`), each going where its state says: into a
grant, into the schedule, or into its lane. What refers to nothing any more is removed at the end.
"""

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

from fila.broker.access import PREFIX, load_record
from fila.broker.loading import Apart, Loading, unreadable_as_corrupt
from fila.broker.queue import QueueState
from fila.broker.scripts import Scripting
from fila.broker.staging import batch_of
from fila.broker.state import BrokerState
from fila.config import AuditConfig, LimitsConfig
from fila.core.claims import Claim, Group, Part
from fila.core.dedup import NOWHERE
from fila.core.errors import InvalidArgument, StoreCorrupt, StoreFailed
from fila.core.leases import Grant
from fila.core.throttle import ThrottleManager
from fila.core.transactions import Producer, Ranges, Transaction, in_turn
from fila.storage import codec, keys
from fila.storage.base import Batch, Family, Storage
from fila.storage.records import CommitRecord

CLOCK_KEY = b"clock"
LOADED_FIRST, LOADED_AT_LEAST = 50_000, 1_000
"""Messages that are read before the broker serves: so many of all queues, and as many of each"""
BYTES_FIRST = 16 << 20
"""And so many bytes of each queue about, if they are large. No more than that is held at a time."""
MANY_APART = 1_000
"""So many leased, delayed or suspected messages of a queue are looked up: about 60 ms. If there are more, the queue is
read whole."""


@dataclass(slots=True)
class _Found:
    """What the store says of single messages, before the messages themselves are seen."""

    apart: defaultdict[str, Apart] = field(default_factory=lambda: defaultdict(Apart))
    """By queue"""
    grants: list[tuple[str, Grant]] = field(default_factory=list)


def recover(
    store: Storage,
    node: int,
    limits: LimitsConfig,
    scripting: Scripting | None = None,
    audit: AuditConfig | None = None,
    throttles: ThrottleManager | None = None,
    *,
    background: bool = False,
) -> BrokerState:
    """The broker's state as of the last durable write, in the background without most messages of large queues, which
    an engine reads while it works (`loading.py`). `throttles` that are not only its own are given, without limits.

    Raises StoreCorrupt.
    """
    state = BrokerState(node, limits, scripting or Scripting(), audit, throttles)
    with unreadable_as_corrupt():
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
        _load_messages(state, store, found, background=background)
        _drop_stale(found, cleanup)
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
            found.apart[queue].held[seq] = (grant, record.attempts.get(seq, 0))


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
        due, queue, seq = keys.read_scheduled(key)
        found.apart[queue].due[seq] = (due, key)


def _load_messages(state: BrokerState, store: Storage, found: _Found, *, background: bool) -> None:
    """All of them, or only the first of each queue: the others while the broker works."""
    _refuse_strangers(state, store)
    hidden = Ranges(state.transactions.hidden())
    first = max(LOADED_AT_LEAST, LOADED_FIRST // max(1, len(state.queues)))
    for name, queue in state.queues.items():
        loading = Loading(queue, store, found.apart[name], hidden)
        more = loading.read(first, BYTES_FIRST)
        late = background and queue.capacity.limits is None and not queue.record.source
        if more and late and loading.read_apart(MANY_APART) and loading.go_on_later(state.sequence.last):
            state.loading[name] = loading
        else:
            while more:
                more = loading.read(LOADED_FIRST, BYTES_FIRST)
            state.sequence.last = max(state.sequence.last, loading.known)
        loading.take_in_suspects()
    for name, grant in found.grants:
        if grant.members:
            listed = grant.listed
            state.queues[name].leases.add(grant)
            grant.listed = listed


def _refuse_strangers(state: BrokerState, store: Storage) -> None:
    """Raises StoreCorrupt when there are messages of no queue."""
    prefixes = sorted(queue.prefix for queue in state.queues.values())
    for start, end in zip([b"", *map(keys.after, prefixes)], [*prefixes, None], strict=True):
        if next(store.scan(Family.MESSAGES, start, end), None) is not None:
            raise StoreCorrupt("the store is damaged: it contains messages of an unknown queue")


def _drop_stale(found: _Found, cleanup: Batch) -> None:
    for name, grant in found.grants:
        if not grant.members:
            cleanup.delete(Family.LEASES, keys.grant(name, grant.number))
            cleanup.delete(Family.LEASE_EXPIRY, keys.grant_expiry(grant.expires_at, name, grant.number))
    for apart in found.apart.values():
        for _, key in apart.due.values():
            cleanup.delete(Family.SCHEDULED, key)
