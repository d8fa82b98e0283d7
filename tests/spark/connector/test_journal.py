"""The journal as a stream and as a table, against real brokers: what is read once, again, and not at all."""

import contextlib
import io
import json
import pickle
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringContains,
)
from pyspark.sql.streaming.datasource import ReadMaxRows

from fila import Client, OutgoingMessage
from fila.spark import options
from fila.spark.batch_readers import JournalReader
from fila.spark.errors import DataLoss, JournalOff, OptionError
from fila.spark.journal_stream import JournalStreamReader
from fila.spark.options import Trigger
from fila.spark.patience import Patience
from fila.spark.rows import JOURNAL_COLUMNS
from fila.testing import ServerProcess

ON = "[journal]\nenabled = true\n"
PATIENCE_S = 240


def stream(broker, **given):
    given = {"addr": broker.addr, "journal": "true", "pollWait": "0ms"} | given
    return JournalStreamReader(options.journal_stream_read(CaseInsensitiveDict(given), JOURNAL_COLUMNS))


def table(broker, **given):
    given = {"addr": broker.addr, "journal": "true"} | given
    return JournalReader(options.journal_read(CaseInsensitiveDict(given), JOURNAL_COLUMNS))


def rows(reader, partitions, *columns):
    copy = pickle.loads(pickle.dumps(reader))  # as it reaches an executor
    batches = [batch for part in partitions for batch in copy.read(part)]
    found = [tuple(row[name] for name in columns) for batch in batches for row in batch.to_pylist()]
    return [row[0] for row in found] if len(columns) == 1 else found


def told(client, *columns, **given):
    return [getattr(entry, columns[0]) for entry in client.read_journal(1, **given)]


@pytest.fixture
def overflowing():
    """A broker whose journal holds so little that its oldest entries go."""
    with ServerProcess(config=ON + "max_bytes = 1_048_576\n") as server, Client(server.addr, timeout=30) as client:
        client.create_queue("q", fairness_header="tenant")

        def fill(times):
            for part in range(times):
                names = [f"tenant-{part}-{number}-{'x' * 60}" for number in range(3000)]
                client.enqueue_many("q", [OutgoingMessage(b"", {"tenant": name}) for name in names])

        yield server, client, fill


def oldest(client):
    with client.read_journal_batches(1) as batches:
        return next(batches).first_available_seq


