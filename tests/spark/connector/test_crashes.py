"""The crash matrix: jobs, executors and brokers that are killed at every point that matters.

Nothing is ever lost. Outputs hold everything once: by transaction as long as leases last, by key and in files that a
repetition overwrites also when they do not.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

pytest.importorskip("pyspark")

from fila import Client
from fila.testing import ServerProcess
from tests.e2e.support import eventually
from tests.helpers.spark_crash import PATIENCE_S, Trial, need_java
from tests.helpers.spark_lake import Tables

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True, scope="module")
def java():
    need_java()


DRIVER_KILLS = [
    ("txn", ["reading", "writing", "written"]),
    ("txn", ["committed"] * 3),  # the same batch each time
    ("txn", ["claimed", "in-commit-log", "claimed"]),
    ("dedup", ["writing", "committed", "in-commit-log"]),
    ("files", ["reading", "committed", "committed", "claimed"]),
]


@pytest.mark.parametrize("mode, points", DRIVER_KILLS)
def test_the_driver_and_all_that_it_started_are_killed(tmp_path, mode, points):
    with Trial(tmp_path, mode=mode) as trial:
        for point in points:
            trial.until(point)
            trial.kill_all()
        trial.finish()
        trial.check()


@pytest.mark.parametrize("mode", ["dedup", "files"])
def test_leases_end_before_the_driver_is_back(tmp_path, mode):
    with Trial(tmp_path, mode=mode, lease="10s") as trial:
        for point in ("committed", "in-commit-log"):
            trial.until(point)
            trial.kill_all()
            trial.wait_for_leases_to_end()
        trial.start(lease="5m")
        trial.finish()
        trial.check()


def test_leases_that_end_lose_nothing_by_transaction_either(tmp_path):
    """A batch that was published and whose messages came back is the one case that adds twice: docs say so."""
    with Trial(tmp_path) as trial:
        trial.until("committed")
        trial.kill_all()
        trial.end_leases()
        trial.finish()
        arrived = Counter(trial.arrived())
        assert len(arrived) == 60
        assert sum(arrived.values()) == 70  # the batch that was committed


def test_executors_are_killed_and_the_query_survives(tmp_path):
    with Trial(tmp_path, master="local-cluster[2,1,1024]") as trial:
        for point in ("reading", "writing", "written"):
            trial.until(point)
            assert trial.kill_executors()
        trial.finish()
        trial.check()


@pytest.mark.parametrize("mode", ["txn", "dedup"])
def test_the_broker_is_killed_and_the_query_survives(tmp_path, mode):
    with Trial(tmp_path, mode=mode, count=100) as trial:
        for point in ("claimed", "reading", "writing", "written", "committed", "in-commit-log"):
            trial.until(point)
            trial.kill_broker()
            trial.go(point)
            trial.start_broker()
        trial.finish()
        trial.check()


@pytest.mark.parametrize("point", ["writing", "committed", "in-commit-log"])
def test_broker_and_driver_are_killed_together(tmp_path, point):
    with Trial(tmp_path) as trial:
        trial.until(point)
        trial.kill_broker()
        trial.kill_all()
        trial.start_broker()
        trial.finish()
        trial.check()


class Job:
    """A job that runs until all is read, or until it is killed with all that it started."""

    def __init__(self, folder, *command):
        self._command = command
        self._log = folder / "job.log"
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)

    def kill(self):
        """Workers leave the process group, so each is looked for."""
        if self.process is None or self.process.poll() is not None:
            return
        whole = [*psutil.Process(self.process.pid).children(recursive=True), self.process]
        for each in whole:
            try:
                each.kill()
            except psutil.NoSuchProcess:
                continue
        self.process.wait()

    def finish(self):
        """Run to the end. One whose lease ends on the way, on a busy machine, fails and is started again."""
        for _ in range(3):
            self.start()
            if self.process.wait(PATIENCE_S) == 0:
                return
        pytest.fail(self._log.read_text()[-3000:])

    def running(self):
        assert self.process.poll() is None, self._log.read_text()[-3000:]
        return True


@pytest.fixture
def server():
    with ServerProcess() as server:
        yield server


@pytest.fixture
def client(server):
    with Client(server.addr, timeout=60) as client:
        yield client


def held(client, queue):
    return [message.payload for piece in client.read_queue(queue) for message in piece]


def test_reports_count_once_also_when_leases_end_before_the_job_is_back(spark, server, client, tmp_path):
    client.create_queue("r")
    count = 120
    at_ms = 1_790_000_000_000
    common = {"platform": "clipshare", "clicks": 100, "conversions": 10}
    for number in range(count):
        row = common | {"report_id": f"r{number}", "affiliate_id": f"a{number % 5}", "campaign_id": "c"}
        row |= {"post_id": f"p{number}", "views": 2000 if number % 2 else 1000, "reported_at": at_ms + number}
        client.enqueue("r", None, json.dumps(row).encode())
    metrics = tmp_path / "metrics.json"
    rows = [common | {"post_id": f"p{number}", "views": 1000, "observed_at": at_ms} for number in range(count)]
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    command = f"pipeline stream --broker {server.addr} --queue r --metrics {metrics} --out {out}"
    command += " --max-messages 30 --lease 4s --once --master local[2] --json"
    with Job(tmp_path, Path(sys.executable).parent / "fila", *command.split()) as job:
        for wanted in (1, 2):
            job.start()
            eventually(
                lambda wanted=wanted: job.running() and len(list(out.glob("ledger/runs/_delta_log/*.json"))) >= wanted,
                "a run",
                PATIENCE_S,
            )
            job.kill()
        # By now the leases have ended: the broker gives the messages to a later batch.
        eventually(lambda: client.queue_stats("r").summary.in_flight == 0, "leases to end", PATIENCE_S)
        job.finish()
    found = Counter(json.loads(payload)["report_id"] for payload in held(client, "r.discrepancies"))
    assert found == Counter(f"r{number}" for number in range(1, count, 2))
    affiliates = Tables(spark, out).totals("affiliate")
    assert {name: row["reports"] for name, row in affiliates.items()} == {f"a{n}": count // 5 for n in range(5)}
    assert client.queue_stats("r").summary.depth == 0
