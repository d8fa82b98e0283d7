"""The journal beside a broker that is driven by hand."""

import pytest

from fila.broker import journal
from fila.broker.audit_commands import Origin
from fila.broker.commands import SetConfig, UpdateQueue
from fila.broker.events import Events, Look
from fila.broker.journal import SEGMENTS, Journal
from fila.config import JournalConfig
from fila.core.consumers import Consumers
from fila.core.errors import InvalidArgument, StoreCorrupt, StoreFailed
from fila.storage import keys
from fila.storage.base import Batch, Family
from fila.storage.journal import Kind
from tests.helpers.broker import MS, START, Driver, incoming
from tests.helpers.journal import Entry, read_all

SCRIPT = "function on_failure(msg) return {} end"
QUEUES = ("q1", "q2", "q3", "q4")
ON, OFF = JournalConfig(enabled=True), JournalConfig(enabled=False)


def entries(driver: Driver, *kinds: Kind) -> list[Entry]:
    return [entry for entry in read_all(driver.journal) if entry.kind in kinds]


def test_a_message_leaves_an_entry_for_each_step_of_its_way():
    driver = Driver()
    driver.create("q", fairness_header="tenant", weight_header="weight")
    seq = driver.send("q", b"hello", headers={"tenant": "acme", "weight": "3"}, priority=2)
    consumer = driver.join("q")
    driver.advance(5)
    driver.nack("q", consumer.take()[0].id, delay_ms=20)
    nacked_at = driver.now
    driver.advance(20)
    driver.advance(1)
    driver.ack("q", consumer.take()[0].id)
    found = [entry for entry in read_all(driver.journal) if entry.seq == seq]
    assert [(entry.kind, entry.attempt) for entry in found] == [
        (Kind.ENQUEUED, 0),
        (Kind.LEASED, 1),
        (Kind.NACKED, 1),
        (Kind.DUE, 2),
        (Kind.LEASED, 2),
        (Kind.ACKED, 2),
    ]
    assert {(entry.queue, entry.key, entry.priority, entry.weight) for entry in found} == {("q", "acme", 2, 3)}
    enqueued, leased, nacked, due, *_ = found
    assert (enqueued.size, enqueued.cost, enqueued.until, enqueued.at) == (5, 1, 0, START)
    assert (leased.at, leased.until, leased.cost) == (START + 5 * MS, START + 30_005 * MS, 1)
    assert nacked.until == due.until == nacked_at + 20 * MS == due.at


def test_what_a_message_costs_is_told_when_it_comes_and_when_it_goes():
    driver = Driver()
    driver.create("q", cost_header="cost")
    driver.enqueue(
        incoming("q", headers={"cost": "7"}), incoming("q"), incoming("q", headers={"cost": "9"}, delay_ms=5)
    )
    driver.join("q")
    driver.advance(5)
    driver.settle_down()
    for kind in (Kind.ENQUEUED, Kind.LEASED):
        assert [entry.cost for entry in entries(driver, kind)] == [7, 1, 9]


def test_what_a_producer_put_into_a_message_is_not_in_the_journal():
    driver = Driver()
    driver.create("q", fairness_header="tenant")
    driver.send("q", b"payload-secret", headers={"tenant": "acme", "other": "header-secret"}, dedup_key="dedup-secret")
    driver.join("q")
    driver.settle_down()
    journal = b"".join(driver.store.dump()[Family.JOURNAL].values())
    assert b"acme" in journal
    assert b"secret" not in journal


def test_expired_returned_and_dead_are_told_apart():
    driver = Driver()
    driver.create("q", visibility_timeout_ms=100, max_attempts=3)
    seq = driver.send("q")
    first = driver.join("q")
    driver.settle_down()
    driver.advance(100)
    driver.leave(first)
    driver.settle_down()
    driver.join("q")
    driver.settle_down()
    driver.advance(100)
    kinds = (Kind.EXPIRED, Kind.RETURNED, Kind.NACKED, Kind.DEAD)
    found = [(entry.kind, entry.seq, entry.attempt, entry.cause, entry.target) for entry in entries(driver, *kinds)]
    assert found == [
        (Kind.EXPIRED, seq, 1, 0, ""),
        (Kind.RETURNED, seq, 2, 0, ""),
        (Kind.DEAD, seq, 3, Kind.EXPIRED, "q.dlq"),
    ]


