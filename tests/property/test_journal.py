"""The journal tells the whole story: replaying it gives the broker's state, whatever happened to the broker."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant

from fila.config import JournalConfig
from fila.core.errors import StoreCorrupt
from fila.storage import keys
from fila.storage.journal import Field, Kind, Packer, read_record, read_segment
from tests.helpers.broker import Driver, messages_of
from tests.helpers.journal import Replay, read_all
from tests.property.test_broker_model import BrokerMachine

U64 = st.integers(0, (1 << 64) - 1)
names = st.text(max_size=6)


class JournalMachine(BrokerMachine):
    """The broker with all that can happen to it, and beside it a reader of its journal."""

    def __init__(self) -> None:
        super().__init__()
        self.replay = Replay()

    @invariant()
    def history_gives_the_state(self) -> None:
        self.replay.take(read_all(self.driver.journal, self.replay.next, step_bytes=100))
        assert self.replay.next == self.driver.journal.next_entry
        assert self.replay.queues.keys() == self.driver.state.queues.keys()
        for name, queue in self.driver.state.queues.items():
            told = self.replay.queues[name]
            assert told.messages == {seq: _told(place) for seq, place in messages_of(queue).items()}
            assert told.attempts == queue.attempts


def _told(place: tuple[Any, ...]) -> tuple[Any, ...]:
    return place[:3] if place[0] == "leased" else place


TestReplay = JournalMachine.TestCase
TestReplay.settings = settings(max_examples=150, stateful_step_count=40)


@st.composite
def columns(draw: Any) -> tuple[int, dict[Field, list[int]]]:
    rows = draw(st.integers(1, 5))
    column = st.one_of(
        st.lists(U64, min_size=1, max_size=1),
        st.lists(U64, min_size=rows, max_size=rows),
        st.lists(st.integers(0, 300), min_size=rows, max_size=rows),
        st.integers(0, 1000).map(lambda first: range(first, first + rows)),
    )
    others = [name for name in Field if name not in {Field.LANE, Field.TARGET}]
    return rows, draw(st.dictionaries(st.sampled_from(others), column))


@given(
    at=U64,
    lanes=st.lists(st.tuples(names, st.integers(0, 255), st.integers(0, (1 << 32) - 1)), min_size=1, max_size=4),
    sections=st.lists(st.tuples(st.sampled_from(Kind), columns(), st.integers(0, 3), st.none() | names), min_size=1),
)
def test_a_record_is_read_as_it_was_packed(at, lanes, sections):
    packer = Packer()
    for kind, (rows, numbers), lane, text in sections:
        lane_column = {Field.LANE: [lane % len(lanes)] * rows}
        packer.add(kind, rows, list((lane_column | numbers).items()), [] if text is None else [text] * rows)
    prefixes = [keys.joined(keys.lane("queue", key, priority)) for key, priority, _ in lanes]
    record = read_record(packer.record(at, prefixes, [weight for *_, weight in lanes]))
    assert record.at == at
    assert record.entries == packer.entries
    assert [(lane.queue, lane.fairness_key, lane.priority, lane.weight) for lane in record.lanes] == [
        ("queue", key, priority, weight) for key, priority, weight in lanes
    ]
    assert len(record.sections) == len(sections)
    for section, (kind, (rows, numbers), _, text) in zip(record.sections, sections, strict=True):
        assert (section.kind, section.rows) == (kind, rows)
        assert section.texts == ([] if text is None else [text] * rows)
        for name in Field:
            if name is not Field.LANE:
                given_values = list(numbers.get(name, [0]))
                expected = given_values if len(given_values) == rows else given_values * rows
                assert list(section.values(name)) == expected
        cut = section.cut(1, rows) if rows > 1 else section
        assert list(cut.values(Field.SEQ)) == list(section.values(Field.SEQ))[-cut.rows :]


def _sample() -> bytes:
    packer = Packer()
    packer.add(Kind.ENQUEUED, 3, [(Field.LANE, [0, 1, 0]), (Field.SEQ, range(9, 12)), (Field.SIZE, [1, 70_000, 3])])
    packer.add(Kind.DEAD, 2, [(Field.LANE, [1]), (Field.SEQ, [5, 900]), (Field.TARGET, [0])])
    packer.add(Kind.CONFIGURED, 1, [(Field.LANE, [0])], ['{"key": "ü"}'])
    return packer.record(7, [keys.joined(keys.lane("q", "k\x00", 5)), keys.joined(keys.lane("q", "", 0))], [1, 2])


@settings(max_examples=500)
@given(st.data())
def test_bytes_that_are_no_record_are_refused_and_nothing_else(data):
    """Whatever the store holds, the reader gets a record of a sane size or StoreCorrupt."""
    sample = _sample()
    how = data.draw(st.sampled_from(["anything", "cut", "changed", "longer"]))
    match how:
        case "anything":
            value = (
                data.draw(st.binary(max_size=80))
                if data.draw(st.booleans())
                else sample[:1] + data.draw(st.binary(max_size=80))
            )
        case "cut":
            value = sample[: data.draw(st.integers(0, len(sample) - 1))]
        case "longer":
            value = sample + data.draw(st.binary(min_size=1, max_size=9))
        case _:
            at = data.draw(st.integers(0, len(sample) - 1))
            value = sample[:at] + bytes([data.draw(st.integers(0, 255))]) + sample[at + 1 :]
    try:
        record = read_record(value)
    except StoreCorrupt:
        return
    assert how not in {"cut", "longer"}
    for section in record.sections:
        assert record.queue_of(section) in {lane.queue for lane in record.lanes}
        for name in Field:
            assert len(section.values(name)) == section.rows


@given(st.binary(max_size=40), st.integers(0, 100))
def test_a_segment_is_read_or_refused(value, last):
    try:
        segment = read_segment(last, value)
    except StoreCorrupt:
        return
    assert 0 < segment.first <= segment.last == last


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from([0, 1, 50, 400, 5000]), st.booleans()), max_size=60),
)
def test_what_is_dropped_leaves_contiguous_numbers_that_begin_with_counts(steps):
    """Whatever is dropped, and whenever the broker restarts: what is left is in bounds, has no gaps, and its counts
    balance with what it tells."""
    config = JournalConfig(enabled=True, max_age_ms=10_000, max_bytes=1 << 20)
    object.__setattr__(config, "max_bytes", 20_000)  # less than can be configured, so that it is soon full
    driver = Driver(journal=config)
    driver.create("q", fairness_header="t")
    consumer = driver.join("q")
    for count, pause_ms, restart in steps:
        driver.advance(pause_ms)
        for number in range(count):
            driver.send("q", headers={"t": str(number % 7)})
        driver.settle_down()
        driver.ack("q", *[one.id for one in consumer.take()][: count // 2 + 1])
        if restart:
            driver.restart()
            consumer = driver.join("q")
        journal = driver.journal
        assert journal.bytes <= 20_000 * 1.2
        entries = read_all(journal)
        assert [entry.number for entry in entries] == list(range(journal.first_entry, journal.next_entry))
        oldest = driver.now - 10_000 * 1_000_000 * 2
        assert not entries or entries[-1].at < oldest or all(entry.at >= oldest for entry in entries)
        if journal.first_entry > 1:
            held = next(entry.count for entry in entries if entry.kind is Kind.COUNTED and entry.queue == "q")
            assert entries[0].kind in {Kind.COUNTED, Kind.STARTED}
            came = sum(entry.kind is Kind.ENQUEUED for entry in entries)
            went = sum(entry.kind is Kind.ACKED for entry in entries)
            assert held + came - went == driver.queue("q").size
