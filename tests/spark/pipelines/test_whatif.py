"""What-if on Spark: a real broker's journal comes out as it was, in parts and in days, and otherwise under changes."""

import json
import threading
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from fila import Client, OutgoingMessage
from fila.cli.main import cli
from fila.pipelines.archive.entries import SCHEMA, Archive
from fila.pipelines.errors import BadInput
from fila.pipelines.whatif.changes import parse
from fila.pipelines.whatif.entries import COLUMNS, DAY_NS
from fila.pipelines.whatif.pipeline import Options, Source, whatif
from fila.testing import ServerProcess
from tests.e2e.support import eventually

TENANTS = {"ada": 1, "bob": 3, "cyd": 1, "dee": 2}
QUEUES = ("orders", "mail", "logs")
"""The first two share a limit, the third shares nothing"""
MESSAGES = 600


def settle(message, chance):
    if chance < 0.1:
        message.nack("no")
    elif chance < 0.15:
        message.nack("later", delay_ms=30)
    elif chance < 0.2:
        message.release()
    else:
        message.ack()


def work(addr, queue, number, stop):
    """A consumer that fails now and then."""
    random = Random(number)
    with Client(addr, timeout=30) as client, client.consume(queue, max_in_flight=3 + 5 * number) as messages:
        stop.append(messages.stop)
        for message in messages:
            settle(message, random.random())