def test_queues_and_settings_are_told_in_words():
    driver = Driver()
    driver.create("q", max_attempts=3, script=SCRIPT)
    driver.ask(lambda reply: UpdateQueue("q", {"max_attempts": 5, "quantum": 4}, reply))
    driver.ask(lambda reply: SetConfig("limit", "7", reply, Origin("SetConfig", peer="ipv4:10.0.0.1:9")))
    driver.ask(lambda reply: SetConfig("limit", None, reply, Origin("SetConfig", peer="ipv4:10.0.0.2:9")))
    driver.send("q")
    assert driver.delete("q") == 1
    told = entries(driver, Kind.CREATED, Kind.UPDATED, Kind.CONFIGURED, Kind.DELETED)
    assert [(entry.kind, entry.queue) for entry in told] == [
        (Kind.CREATED, "q"),
        (Kind.CREATED, "q.dlq"),
        (Kind.UPDATED, "q"),
        (Kind.CONFIGURED, ""),
        (Kind.CONFIGURED, ""),
        (Kind.DELETED, "q"),
        (Kind.DELETED, "q.dlq"),
    ]
    assert (told[0].note["max_attempts"], told[0].note["script"]) == (3, len(SCRIPT))
    assert told[1].note == {"source": "q"}
    assert told[2].note == {"max_attempts": [3, 5]}
    assert told[3].note == {"key": "limit", "before": None, "value": "7", "by": "ipv4:10.0.0.1:9"}
    assert told[4].note == {"key": "limit", "before": "7", "value": None, "by": "ipv4:10.0.0.2:9"}
    assert [entry.count for entry in told[-2:]] == [1, 0]


def test_what_was_refused_did_not_happen():
    driver = Driver()
    driver.create("q")
    before = driver.journal.next_entry
    with pytest.raises(InvalidArgument):
        driver.ask(lambda reply: SetConfig("", "7", reply))
    driver.enqueue(incoming("nowhere"), incoming("q", priority=-1), producer="p", sequence=1)
    driver.ack("q", "no such message")
    assert driver.journal.next_entry == before


def test_a_write_that_fails_leaves_no_entry_and_uses_no_number():
    driver = Driver()
    driver.create("q")
    driver.join("q")
    before, known = driver.journal.next_entry, read_all(driver.journal)
    driver.store.failing = True
    with pytest.raises(StoreFailed):
        driver.send("q")
    driver.store.failing = False
    assert (driver.journal.next_entry, read_all(driver.journal)) == (before, known)
    driver.send("q")
    later = read_all(driver.journal, before)
    assert [(entry.number, entry.kind) for entry in later] == [(before, Kind.CONSUMERS), (before + 1, Kind.ENQUEUED)]


def test_consumers_are_counted_when_the_next_thing_happens():
    driver = Driver()
    driver.create("q")
    one = driver.join("q")
    driver.join("q")
    driver.send("q")
    driver.leave(one)
    driver.settle_down()
    driver.send("q")
    counts = [entry.count for entry in entries(driver, Kind.CONSUMERS)]
    assert counts == [2, 1]


@pytest.fixture
def throttled():
    """Queues whose messages have a throttle that lets one pass in ten seconds. The one of "first" has passed."""
    driver = Driver()
    driver.ask(lambda reply: SetConfig("throttle.provider:aws", "rate=0.1,burst=1", reply))
    for name in ("first", *QUEUES):
        driver.create(name, throttle_headers=("provider",))
    driver.join("first", 7)
    for name in ("first", *QUEUES):
        driver.send(name, headers={"provider": "aws"})
        driver.settle_down()
    return driver


def look_in_vain(driver, queue):
    """A consumer comes, and throttles hold all messages up. Returns when that was."""
    driver.now += MS
    driver.join(queue, 5)
    driver.tick()
    return driver.now


def looks(driver):
    return [(entry.queue, entry.note) for entry in entries(driver, Kind.CONSUMERS) if "asked" in entry.note]


def test_what_a_replay_of_the_scheduler_needs_is_told(throttled):
    """The throttle keys of a message, how many were asked for, and what the consumers may hold."""
    notes = [entry.note for entry in entries(throttled, Kind.ENQUEUED)]
    assert notes == [{"throttles": ["provider:aws"]}] * 5
    (leased,) = entries(throttled, Kind.LEASED)
    assert 1 <= leased.count <= 7
    assert [entry.note for entry in entries(throttled, Kind.CONSUMERS)] == [{"max_in_flight": 7}]


