"""The same reports twice: to the service as it is run, and as messages of a stream beside files of figures.

A real broker carries the jobs of the one and the reports of the other. API and worker are processes, platforms are
simulated, the database is a file. Some platforms tell nothing at first, so both have to try again.
"""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter

import httpx
import pytest

pytest.importorskip("pyspark")

from fila import Client
from fila.pipelines.reconcile import stream
from fila.pipelines.reconcile.stream import Queues
from fila.reconcile.domain.intake import POST_TAKEN
from fila.reconcile.domain.settings import Retries, Settings
from fila.reconcile.simulator import Simulator, truth
from fila.reconcile.simulator.server import TOKEN
from fila.testing import ServerProcess
from tests.e2e.support import eventually
from tests.helpers.spark_lake import Tables

PLATFORM = "clipshare"
SETTINGS = Settings(retries=Retries(missing_after_ms=300, missing_retries=1_000))
CONFIG = f"""
[retries]
missing_after_ms = {SETTINGS.retries.missing_after_ms}
missing_retries = {SETTINGS.retries.missing_retries}
[worker]
schedule_every_seconds = 0.1
[platforms.{PLATFORM}]
base_url = "{{url}}/{PLATFORM}"
token = "{TOKEN}"
internal = true
"""
PER_CENT = (100, 92, 85, 50, 140)
"""What is claimed of the truth: matched, low, medium and high discrepancies, and far too much."""
REPORTS, LATE = 40, 4
"""Every so many reports the platform tells nothing at first."""
PATIENCE_S = 400


def claims():
    for number in range(REPORTS):
        views, clicks, conversions = truth(PLATFORM, f"p{number}")
        yield {
            "affiliate_id": f"a{number % 3}",
            "platform": PLATFORM,
            "post_id": f"p{number}",
            "views": views * PER_CENT[number % len(PER_CENT)] // 100,
            "clicks": clicks,
            "conversions": conversions,
        }


def is_late(number):
    return number % LATE == 0


class Service:
    """The API and a worker, with jobs in a queue of a broker."""

    def __init__(self, folder, simulator, broker):
        self._folder, self._processes = folder, []
        (folder / "reconcile.toml").write_text(CONFIG.format(url=simulator.url))
        self._options = ["--config", "reconcile.toml", "--queue", f"fila://{broker.addr}/jobs"]

    def __enter__(self):
        self._start("serve", "--listen", "127.0.0.1:0", "--workers", "0")
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
            process.wait(40)

    def work(self):
        self._start("worker")

    def url(self):
        words = (self._folder / "service.log").read_text().split()
        return next((word for word in words if word.startswith("http://")), None)

    def select(self, statement):
        with sqlite3.connect(self._folder / "reconcile.db") as database:
            found = database.execute(statement).fetchall()
        database.close()
        return found

    def _start(self, *words):
        with (self._folder / "service.log").open("ab") as log:
            command = [sys.executable, "-m", "fila.cli.main", "reconcile", *words, *self._options]
            self._processes.append(subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log))


def figures(path, numbers):
    """What the platforms tell of some posts, as a file."""
    rows = []
    for number in numbers:
        told = dict(zip(("views", "clicks", "conversions"), truth(PLATFORM, f"p{number}"), strict=True))
        rows.append(told | {"platform": PLATFORM, "post_id": f"p{number}", "observed_at": time.time_ns() // 1_000_000})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_service_and_stream_come_to_the_same(spark, tmp_path):
    late = [number for number in range(REPORTS) if is_late(number)]
    with (
        ServerProcess() as broker,
        Client(broker.addr, timeout=30) as client,
        Simulator() as simulator,
        Service(tmp_path, simulator, broker) as service,
    ):
        nothing = dict.fromkeys(("views", "clicks", "conversions"))
        for number in late:
            simulator.set_post(PLATFORM, f"p{number}", **nothing)
        queues = Queues.beside(broker.addr, "reports")
        for name in (queues.reports, queues.discrepancies, queues.alerts):
            client.create_queue(name)
        (tmp_path / "metrics").mkdir()
        figures(tmp_path / "metrics" / "1.json", [number for number in range(REPORTS) if not is_late(number)])

        def streamed(report):
            client.enqueue(queues.reports, None, json.dumps(report).encode())

        def batch():
            query = stream.start(
                spark,
                queues,
                str(tmp_path / "metrics"),
                str(tmp_path / "out"),
                clock_ms=lambda: time.time_ns() // 1_000_000,
                settings=SETTINGS,
                trigger={"availableNow": True},
            )
            assert query.awaitTermination(PATIENCE_S)

        eventually(service.url, "the API", PATIENCE_S)
        with httpx.Client(base_url=service.url(), timeout=30) as http:
            for claim in claims():
                answer = http.post("/v1/reports", json=claim).raise_for_status().json()
                streamed(claim | {"report_id": answer["report_id"], "reported_at": time.time_ns() // 1_000_000})
            taken = next(claims()) | {"affiliate_id": "thief"}
            assert http.post("/v1/reports", json=taken).status_code == 409
            streamed(taken | {"report_id": "taken", "reported_at": time.time_ns() // 1_000_000})
            service.work()
            tried = "SELECT count(*) FROM reports WHERE status = 'MISSING_PLATFORM_DATA' AND attempts > 1"
            eventually(lambda: service.select(tried) == [(len(late),)], "second attempts", PATIENCE_S)
            batch()

            for number in late:
                told = dict(zip(("views", "clicks", "conversions"), truth(PLATFORM, f"p{number}"), strict=True))
                simulator.set_post(PLATFORM, f"p{number}", **told)
            eventually(lambda: http.get("/v1/status").json()["open"] == 0, "all verdicts", PATIENCE_S)
        figures(tmp_path / "metrics" / "2.json", late)
        streamed({"report_id": "no report"})  # Spark runs no batch while the queue is empty
        batch()
        refused = {message.headers["reason"] for piece in client.read_queue(queues.refused) for message in piece}

    tables = Tables(spark, tmp_path / "out")
    current = {row["report_id"]: row for row in tables.current()}
    theirs = dict(service.select("SELECT id, status FROM reports"))
    assert {name: row["status"] for name, row in current.items()} == theirs
    assert set(theirs.values()) >= {"MATCHED", "DISCREPANCY_HIGH", "AFFILIATE_OVERCLAIMED"}
    assert {row["post_id"]: row["attempt"] for row in current.values() if row["attempt"] > 1} == {
        f"p{number}": 2 for number in late
    }
    trust = {name: row["steps_bp"] for name, row in tables.totals("affiliate").items()}
    assert trust == dict(service.select("SELECT id, trust_total_bp FROM affiliates WHERE id <> 'thief'"))
    raised = Counter((row["affiliate_id"], row["kind"], row["severity"]) for row in tables.alerts())
    assert raised == Counter(service.select("SELECT affiliate_id, kind, severity FROM alerts"))
    assert raised
    assert refused > {POST_TAKEN}
