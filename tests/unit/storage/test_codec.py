"""Records: round trips, and bytes that nobody wrote."""

import json
import string
import struct
from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.core.errors import StoreCorrupt
from fila.storage import codec
from fila.storage.records import (
    AttemptRecord,
    ClaimRecord,
    CommitRecord,
    DeathRecord,
    GrantRecord,
    GroupRecord,
    LeaseEnd,
    QueueRecord,
    StagedRecord,
    StagedRun,
    StagedTarget,
)

u32s = st.integers(0, 2**32 - 1)
u64s = st.integers(0, 2**64 - 1)
positive = st.integers(1, 2**32 - 1)

queue_records = st.builds(
    QueueRecord,
    name=st.text(),
    created_at=u64s,
    visibility_timeout_ms=u64s,
    quantum=u32s,
    dedup_window_ms=u64s,
    fairness_header=st.text(),
    weight_header=st.text(),
)
members = st.lists(u64s, unique=True, max_size=50)
grant_records = members.flatmap(
    lambda seqs: st.builds(
        GrantRecord,
        token=u64s,
        expires_at=u64s,
        members=st.just(seqs),
        attempts=st.dictionaries(st.sampled_from(seqs), u32s) if seqs else st.just({}),
    )
)
texts = st.text(st.characters(codec="ascii"), max_size=100)
results = st.lists(st.integers(1, 2**63) | texts, max_size=20)


throttle_keys = st.lists(st.text(max_size=20), max_size=32).map(tuple)


@given(positive, positive, throttle_keys, st.binary())
def test_a_message_is_read_back(weight, cost, throttle_keys, body):
    """Head and body come apart as they were put together."""
    record = codec.message_head(weight, cost, throttle_keys) + body
    head = codec.head_of(record)
    assert codec.read_head(head) == (weight, cost, throttle_keys)
    assert record[len(head) :] == body


@given(grant_records)
def test_a_lease_is_read_back(record):
    """With all its members, in order, and the attempts they had."""
    assert codec.read_grant(codec.grant(record)) == record


@given(u64s, st.integers(0, 2**32 - 1), u64s, results)
def test_the_answers_to_a_batch_are_read_back(heard_at, digest, epoch, answers):
    """Sequence numbers and refusals, in order."""
    assert codec.read_produced(codec.produced(heard_at, digest, epoch, answers)) == (heard_at, digest, epoch, answers)


@given(u64s, st.integers(1, 2**40), st.integers(0, 5_000))
def test_answers_that_follow_each_other_take_one_entry(heard_at, first, count):
    """A batch of thousands costs as much on disk as one message."""
    answers = list(range(first, first + count))
    record = codec.produced(heard_at, 7, 3, answers)
    assert codec.read_produced(record) == (heard_at, 7, 3, answers)
    assert codec.produced(heard_at, 7, 3, range(first, first + count)) == record
    assert len(record) < 40


def test_an_answer_that_was_written_before_producers_had_epochs_is_read():
    """Version 1 of the record."""
    record = pack(">BQIQIH", 1, 10, 7, 5, 2, 0)
    assert codec.read_produced(record) == (10, 7, 0, [5, 6])


def test_a_long_refusal_is_cut_between_characters():
    """An error text is kept up to a length, and is still text then."""
    (text,) = codec.read_produced(codec.produced(1, 2, 0, ["é" * 2_000])).results
    assert text == "é" * 512


@given(queue_records)
def test_a_queue_is_read_back(record):
    """Every setting, any name."""
    assert codec.read_queue(codec.queue(record)) == record


@given(u64s, u64s)
def test_small_records_are_read_back(seq, expires_at):
    """Dedup keys."""
    assert codec.read_dedup(codec.dedup(seq, expires_at)) == (seq, expires_at)


@given(u64s, st.sampled_from(LeaseEnd), st.text(max_size=400))
def test_an_attempt_is_read_back(at, kind, error):
    """When, how and what was said, if that is short."""
    record = AttemptRecord(at, kind, error)
    assert codec.read_attempt(codec.attempt(record)) == record


def test_of_a_long_error_the_beginning_is_kept():
    """Also where the end would cut a character in two."""
    kept = codec.read_attempt(codec.attempt(AttemptRecord(1, LeaseEnd.NACKED, "x" + "ü" * 5000))).error
    assert kept == "x" + "ü" * 511


@given(st.text(), u64s, st.text())
def test_a_death_and_a_setting_are_read_back(source, at, text):
    """Whatever the names."""
    assert codec.read_death(codec.death(DeathRecord(source, at, text))) == DeathRecord(source, at, text)
    assert codec.read_setting(codec.setting(text)) == text


def read_message(record):
    return codec.read_head(codec.head_of(record))


QUEUE = QueueRecord("orders", 1, 30_000, 4, 0, throttle_headers=("region", "user"), script="--")
RECORDS = {
    "message": (read_message, codec.message_head(3, 1)),
    "throttled message": (read_message, codec.message_head(3, 1, ("provider:aws", "region:eu"))),
    "lease": (codec.read_grant, codec.grant(GrantRecord(1, 2, [3, 4, 5], {4: 1}))),
    "attempt": (codec.read_attempt, codec.attempt(AttemptRecord(2, LeaseEnd.EXPIRED, ""))),
    "death": (codec.read_death, codec.death(DeathRecord("orders", 1, "max_attempts"))),
    "setting": (codec.read_setting, codec.setting("")),
    "dedup": (codec.read_dedup, codec.dedup(1, 2)),
    "produced": (codec.read_produced, codec.produced(1, 2, 3, [5, 6, "QueueNotFound:no"])),
    "queue": (codec.read_queue, codec.queue(QUEUE)),
}
every_record = pytest.mark.parametrize("read, record", RECORDS.values(), ids=RECORDS)