def test_a_look_that_throttles_made_vain_is_told_with_the_next_record(throttled):
    written = throttled.store.writes
    at = [look_in_vain(throttled, queue) for queue in QUEUES[:3]]
    assert throttled.store.writes == written, "it writes nothing by itself"
    throttled.send("first")
    told = looks(throttled)
    assert [(queue, note["asked_at_ns"]) for queue, note in told] == list(zip(QUEUES, at, strict=False))
    assert all(note["max_in_flight"] == 5 and 1 <= note["asked"] <= 5 for _, note in told)


def test_no_more_looks_wait_for_a_record_than_may(throttled, monkeypatch):
    monkeypatch.setattr(journal, "MAX_LOOKS", 3)
    for queue in QUEUES[:3]:
        look_in_vain(throttled, queue)
    assert looks(throttled) == []
    look_in_vain(throttled, QUEUES[3])
    assert [queue for queue, _ in looks(throttled)] == list(QUEUES)


def test_many_looks_at_a_queue_of_many_consumers_count_these_once(throttled, monkeypatch):
    """They are all told in one tick: a thousand looks at five thousand consumers took a third of a second."""
    queue, events, counted = throttled.queue("first"), Events(), []
    count = Consumers.all
    monkeypatch.setattr(Consumers, "all", lambda self: counted.append(1) or count(self))
    for number in range(1_000):
        events.add_consumers(queue, Look(queue.name, number, 1))
    assert (events.entries, len(counted)) == (1_000, 1)


def test_where_a_reader_may_begin_the_limits_stand_that_were_set_before(throttled):
    throttled.restart()
    throttled.send("first")
    limit = {"key": "throttle.provider:aws", "before": "rate=0.1,burst=1", "value": "rate=0.1,burst=1", "by": ""}
    assert limit in [entry.note for entry in entries(throttled, Kind.CONFIGURED)]
    assert entries(throttled, Kind.COUNTED)[-1].note["paused"] is False


def test_numbers_go_on_after_a_restart_which_is_itself_told():
    driver = Driver()
    driver.create("q")
    driver.send("q")
    before = driver.journal.next_entry
    driver.restart()
    assert driver.journal.next_entry == before, "a start alone writes nothing"
    driver.send("q")
    later = [(entry.number - before, entry.kind, entry.count) for entry in read_all(driver.journal, before)]
    assert later == [
        (0, Kind.STARTED, 0),
        (1, Kind.COUNTED, 1),
        (2, Kind.COUNTED, 0),
        (3, Kind.ENQUEUED, 0),
    ]


def test_reading_from_the_middle_of_a_record_begins_there():
    driver = Driver()
    driver.create("q", fairness_header="t")
    driver.enqueue(*[incoming("q", headers={"t": str(number % 3)}) for number in range(7)])
    everything = read_all(driver.journal)
    for start in range(1, driver.journal.next_entry + 1):
        assert read_all(driver.journal, start) == everything[start - 1 :]


def small(max_bytes: int, max_age_ms: int = 10_000) -> JournalConfig:
    config = JournalConfig(enabled=True, max_age_ms=max_age_ms)
    object.__setattr__(config, "max_bytes", max_bytes)  # less than may be configured
    return config