class TestStream:
    def test_a_batch_is_a_range_of_numbers_and_the_same_whenever_it_is_read(self, broker, client, queue):
        client.enqueue_many(queue, [b""] * 30)
        one = stream(broker, partitions="3")
        start = one.initialOffset()
        end = one.latestOffset(start, ReadMaxRows(10))
        assert end == {"seq": start["seq"] + 10}
        first = rows(one, one.partitions(start, end), "seq")
        assert first == list(range(start["seq"], end["seq"]))
        broker.kill()
        broker.start()
        after = stream(broker)
        assert rows(after, after.partitions(start, end), "seq") == first
        rest = after.latestOffset(end, ReadMaxRows(100_000))
        assert rows(after, after.partitions(end, rest), "seq") == told(client, "seq")[len(first) :]
        assert after.latestOffset(rest, ReadMaxRows(10)) == rest
        assert rows(after, after.partitions(rest, rest), "seq") == []

    def test_a_run_over_what_is_there_ends(self, broker, client, queue):
        one = stream(broker)
        one.prepareForTriggerAvailableNow()
        end = one.latestOffset(one.initialOffset(), ReadMaxRows(1_000_000))
        client.enqueue(queue, None, b"")
        assert one.latestOffset(end, ReadMaxRows(10)) == end

    def test_queues_patterns_and_kinds(self, broker, client, queue):
        for name in ("a", "a.b", "c"):
            client.create_queue(f"{queue}.{name}")
            client.enqueue(f"{queue}.{name}", None, b"")

        every = {f"{queue}.{name}" for name in ("a", "a.b", "c")}

        def found(**given):
            one = stream(broker, **given)
            start = one.initialOffset()
            end = one.latestOffset(start, ReadMaxRows(1_000_000))
            return {name for name in rows(one, one.partitions(start, end), "queue") if name in every}

        assert found() == found(queue=f"{queue}.**") == every
        assert found(queue=f"{queue}.*") == every - {f"{queue}.a.b"}
        assert found(queue=f"{queue}.a, {queue}.c") == {f"{queue}.a", f"{queue}.c"}
        assert found(queue=f"{queue}.a") == {f"{queue}.a"}
        one = stream(broker, kind="enqueued,created", queue=f"{queue}.c")
        start = one.initialOffset()
        end = one.latestOffset(start, ReadMaxRows(1_000_000))
        assert rows(one, one.partitions(start, end), "kind") == ["created", "enqueued"]

    def test_a_new_checkpoint_begins_where_it_is_told(self, broker, client, queue):
        client.enqueue_many(queue, [b""] * 5)
        entries = list(client.read_journal(1))
        assert stream(broker).initialOffset() == {"seq": entries[0].seq}
        assert stream(broker, startSeq=str(entries[-2].seq)).initialOffset() == {"seq": entries[-2].seq}
        for entry in entries[-8:]:
            moment = datetime.fromtimestamp(entry.at_ns // 1000 / 1e6, UTC)
            first = next(each.seq for each in entries if each.at_ns >= entry.at_ns // 1000 * 1000)
            assert abs(stream(broker, startTime=moment.isoformat()).initialOffset()["seq"] - first) <= 1
        assert stream(broker, startTime="2200-01-01").initialOffset() == {"seq": entries[-1].seq + 1}
        assert stream(broker, startTime="1970-01-01T00:00:01Z").initialOffset() == {"seq": entries[0].seq}

    def test_the_progress_tells_how_far_behind_the_query_is(self, broker, client, queue):
        client.enqueue_many(queue, [b""] * 5)
        one = stream(broker)
        start = one.initialOffset()
        end = one.latestOffset(start, ReadMaxRows(3))
        newest = told(client, "seq")[-1] + 1
        assert one.reportLatestOffset() == {
            "seq": newest,
            "behind": newest - end["seq"],
            "oldest": start["seq"],
            "kept": 3,
        }

    def test_entries_that_the_broker_removed_are_missed_or_left_out_but_never_hidden(self, overflowing):
        server, client, fill = overflowing
        one, careless = stream(server), stream(server, failOnDataLoss="false")
        start = one.initialOffset()
        planned = one.latestOffset(start, ReadMaxRows(100))
        fill(6)
        first = oldest(client)
        assert first > planned["seq"]
        for asked in (lambda: one.latestOffset(start, ReadMaxRows(10)), lambda: one.partitions(start, planned)):
            with pytest.raises(DataLoss, match=f"begins at entry {first}"):
                asked()
        assert (
            rows(careless, careless.partitions(start, planned), "seq") == []
        )  # planned, and removed before it was read
        end = careless.latestOffset(planned, ReadMaxRows(10))
        assert end == {"seq": first + 10}  # the batch has what there is, not only numbers that are gone
        assert rows(careless, careless.partitions(planned, end), "seq") == list(range(first, first + 10))
        with pytest.raises(DataLoss, match="startSeq"):
            stream(server, startSeq="1").initialOffset()

    def test_another_brokers_checkpoint_is_refused(self, broker):
        for accepted in ("true", "false"):
            one = stream(broker, failOnDataLoss=accepted)
            with pytest.raises(DataLoss, match="belongs to another broker"):
                one.latestOffset({"seq": 10**12}, ReadMaxRows(10))
        with pytest.raises(ValueError, match="no offset of the journal"):
            one.latestOffset({"claim": 1}, ReadMaxRows(10))

    def test_a_journal_that_is_off_says_so(self):
        with ServerProcess() as server, pytest.raises(JournalOff, match=r"enabled = true under \[journal\]"):
            stream(server).initialOffset()

    def test_with_a_minimum_a_batch_waits_for_it_but_not_for_ever(self, broker, client, queue):
        start = {"seq": told(client, "seq")[-1] + 1}
        least = {"minEntriesPerTrigger": "5"}
        patient, hasty = stream(broker, **least), stream(broker, maxTriggerDelay="0ms", **least)
        client.enqueue_many(queue, [b""] * 3)
        assert patient.latestOffset(start, ReadMaxRows(100)) == start
        assert hasty.latestOffset(start, ReadMaxRows(100)) == {"seq": start["seq"] + 3}
        client.enqueue_many(queue, [b""] * 3)
        assert patient.latestOffset(start, ReadMaxRows(100)) == {"seq": start["seq"] + 6}


def test_patience_ends_after_its_time_and_begins_anew_with_each_batch():
    now = 100.0
    patience = Patience(Trigger(1000, 10, 5000), lambda: now)
    assert patience.enough(10)
    assert not patience.enough(9)
    now = 105.0
    assert patience.enough(1)
    assert not patience.enough(0)
    patience.taken()
    assert not patience.enough(9)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"kind": "enqueud"}, "no kind 'enqueud'"),
        ({"queue": "a,,b"}, "empty name"),
        ({"startTime": "yesterday"}, "expected a time"),
        ({"startTime": "2026-01-01", "startSeq": "4"}, "cannot both be set"),
        ({"group": "g"}, "unknown option group"),
        ({"minEntriesPerTrigger": "11", "maxEntriesPerTrigger": "10"}, "must be at most"),
    ],
)
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(OptionError, match=said):
        options.journal_stream_read(CaseInsensitiveDict({"journal": "true"} | given), JOURNAL_COLUMNS)