@every_record
def test_an_unknown_version_is_refused(read, record):
    """A record of a later version is named, not guessed."""
    with pytest.raises(StoreCorrupt, match="version 7"):
        read(b"\x07" + record[1:])


@every_record
def test_a_record_that_was_cut_short_is_refused(read, record):
    """Wherever it ends too early. Only the answers to a batch may end between two of them."""
    for end in range(len(record)):
        if read is codec.read_produced and end in {21, 21 + 14}:
            continue
        with pytest.raises(StoreCorrupt):
            read(record[:end])


@every_record
@given(data=st.data())
def test_foreign_bytes_are_read_or_refused_never_anything_else(read, record, data):
    """Any bytes, and records with some bytes changed, raise StoreCorrupt or are read."""
    changed = bytearray(record)
    for at in data.draw(st.lists(st.integers(0, len(record) - 1), min_size=1, max_size=4)):
        changed[at] = data.draw(st.integers(0, 255))
    for foreign in (bytes(changed), record[:1] + data.draw(st.binary(max_size=60)), data.draw(st.binary(max_size=60))):
        with suppress(StoreCorrupt):
            read(foreign)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"name": "q"}',
        json.dumps({"name": 5, "created_at": 1, "visibility_timeout_ms": 1, "quantum": 1, "dedup_window_ms": 1}),
        json.dumps({"name": "q", "created_at": 1, "visibility_timeout_ms": 1, "quantum": "4", "dedup_window_ms": 1}),
        json.dumps({"name": "q", "created_at": 1.5, "visibility_timeout_ms": 1, "quantum": 4, "dedup_window_ms": 1}),
        codec.queue(QUEUE)[1:].decode().replace("}", ', "later": 1}'),
        codec.queue(QUEUE)[1:].decode().replace('"region"', "7"),
        codec.queue(QUEUE)[1:].decode().replace('["region", "user"]', '"region"'),
        codec.queue(QUEUE)[1:].decode().replace('"retry_backoff": 1.0', '"retry_backoff": 1'),
        "[" * 100_000,
    ],
    ids=string.ascii_lowercase[:13],
)
def test_a_queue_with_other_settings_is_refused(text):
    """A record without a setting, with an unknown one or with one of the wrong type is no queue."""
    with pytest.raises(StoreCorrupt):
        codec.read_queue(b"\x01" + text.encode())


def test_a_weight_or_cost_of_nothing_is_refused():
    """The scheduler relies on both being at least 1."""
    for head in (codec.message_head(0, 1), codec.message_head(1, 0)):
        with pytest.raises(StoreCorrupt):
            codec.read_head(head)


def test_a_delay_is_all_in_its_key():
    """The record says nothing but its version."""
    assert codec.scheduled() == b"\x01"


@given(u64s, u64s, u64s, st.booleans(), st.lists(u64s, min_size=1, max_size=20))
def test_a_group_a_claim_and_its_parts_are_read_back(first, second, third, sealed, seqs):
    group = GroupRecord(first, second, third)
    assert codec.read_group(codec.group(group)) == group
    claim = ClaimRecord(first, second, third, sealed)
    assert codec.read_claim(codec.claim(claim)) == claim
    number, read = codec.read_claim_part(codec.claim_part(first, seqs))
    assert (number, list(read)) == (first, seqs)


@st.composite
def staged_records(draw):
    spots = draw(
        st.lists(st.builds(StagedTarget, st.binary(max_size=40), u64s, st.binary(max_size=20)), min_size=1, max_size=4)
    )
    pair = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
    number, key = st.integers(0, len(spots) - 1), st.text(min_size=1, max_size=20)
    run = st.tuples(number, u64s, st.booleans(), st.just(""), st.lists(pair, min_size=1, max_size=6))
    single = st.tuples(number, u64s, st.booleans(), key, st.lists(pair, min_size=1, max_size=1))
    drawn = draw(st.lists(run | single, max_size=5))
    runs = [StagedRun(*about, *map(tuple, zip(*sizes, strict=True))) for *about, sizes in drawn]
    return StagedRecord(draw(u64s), draw(u64s), draw(u64s), spots, runs)


@given(u64s, st.lists(st.text(), max_size=5), st.lists(st.text(), max_size=5), staged_records())
def test_what_is_staged_and_committed_is_read_back(number, parts, moved, record):
    assert codec.read_staged(codec.staged(record)) == record
    commit = CommitRecord(number, number, parts, moved)
    assert codec.read_commit(codec.commit(commit)) == commit


def test_what_was_staged_before_bodies_were_counted_counts_its_payloads():
    head = struct.pack(">BQQQII", 1, 7, 100, 9, 1, 1)
    target = struct.pack(">QII", 3, 1, 1) + b"lh"
    run = struct.pack(">IQ?HI", 0, 0, False, 0, 2) + struct.pack(">2I", 10, 20)
    record = codec.read_staged(head + target + run)
    assert record.runs == [StagedRun(0, 0, False, "", (10, 20), (10, 20))]


@given(staged_records(), st.lists(u64s, min_size=1, max_size=4), st.data())
def test_what_was_cut_short_or_grew_is_refused(staged, seqs, data):
    for read, record in (
        (codec.read_staged, codec.staged(staged)),
        (codec.read_claim_part, codec.claim_part(1, seqs)),
        (codec.read_commit, codec.commit(CommitRecord(1, 2, ["x"], ["x"]))),
        (codec.read_group, codec.group(GroupRecord(1, 2, 3))),
        (codec.read_claim, codec.claim(ClaimRecord(1, 2, 3, True))),
    ):
        cut = data.draw(st.integers(0, len(record) - 1))
        for damaged in (record[:cut], record + b"x"):
            with pytest.raises(StoreCorrupt):
                read(damaged)
