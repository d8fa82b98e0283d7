"""What the connector's readers and writers do with a real broker, called as Spark calls them."""

import pickle
import threading

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from fila import FencedError, OutgoingMessage, QueueNotFoundError, UnavailableError
from fila.spark import options
from fila.spark.batch_readers import JournalReader
from fila.spark.errors import DataLoss
from fila.spark.rows import JOURNAL_COLUMNS, QUEUE_COLUMNS
from fila.spark.sink import BatchWriter
from fila.spark.stream_reader import QueueStreamReader
from tests.e2e.support import eventually

FIVE = ReadMaxRows(5)


@pytest.fixture
def reader(broker, queue):
    made = []

    def make(**more):
        given = {"addr": broker.addr, "queue": queue, "group": "g", "pollWait": "0ms", "columns": "payload"} | more
        made.append(QueueStreamReader(options.stream_read(CaseInsensitiveDict(given), QUEUE_COLUMNS)))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def fill(client, queue, count):
    client.enqueue_many(queue, [b"%d" % number for number in range(count)])


def read(reader, start, end):
    copy = pickle.loads(pickle.dumps(type(reader)(reader._options)))  # as it reaches an executor
    batches = [batch for part in reader.partitions(start, end) for batch in copy.read(part)]
    return sorted(value for batch in batches for value in batch.column("payload").to_pylist())


def test_the_offset_is_acked_when_the_next_one_is_asked_for_and_not_before(reader, client, queue):
    fill(client, queue, 8)
    one = reader()
    start = one.initialOffset()
    assert start == one.initialOffset() == {"claim": 0}
    first = one.latestOffset(start, FIVE)
    assert first == {"claim": 1}
    assert one.latestOffset(start, FIVE) == first
    one.commit(first)
    assert client.queue_stats(queue).summary.in_flight == 5
    second = one.latestOffset(first, FIVE)
    assert client.group(queue, "g").floor().floor == 1
    assert one.latestOffset(second, FIVE) == second
    assert client.queue_stats(queue).summary.in_flight == 0


def test_while_a_full_batch_is_read_the_next_claim_is_made(reader, client, queue):
    fill(client, queue, 8)
    group = client.group(queue, "g")
    one = reader()
    first = one.latestOffset(one.initialOffset(), FIVE)
    assert group.floor().last == 1
    assert len(one.partitions({"claim": 0}, first)) > 0
    eventually(lambda: group.floor().last == 2, "the claim after the one that is read")
    assert group.describe(2).messages == 3
    second = one.latestOffset(first, FIVE)
    assert second == {"claim": 2}
    fill(client, queue, 1)
    before = set(threading.enumerate())
    one.partitions(first, second)
    assert set(threading.enumerate()) <= before, "the batch was not full: nothing is to be done ahead"
    assert one.latestOffset(second, FIVE) == {"claim": 3}


def test_after_a_crash_the_same_batch_is_read_again(reader, client, queue):
    fill(client, queue, 8)
    before = reader()
    start = before.initialOffset()
    end = before.latestOffset(start, FIVE)
    rows = read(before, start, end)
    assert len(rows) == 5
    after = reader(partitions="3")
    assert read(after, start, end) == rows
    assert after.latestOffset(start, FIVE) == end  # as if the crash had come before the offset was written down
    with pytest.raises(FencedError):
        before.latestOffset(end, FIVE)
    assert len(read(after, end, after.latestOffset(end, ReadAllAvailable()))) == 3


def test_a_run_over_what_is_there_ends(reader, client, queue):
    fill(client, queue, 3)
    one = reader()
    one.prepareForTriggerAvailableNow()
    fill(client, queue, 3)
    end = one.latestOffset(one.initialOffset(), ReadAllAvailable())
    assert len(read(one, {"claim": 0}, end)) == 3
    assert one.latestOffset(end, ReadAllAvailable()) == end
    assert one.reportLatestOffset() == {"claim": 1, "ready": 3, "delayed": 0}


def test_with_a_minimum_a_batch_waits_for_it_but_not_for_ever(reader, client, queue):
    fill(client, queue, 2)
    patient = reader(minMessagesPerTrigger="3")
    start = patient.initialOffset()
    assert patient.latestOffset(start, FIVE) == start
    fill(client, queue, 1)
    first = patient.latestOffset(start, FIVE)
    assert first == {"claim": 1}
    fill(client, queue, 1)
    assert patient.latestOffset(start, FIVE) == first  # a claim that was made is found again, however few wait
    assert patient.latestOffset(first, FIVE) == first
    assert client.group(queue, "g").floor().floor == 1  # and what was read is acked all the same
    hasty = reader(minMessagesPerTrigger="3", maxTriggerDelay="0ms")
    assert hasty.latestOffset(first, FIVE) == {"claim": 2}


