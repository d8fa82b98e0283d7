"""Runs `spark_job.py` against a broker of its own, and kills one or the other at chosen points."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

from fila import Client
from fila.spark.errors import SparkMissing
from fila.spark.java import require_java
from fila.testing import ServerProcess
from tests.e2e.support import eventually

JOB = Path(__file__).with_name("spark_job.py")
PATIENCE_S = 240
_EXECUTOR = "CoarseGrainedExecutorBackend"


def need_java():
    """Without Java the test is skipped, in CI it fails."""
    try:
        require_java()
    except SparkMissing as error:
        pytest.fail(str(error)) if os.environ.get("CI") else pytest.skip(str(error))


class Trial:
    """A queue of numbers that a job copies, and the means to disturb it."""

    def __init__(self, folder, *, mode="txn", count=60, batch=10, lease="5m", master="local[2]"):
        self.folder = folder
        self.points = folder / "points"
        self._log = folder / "job.log"
        self._server = ServerProcess()
        self._sent = [b"%d" % number for number in range(count)]
        self._options = {"mode": mode, "batch": batch, "lease": lease, "master": master}
        self._job = None

    def __enter__(self):
        for folder in (self.points, self.folder / "out"):
            folder.mkdir()
        self._server.__enter__()
        self.client = Client(self._server.addr, timeout=60)
        for name in ("in", "out"):
            self.client.create_queue(name)
        self.client.enqueue_many("in", self._sent)
        self._options |= {"addr": self._server.addr, "queue": "in", "points": str(self.points)}
        self._options |= {"checkpoint": str(self.folder / "checkpoint")}
        self._options |= {"target": str(self.folder / "out") if self._options["mode"] == "files" else "out"}
        return self

    def __exit__(self, *_):
        self.kill_all()
        self.client.close()
        self._server.__exit__(None, None, None)

    def start(self, **options):
        command = [sys.executable, JOB, json.dumps(self._options | options)]
        with self._log.open("ab") as log:
            self._job = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def until(self, point):
        """The job runs until a point, and stands there. `go` lets it pass."""
        for suffix in (".reached", ".go"):
            self.points.joinpath(point + suffix).unlink(missing_ok=True)
        self.points.joinpath(point + ".armed").touch()
        if self._job is None or self._job.poll() is not None:
            self.start()
        eventually(lambda: self._is_running() and self.points.joinpath(point + ".reached").exists(), point, PATIENCE_S)

    def go(self, point):
        self.points.joinpath(point + ".go").touch()

    def kill_all(self):
        """The driver's program, its JVM, and workers, which leave the process group: so each is looked for."""
        if self._job is not None and self._job.poll() is None:
            _kill([*psutil.Process(self._job.pid).children(recursive=True), psutil.Process(self._job.pid)])
            self._job.wait()

    def kill_executors(self):
        """Each executor's JVM with its workers. Returns how many there were."""
        executors = [each for each in psutil.Process(self._job.pid).children(recursive=True) if _is_executor(each)]
        for each in executors:
            _kill([*each.children(recursive=True), each])
        return len(executors)

    def kill_broker(self):
        self._server.kill()

    def start_broker(self):
        self._server.start()

    def end_leases(self):
        """As an operator would who does not want to wait for them."""
        floor = self.client.group("in", "g").floor()
        self.client.group("in", "g", epoch=floor.epoch).extend(1)
        self.wait_for_leases_to_end()

    def wait_for_leases_to_end(self):
        eventually(lambda: self.client.queue_stats("in").summary.in_flight == 0, "leases to end", PATIENCE_S)

    def finish(self):
        """Run to the end."""
        if self._job is None or self._job.poll() is not None:
            self.start()
        assert self._job.wait(PATIENCE_S) == 0, self._said()

    def check(self):
        """Nothing is lost, nothing is doubled, and nothing is left to do."""
        assert Counter(self.arrived()) == Counter(self._sent)
        summary = self.client.queue_stats("in").summary
        assert (summary.depth, summary.in_flight) == (0, 0)

    def arrived(self):
        if self._options["mode"] == "files":
            files = (self.folder / "out").glob("*.json")
            return [text.encode() for file in files for text in json.loads(file.read_text())]
        return [message.payload for piece in self.client.read_queue("out") for message in piece]

    def _is_running(self):
        assert self._job.poll() is None, self._said()
        return True

    def _said(self):
        return self._log.read_text()[-3000:]


def _is_executor(process):
    try:
        return any(_EXECUTOR in word for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def _kill(processes):
    for each in processes:
        try:
            each.kill()
        except psutil.NoSuchProcess:
            continue
