"""Jobs and brokers that are killed. Whatever is killed when, nothing is lost, and outputs hold everything once."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

pytest.importorskip("pyspark")

from fila import Client
from fila.spark.errors import SparkMissing
from fila.spark.java import require_java
from fila.testing import ServerProcess
from tests.e2e.support import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

JOB = Path(__file__).parents[2] / "helpers" / "spark_job.py"
PATIENCE_S = 240


@pytest.fixture(autouse=True, scope="module")
def java():
    try:
        require_java()
    except SparkMissing as error:
        pytest.skip(str(error))


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


def test_a_job_and_its_broker_are_killed_and_each_message_arrives_once(server, client, tmp_path):
    for name in ("in", "out"):
        client.create_queue(name)
    sent = [b"%d" % number for number in range(120)]
    client.enqueue_many("in", sent)
    checkpoint = str(tmp_path / "checkpoint")
    options = {"addr": server.addr, "queue": "in", "target": "out", "checkpoint": checkpoint, "lease": "5m"}
    with Job(tmp_path, sys.executable, JOB, json.dumps(options)) as job:
        for wanted in (1, 40):
            job.start()
            eventually(lambda wanted=wanted: len(held(client, "out")) >= wanted, f"{wanted} messages", PATIENCE_S)
            job.kill()
        job.start()
        eventually(lambda: len(held(client, "out")) >= 70, "70 messages", PATIENCE_S)
        server.kill()
        server.start()
        assert job.process.wait(PATIENCE_S) == 0
        job.finish()  # what was read and not acked when the last batch was killed, if anything
    assert Counter(held(client, "out")) == Counter(sent)
    summary = client.queue_stats("in").summary
    assert (summary.depth, summary.in_flight) == (0, 0)


def test_reports_count_once_also_when_leases_end_before_the_job_is_back(server, client, tmp_path):
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
                lambda wanted=wanted: job.running() and len(list(out.glob("runs/*"))) >= wanted, "a run", PATIENCE_S
            )
            job.kill()
        # By now the leases have ended: the broker gives the messages to a later batch.
        eventually(lambda: client.queue_stats("r").summary.in_flight == 0, "leases to end", PATIENCE_S)
        job.finish()
    found = Counter(json.loads(payload)["report_id"] for payload in held(client, "r.discrepancies"))
    assert found == Counter(f"r{number}" for number in range(1, count, 2))
    import pyarrow.parquet as pq

    last = max(out.glob("runs/*"))
    affiliates = pq.read_table(last / "gold" / "affiliates").to_pylist()
    assert {row["affiliate_id"]: row["reports"] for row in affiliates} == {f"a{n}": count // 5 for n in range(5)}
    assert client.queue_stats("r").summary.depth == 0