def test_old_segments_go_by_age_and_what_is_left_says_where_it_begins():
    driver = Driver(journal=small(1 << 30))
    driver.create("q")
    for _ in range(50):
        driver.send("q")
        driver.advance(1000)
    found = read_all(driver.journal)
    assert found[0].number == driver.journal.first_entry > 1
    assert found[0].kind is Kind.COUNTED
    assert driver.now - found[0].at <= (10_000 + 2 * 10_000 // SEGMENTS + 1000) * MS
    stored = [keys.read_journal_key(key) for key in driver.store.dump()[Family.JOURNAL] if key != keys.NEXT_ENTRY]
    assert min(stored) >= driver.journal.first_entry, "nothing of what was dropped is left"


def test_the_journal_never_outgrows_its_bytes_by_more_than_a_record():
    driver = Driver(journal=small(50_000, 10**10))
    driver.create("q", fairness_header="t")
    for number in range(300):
        driver.enqueue(*[incoming("q", headers={"t": f"{number}-{each}"}) for each in range(20)])
        rows = driver.store.dump()[Family.JOURNAL]
        held = sum(len(key) + len(value) for key, value in rows.items() if key.startswith(keys.RECORD_MARK))
        assert held == driver.journal.bytes <= 50_000
        assert sum(key.startswith(keys.SEGMENT_MARK) for key in rows) <= SEGMENTS + 1
    assert driver.journal.first_entry > 1
    driver.restart()
    assert driver.journal.bytes == held


def test_a_start_reads_only_the_segment_that_is_open():
    driver = Driver(journal=small(100_000, 10**10))
    driver.create("q")
    for _ in range(1000):
        driver.send("q")
    read: list[bytes] = []

    class Watching:
        def scan(self, family, start=b"", end=None):
            for key, value in driver.store.scan(family, start, end):
                read.append(value)
                yield key, value

        def __init__(self):
            self.get = driver.store.get

    journal = Journal(Watching(), driver.journaling)
    assert (journal.first_entry, journal.next_entry) == (driver.journal.first_entry, driver.journal.next_entry)
    assert sum(map(len, read)) < 100_000 // SEGMENTS + 2_000


def test_many_queues_do_not_make_every_tick_begin_a_segment():
    driver = Driver(journal=small(100_000, 10**10))
    for number in range(200):
        driver.create(f"queue-{number}")
    before = len(entries(driver, Kind.COUNTED))
    for _ in range(100):
        driver.send("queue-1")
    assert len(entries(driver, Kind.COUNTED)) - before <= 800


def test_a_journal_that_is_off_writes_nothing_and_shows_that_something_is_missing():
    driver = Driver()
    driver.create("q")
    driver.send("q")
    before = driver.journal.next_entry
    known = read_all(driver.journal)
    driver.journaling = OFF
    for _ in range(2):  # twice off is off once
        driver.restart()
        driver.send("q")
        assert read_all(driver.journal) == known
    driver.journaling = ON
    driver.restart()
    driver.send("q")
    later = read_all(driver.journal, before)
    assert later[0].number == before + 1, "one number was left out"
    assert [entry.count for entry in later if entry.kind is Kind.COUNTED and entry.queue == "q"] == [3]
    after = driver.journal.next_entry
    driver.journaling = OFF
    driver.restart()
    driver.journaling = ON
    driver.restart()
    driver.send("q")
    assert read_all(driver.journal, after)[0].number == after + 1


def test_a_journal_that_was_never_on_takes_no_room():
    driver = Driver(journal=OFF)
    driver.create("q")
    driver.send("q")
    assert not driver.store.dump()[Family.JOURNAL]
    assert (driver.journal.first_entry, driver.journal.next_entry) == (1, 1)


@pytest.mark.parametrize(
    "key, value",
    [
        (keys.journal_record(5), b""),
        (keys.journal_record(5), b"\x09" + bytes(40)),
        (keys.journal_record(5), b"\x01" + bytes(3)),
        (keys.RECORD_MARK + b"\xff", b"\x01" + bytes(20)),
        (keys.journal_segment(5), b"\x01" + bytes(24)),
        (keys.SEGMENT_MARK + b"\xff", b"\x01" + bytes(24)),
    ],
)
def test_a_damaged_journal_is_refused_at_the_start(key, value):
    driver = Driver()
    batch = Batch()
    batch.put(Family.JOURNAL, key, value)
    driver.store.write(batch)
    with pytest.raises(StoreCorrupt):
        driver.restart()


def test_redriven_and_purged_messages_are_told_where_they_go():
    driver = Driver()
    driver.create("q", max_attempts=1, fairness_header="t")
    kept, lost = (driver.send("q", headers={"t": name}) for name in ("x", "y"))
    consumer = driver.join("q")
    driver.settle_down()
    for one in consumer.take():
        driver.nack("q", one.id)
    driver.leave(consumer)
    driver.settle_down()
    assert driver.redrive("q.dlq", fairness_key="x") == 1
    assert driver.purge("q.dlq") == 1
    found = [
        (entry.kind, entry.queue, entry.key, entry.seq, entry.attempt, entry.target)
        for entry in read_all(driver.journal)
    ]
    assert (Kind.REDRIVEN, "q.dlq", "x", kept, 1, "q") in found
    assert (Kind.DROPPED, "q.dlq", "y", lost, 1, "") in found