def send(client, queue, count, seed):
    random = Random(seed)
    while count > 0:
        size = min(count, random.randint(1, 50))
        count -= size
        batch = []
        for _ in range(size):
            tenant = random.choices([*TENANTS], [8, 2, 1, 1])[0]
            headers = {"tenant": tenant, "weight": str(TENANTS[tenant]), "cost": str(random.choice([1, 1, 4]))}
            if random.random() < 0.5 and queue != "logs":
                headers["provider"] = random.choice(["aws", "gcp"])
            delay_ms, priority = random.choice([0, 0, 0, 40]), random.choice([None, 0, 9])
            batch.append(OutgoingMessage(b"", headers, delay_ms=delay_ms, priority=priority))
        client.enqueue_many(queue, batch)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A broker with a day's work behind it: tenants with weights, limits, delays, failures, retries, a restart."""
    folder = tmp_path_factory.mktemp("broker")
    headers = {"fairness_header": "tenant", "weight_header": "weight", "cost_header": "cost"}
    with ServerProcess(folder, config="[journal]\nenabled = true\n") as server, ExitStack() as stack:
        client = stack.enter_context(Client(server.addr, timeout=30))
        for queue in QUEUES:
            client.create_queue(queue, **headers, throttle_headers=["provider"], quantum=3, max_attempts=3)
        client.set_config("throttle.provider:aws", "rate=400,burst=20")
        client.set_config("throttle.provider:gcp", "max_in_flight=4")
        stops, threads = [], []

        def consume():
            for number, queue in enumerate([*QUEUES, *QUEUES]):
                threads.append(threading.Thread(target=work, args=(server.addr, queue, number // 3, stops)))
                threads[-1].start()

        def drain():
            def left():
                return sum(client.queue_stats(queue).summary.depth for queue in QUEUES)

            eventually(lambda: left() == 0, "all work to be done", 120)
            for stop in stops:
                stop()
            for thread in threads:
                thread.join(60)
            stops.clear()
            threads.clear()

        def send_all(seed):
            for queue in QUEUES:
                send(client, queue, MESSAGES // 4, seed)

        send_all(1)
        consume()
        send_all(2)
        client.update_queue("orders", quantum=7)
        client.set_config("throttle.provider:aws", "rate=900,burst=5")
        client.pause_queue("mail")
        send_all(3)
        client.resume_queue("mail")
        drain()
        server.kill()
        server.start()
        send_all(4)
        consume()
        drain()
        yield server


@pytest.fixture(scope="module")
def rows(recorded):
    """Its journal, in the columns of an export."""
    with Client(recorded.addr, timeout=30) as client:
        return [{name: getattr(one, name) for name in COLUMNS} for one in client.read_journal(1)]


def export(rows, path):
    schema = pa.schema([(name, pa.int64() if kind == "bigint" else pa.string()) for name, kind in COLUMNS.items()])
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return str(path)


def run(spark, out, source, changes=(), **options):
    return whatif(spark, str(out), Options(parse(changes), **options), now_ms=0, source=source)


def leased(rows):
    return sum(row["kind"] == "leased" for row in rows)


def table(spark, found, name):
    return spark.read.parquet(f"{found.folder}/{name}")


def test_a_journal_comes_out_as_it_was_and_otherwise_under_changes(spark, recorded, rows, tmp_path):
    found = run(spark, tmp_path, Source(broker=recorded.addr), ["throttle.provider:aws=20/s"])
    assert found.failure is None
    again = found.summary["reproduction"]
    assert (again["alike"], again["different"], again["skipped"]) == (leased(rows), 0, 0), again["first"]
    assert leased(rows) > len(QUEUES) * MESSAGES  # with retries
    queues = {row.queue: row for row in table(spark, found, "queues").where("variant = 'recorded'").collect()}
    assert {name: queues[name].leased for name in QUEUES} == {
        name: sum(row["kind"] == "leased" and row["queue"] == name for row in rows) for name in QUEUES
    }
    told = {(row.queue, row.variant): row for row in table(spark, found, "queues").collect()}
    assert told["orders", "whatif"].backlog > 0 == told["orders", "recorded"].backlog
    assert told["orders", "whatif"].leased < told["orders", "model"].leased
    assert told["logs", "whatif"][2:] == told["logs", "model"][2:]
    page = Path(found.report).read_text()
    assert "throttle.provider:aws=" in page
    assert f"chose all {leased(rows):,} deliveries again" in page


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_changes_with_the_day_and_where_the_journal_is(spark, rows, tmp_path):
    """Midnight is in the middle. What is told again on the second day is what was so at the end of the first."""
    first = rows[0]["at_ns"]
    restart = max(row["at_ns"] for row in rows if row["kind"] == "started")
    middle = sorted(row["at_ns"] for row in rows if row["at_ns"] < restart)[len(rows) // 2]
    shift = (first // DAY_NS + 1) * DAY_NS - middle

    def moved(row):
        note = json.loads(row["note"]) if row["note"] else {}
        note |= {"asked_at_ns": note["asked_at_ns"] + shift} if "asked_at_ns" in note else {}
        until = row["until_ns"] + shift if row["until_ns"] else 0
        return row | {"at_ns": row["at_ns"] + shift, "until_ns": until, "note": json.dumps(note) if note else ""}

    days = [moved(row) for row in rows]
    source = Source(files=export(days, tmp_path / "days.parquet"))
    whole = run(spark, tmp_path / "whole", source, by_day=False)
    assert whole.summary["reproduction"]["alike"] == leased(rows)
    by_day = run(spark, tmp_path / "days", source)
    assert by_day.failure is None, by_day.summary
    assert by_day.summary["parts"] == 2 * whole.summary["parts"]
    again = by_day.summary["reproduction"]
    assert again["alike"] + again["skipped"] == leased(rows)
    assert again["skipped"] < leased(rows) / 2
    names = ("variant", "queue", "key", "leased", "cost", "wanted_ns", "wait_ns")

    def told(found, variant):
        frame = table(spark, found, "keys").where(F.col("variant") == variant)
        return sorted(tuple(row[name] for name in names) for row in frame.collect())

    assert [row[:5] for row in told(by_day, "recorded")] == [row[:5] for row in told(whole, "recorded")]
    fields = [each for each in SCHEMA if each.name != "day"]
    nothing = {each.name: 0 if each.dataType.simpleString() == "bigint" else "" for each in fields}
    kept = spark.createDataFrame([tuple((nothing | row).values()) for row in days], StructType(fields))
    Archive(spark, str(tmp_path / "archive")).add(kept)
    of_archive = run(spark, tmp_path / "of_archive", Source(archive=str(tmp_path / "archive")), by_day=False)
    for variant in ("recorded", "model"):
        assert told(of_archive, variant) == told(whole, variant)


@pytest.mark.slow
def test_the_command_shows_what_would_have_been_and_refuses_what_cannot_be_set(spark, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)  # commands end their session, and this one is shared
    fine = export(rows, tmp_path / "fine.parquet")
    command = ["pipeline", "whatif", "--journal", fine, "--out", str(tmp_path / "out"), "--set", "consumers=9"]
    done = CliRunner().invoke(cli, [*command, "--queue", "logs"])
    assert done.exit_code == 0, done.output
    assert "what would have been" in done.output
    assert "mail" not in done.output
    refused = CliRunner().invoke(cli, [*command, "--set", "quantum=0"])
    assert refused.exit_code == 2
    assert "quantum must be a whole number from 1" in refused.output


@pytest.mark.slow
def test_a_journal_that_no_replay_can_be_made_of_is_refused(spark, rows, tmp_path):
    for name, given, problem in (
        ("gap", rows[:10] + rows[11:], "1 entries of the journal are missing"),
        ("older", [row | {"count": 0, "note": ""} for row in rows], "does not say"),
        ("clock", [*rows[:-1], rows[-1] | {"at_ns": 1}], "clock went back"),
    ):
        with pytest.raises(BadInput, match=problem):
            run(spark, tmp_path / "out", Source(files=export(given, tmp_path / f"{name}.parquet")))