class TestFilters:
    def test_what_filters_leave_is_what_spark_would_leave(self, broker, client, queue):
        client.create_queue(f"{queue}.other")
        client.enqueue_many(f"{queue}.other", [b""] * 4)
        client.enqueue_many(queue, [b""] * 4)
        entries = list(client.read_journal(1))
        low, middle, high = entries[2], entries[len(entries) // 2], entries[-3]
        cases = [
            (GreaterThan(("seq",), middle.seq), lambda each: each.seq > middle.seq),
            (GreaterThanOrEqual(("seq",), middle.seq), lambda each: each.seq >= middle.seq),
            (LessThan(("seq",), middle.seq), lambda each: each.seq < middle.seq),
            (LessThanOrEqual(("seq",), low.seq), lambda each: each.seq <= low.seq),
            (EqualTo(("seq",), high.seq), lambda each: each.seq == high.seq),
            (LessThan(("seq",), -5), lambda _: False),
            (GreaterThan(("at_ns",), middle.at_ns), lambda each: each.at_ns > middle.at_ns),
            (LessThanOrEqual(("at_ns",), middle.at_ns), lambda each: each.at_ns <= middle.at_ns),
            (EqualTo(("at_ns",), middle.at_ns), lambda each: each.at_ns == middle.at_ns),
            (LessThan(("at_ns",), 0), lambda _: False),
            (EqualTo(("queue",), queue), lambda each: each.queue == queue),
            (EqualTo(("queue",), ""), lambda each: each.queue == ""),
            (In(("queue",), (queue, "nowhere")), lambda each: each.queue == queue),
            (In(("kind",), ("enqueued", "created")), lambda each: each.kind in {"enqueued", "created"}),
            (IsNotNull(("kind",)), lambda _: True),
        ]
        for first, fits in cases:
            for second, fits_too in cases[::3]:
                reader = table(broker, partitions="3")
                assert list(reader.pushFilters([first, second])) == []
                expected = [each.seq for each in entries if fits(each) and fits_too(each)]
                assert rows(reader, reader.partitions(), "seq") == expected, (first, second)

    def test_a_range_of_time_asks_the_broker_for_that_range_alone(self, broker, client, queue):
        client.enqueue_many(queue, [b""] * 20)
        entries = list(client.read_journal(1))
        reader = table(broker, partitions="1")
        reader.pushFilters([])
        list(reader.pushFilters([GreaterThanOrEqual(("at_ns",), entries[-1].at_ns)]))
        [part] = reader.partitions()
        assert part.start == next(each.seq for each in entries if each.at_ns == entries[-1].at_ns)

    def test_other_filters_are_left_to_spark(self, broker):
        others = [StringContains(("queue",), "a"), EqualTo(("attempt",), 1), In(("seq",), (1, 2))]
        assert list(table(broker).pushFilters([*others, IsNotNull(("seq",))])) == others

    def test_a_filter_does_not_complain_about_what_is_gone(self, overflowing):
        server, client, fill = overflowing
        fill(6)
        reader = table(server)
        list(reader.pushFilters([GreaterThan(("seq",), 3)]))
        assert rows(reader, reader.partitions(), "seq")[0] == oldest(client)


def plan_of(frame):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        frame.explain()
    return said.getvalue()


class TestSpark:
    def test_filters_are_in_the_scan_and_not_in_the_plan(self, spark, broker, client, queue):
        client.enqueue_many(queue, [b""] * 20)
        look = spark.read.format("fila").options(addr=broker.addr, journal="true", partitions=3)
        wanted = f"kind = 'enqueued' and queue in ('{queue}', 'nowhere') and seq > 3 and at_ns > 5"
        setting, found = "spark.sql.python.filterPushdown.enabled", {}
        assert spark.conf.get(setting) == "true"  # a session of ours
        for pushed in ("true", "false"):
            spark.conf.set(setting, pushed)
            frame = look.load().where(wanted)
            found[pushed] = (frame.count(), "Filter (" in plan_of(frame))
        spark.conf.set(setting, "true")
        assert found == {"true": (20, False), "false": (20, True)}
        assert look.load().where(wanted).rdd.getNumPartitions() == 3  # no single-task stage

    def test_a_query_reads_every_entry_once_over_failures_and_restarts(self, spark, broker, client, queue, tmp_path):
        client.enqueue_many(queue, [b""] * 40)
        batches = {}

        def run(fail_at=None):
            def each(frame, number):
                batches.setdefault(number, []).append(sorted(row.seq for row in frame.select("seq").collect()))
                if number == fail_at:
                    broker.kill()
                    broker.start()
                    raise ValueError("not now")

            given = {"addr": broker.addr, "journal": "true", "queue": queue, "columns": "seq,kind"}
            load = spark.readStream.format("fila").options(**given, startTime="2000-01-01", maxEntriesPerTrigger=25)
            writer = load.load().writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path))
            query = writer.trigger(availableNow=True).start()
            assert query.awaitTermination(PATIENCE_S)
            return query

        with pytest.raises(Exception, match="not now"):
            run(fail_at=1)
        first = batches[1]
        query = run()
        assert batches[1] == [first[0], first[0]]  # the same entries again
        seen = [seq for runs in batches.values() for seq in runs[-1]]
        assert seen == told(client, "seq", queue=queue)
        sources = [progress["sources"][0] for progress in query.recentProgress]
        assert all(set(json.loads(source["endOffset"])) == {"seq"} for source in sources)
        newest = json.loads(sources[-1]["latestOffset"])  # not in a batch that is run again
        assert newest.keys() == {"seq", "behind", "oldest", "kept"}