def test_the_heartbeat_extends_what_is_held(reader, client, queue):
    fill(client, queue, 1)
    one = reader(lease="3s")
    one.latestOffset(one.initialOffset(), FIVE)
    group = client.group(queue, "g")
    ends = group.describe(1).expires_at
    eventually(lambda: group.describe(1).expires_at > ends, "a heartbeat")


def test_what_expired_reads_as_nothing_and_comes_again(reader, client, queue):
    fill(client, queue, 4)
    one = reader()
    end = one.latestOffset(one.initialOffset(), FIVE)
    one.stop()
    client.group(queue, "g", epoch=one._session.group.epoch).extend(1)
    eventually(lambda: client.queue_stats(queue).summary.in_flight == 0, "the lease to end")
    two = reader()
    assert read(two, {"claim": 0}, end) == []
    again = two.latestOffset(end, FIVE)
    assert again == {"claim": 2}
    assert len(read(two, end, again)) == 4


def test_offsets_that_the_group_does_not_know_are_refused_unless_loss_is_accepted(reader, client, queue):
    fill(client, queue, 4)
    one = reader()
    end = one.latestOffset({"claim": 0}, FIVE)
    one.latestOffset(end, FIVE)  # acks
    fill(client, queue, 2)
    strict = reader()
    for start in ({"claim": 0}, {"claim": 9}):
        with pytest.raises(DataLoss, match="failOnDataLoss"):
            strict.latestOffset(start, FIVE)
        with pytest.raises(DataLoss, match="checkpoint"):
            strict.partitions({"claim": 5}, {"claim": start["claim"] + 1})
    lenient = reader(failOnDataLoss="false")
    assert read(lenient, {"claim": 0}, {"claim": 1}) == []
    assert lenient.latestOffset({"claim": 0}, FIVE) == {"claim": 2}
    assert lenient.latestOffset({"claim": 9}, FIVE) == {"claim": 2}
    with pytest.raises(ValueError, match="another query"):
        strict.latestOffset({"offset": 3}, FIVE)


def test_a_broker_that_is_away_is_asked_again_but_not_for_ever(reader, broker, client, queue):
    fill(client, queue, 3)
    one = reader(retryTimeout="500ms")
    start = one.initialOffset()
    broker.kill()
    try:
        with pytest.raises(UnavailableError, match=broker.addr):
            one.latestOffset(start, FIVE)
    finally:
        broker.start()
    assert one.latestOffset(start, FIVE) == {"claim": 1}


def test_the_journal_is_read_on_where_the_broker_was_lost(broker, client, queue):
    client.update_queue(queue, fairness_header="who")
    many = [OutgoingMessage(b"", {"who": f"{number:0>250}"}) for number in range(25_000)]
    client.enqueue_many(queue, many)  # more than is on its way at once
    given = CaseInsensitiveDict({"addr": broker.addr, "journal": "true", "queue": queue, "partitions": "1"})
    reader = JournalReader(options.journal_read(given, JOURNAL_COLUMNS))
    [part] = reader.partitions()
    batches = reader.read(part)
    seqs = next(batches).column("seq").to_pylist()
    assert len(seqs) < len(many)
    broker.kill()
    broker.start()
    for batch in batches:
        seqs += batch.column("seq").to_pylist()
    assert seqs == [entry.seq for entry in client.read_journal(queue=queue) if entry.seq < part.end]
    assert len(seqs) >= len(many)


def test_a_queue_that_is_not_there_is_named(reader):
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        reader(queue="nowhere").initialOffset()


def test_only_what_the_winning_attempts_staged_is_published(broker, client, queue):
    given = options.write(
        CaseInsensitiveDict({"addr": broker.addr, "queue": queue, "producer": f"p-{queue}", "runId": "7"}), stream=False
    )
    writer = BatchWriter(given)

    def task(*payloads):
        return pickle.loads(pickle.dumps(writer)).write(iter([pa.record_batch({"payload": pa.array(payloads)})]))

    task(b"lost")
    messages = [task(b"a", b"b"), None, task(b"c")]
    assert client.queue_stats(queue).summary.depth == 0
    for _ in range(2):
        pickle.loads(pickle.dumps(writer)).commit(messages)
    assert [message.payload for piece in client.read_queue(queue) for message in piece] == [b"a", b"b", b"c"]
    writer.commit([task(b"again")])
    assert client.queue_stats(queue).summary.depth == 3


@pytest.mark.parametrize("missing", [None, ""])
def test_by_key_a_row_without_one_is_refused(broker, client, queue, missing):
    """Without a key a task that is run again would add it twice."""
    given = options.write(CaseInsensitiveDict({"addr": broker.addr, "queue": queue, "mode": "dedup"}), stream=False)
    rows = pa.record_batch({"payload": pa.array([b"a", b"b"]), "dedup_key": pa.array(["k", missing])})
    with pytest.raises(ValueError, match="a row has no dedup_key"):
        BatchWriter(given).write(iter([rows]))
    assert client.queue_stats(queue).summary.depth == 0
