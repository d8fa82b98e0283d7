"""What the SDK makes of the journal's columns."""

from hypothesis import given
from hypothesis import strategies as st

from fila.client.journal import KINDS, message_ids, read_batch
from fila.core.ids import NODE_BITS, MessageIds
from fila.storage.journal import Kind
from fila.v1 import admin_pb2 as pb


@given(st.integers(0, (1 << NODE_BITS) - 1), st.integers(0, (1 << 63) - 1))
def test_ids_are_those_that_the_broker_gives(node, seq):
    assert message_ids(node)(seq) == MessageIds(node).text(seq)


def test_every_kind_has_the_same_name_everywhere():
    assert {kind.value: kind.name.lower() for kind in Kind} | {0: ""} == KINDS


def test_columns_of_one_value_hold_for_all_rows_and_missing_ones_are_zero():
    section = pb.JournalSection(kind=pb.JOURNAL_KIND_DEAD, first_seq=7, rows=3, lanes=[0, 1, 0], message_seqs=[5, 6, 9])
    section.attempts.append(4)
    section.causes.append(pb.JOURNAL_KIND_NACKED)
    section.targets.append(2)
    record = pb.JournalRecord(at_ns=11, sections=[section])
    for queue, key in (("q", "x"), ("q", "y"), ("q.dlq", "x")):
        record.lanes.add(queue=queue, fairness_key=key, weight=1)
    batch = read_batch(pb.ReadJournalResponse(records=[record], position=10))
    assert [(entry.seq, entry.fairness_key, entry.enqueued_at_ns) for entry in batch.entries()] == [
        (7, "x", 5),
        (8, "y", 6),
        (9, "x", 9),
    ]
    for entry in batch.entries():
        assert (entry.kind, entry.cause, entry.target, entry.attempt) == ("dead", "nacked", "q.dlq", 4)
        assert (entry.size, entry.until_ns, entry.note) == (0, 0, "")


def test_a_kind_that_is_not_known_yet_is_shown_by_its_number():
    section = pb.JournalSection(first_seq=1, rows=1, lanes=[0])
    section.MergeFromString(b"\x08\x63")
    record = pb.JournalRecord(sections=[section], lanes=[pb.JournalLane(queue="q")])
    (entry,) = read_batch(pb.ReadJournalResponse(records=[record])).entries()
    assert (entry.kind, entry.queue, entry.message_id) == ("99", "q", "")
