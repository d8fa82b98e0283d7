"""The service as it is run: API, workers, Redis and platforms as processes of their own, some of them killed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter

import httpx
import pytest

from fila.reconcile.domain.settings import DEFAULTS
from fila.reconcile.domain.trust import deltas
from fila.reconcile.simulator import Faults, Simulator, truth
from fila.reconcile.simulator.server import TOKEN
from fila.testing.redis import RedisProcess

REPORTS = int(os.environ.get("FILA_TEST_REPORTS", "600"))
"""How many go through. The claim of 10,000 was run with FILA_TEST_REPORTS=10000."""
AFFILIATES = 20
BATCH = 50
PATIENCE_S = 60 + REPORTS / 20

CONFIG = """
[store]
requeue_after_seconds = 5.0
[queue]
lease_seconds = 5.0
[api]
affiliate_per_minute = 1000000
affiliate_burst = 1000000
queue_mark = 1000000
[worker]
schedule_every_seconds = 0.2
[breaker]
failure_threshold = 1000000
[retries]
missing_after_ms = 100
incomplete_after_ms = 100
incomplete_retries = 5
[platforms.clipshare]
base_url = "{url}/clipshare"
token = "{token}"
internal = true
"""

CLAIMS = {
    "MATCHED": 100,
    "DISCREPANCY_LOW": 92,
    "DISCREPANCY_MEDIUM": 85,
    "DISCREPANCY_HIGH": 50,
    "AFFILIATE_OVERCLAIMED": 140,
}
"""What is claimed, in per cent of the truth, and what that is."""


class Service:
    """The commands of the service, each a process."""

    def __init__(self, folder, redis_url):
        self.folder = folder
        self.options = ["--config", str(folder / "reconcile.toml"), "--db", f"sqlite:///{folder}/reconcile.db"]
        self.options += ["--queue", redis_url]
        self.processes = []

    def start(self, *command):
        with (self.folder / "service.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "fila.cli.main", "reconcile", *command, *self.options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        self.processes.append(process)
        return process

    def serve(self):
        self.start("serve", "--listen", "127.0.0.1:0", "--workers", "0")
        return until(self._url, "the API does not start")

    def worker(self):
        return self.start("worker", "--concurrency", "4")

    def _url(self):
        words = (self.folder / "service.log").read_text().split()
        return next((word for word in words if word.startswith("http://")), None)

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def until(condition, complaint, patience_s=30.0):
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    pytest.fail(complaint)


def reports():
    """What is sent, each with the status it must come to."""
    kinds = list(CLAIMS)
    for number in range(REPORTS):
        status = kinds[number * 7 % len(kinds)]
        views, clicks, conversions = truth("clipshare", f"p-{number}")
        yield (
            status,
            {
                "affiliate_id": f"a-{number % AFFILIATES:02}",
                "platform": "clipshare",
                "post_id": f"p-{number}",
                "views": views * CLAIMS[status] // 100,
                "clicks": clicks,
                "conversions": conversions,
                "idempotency_key": f"k-{number}",
            },
        )


def send(http, batch):
    """As a client would: again, until it is taken."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            answer = http.post("/v1/reports/batch", json={"reports": batch})
        except httpx.TransportError:
            time.sleep(0.2)
            continue
        if answer.status_code == 202:
            return [each["report_id"] for each in answer.json()["reports"]]
        assert answer.status_code in {429, 503}, answer.text
        time.sleep(float(answer.headers["Retry-After"]))
    pytest.fail("a batch was never taken")


@pytest.mark.slow
@pytest.mark.timeout(120 + 4 * PATIENCE_S)
def test_each_report_is_reconciled_and_each_step_of_trust_applied_once_whatever_is_killed(tmp_path):
    """With a worker and Redis killed on the way, and a platform that fails now and then."""
    with RedisProcess(tmp_path) as redis, Simulator() as simulator:
        simulator.set("clipshare", Faults(error_bp=200, partial_bp=100))
        (tmp_path / "reconcile.toml").write_text(CONFIG.format(url=simulator.url, token=TOKEN))
        service = Service(tmp_path, redis.url)
        try:
            expected, ids = run(service, redis)
        finally:
            service.stop()
            print((tmp_path / "service.log").read_text()[-5_000:])
    judge(tmp_path / "reconcile.db", expected, ids)


def run(service, redis):
    url = service.serve()
    doomed, _ = service.worker(), service.worker()
    expected, batch, ids = [], [], []
    with httpx.Client(base_url=url, timeout=30) as http:
        for number, (status, report) in enumerate(reports(), start=1):
            expected.append((status, report))
            batch.append(report)
            if len(batch) == BATCH or number == REPORTS:
                ids += send(http, batch)
                batch = []
            if number == REPORTS // 2:
                until(lambda: http.get("/v1/status").json()["done"] > 0, "no worker works")
                doomed.kill()
                doomed.wait()
                service.processes.remove(doomed)
                redis.kill()
            if number == REPORTS * 3 // 4:
                redis.start()
                service.worker()
        until(lambda: http.get("/v1/status").json()["open"] == 0, "reports are left open", PATIENCE_S)
    return expected, ids


def judge(path, expected, ids):
    steps = {status: delta for status, delta in deltas(DEFAULTS).items() if status in CLAIMS}
    trust = Counter()
    for status, report in expected:
        trust[report["affiliate_id"]] += steps[status]
    with sqlite3.connect(path) as store:
        found = dict(store.execute("SELECT id, status FROM reports WHERE done_at_ms IS NOT NULL"))
        assert len(set(ids)) == len(found) == REPORTS
        assert [found[each] for each in ids] == [status for status, _ in expected]
        assert dict(store.execute("SELECT id, trust_total_bp FROM affiliates")) == dict(trust)
        assert store.execute("SELECT count(*), count(DISTINCT report_id) FROM trust_events").fetchone() == (
            REPORTS,
            REPORTS,
        )
        alerts = dict(store.execute("SELECT kind, count(*) FROM alerts GROUP BY kind"))
        wanted = Counter(status for status, _ in expected)
        assert alerts["fraud"] == wanted["AFFILIATE_OVERCLAIMED"]
        assert alerts["data_quality"] == wanted["DISCREPANCY_HIGH"]
    store.close()
