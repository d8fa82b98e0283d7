"""The same programs on executors of their own: real processes, as on a cluster, each with its own memory."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from tests.helpers.spark_crash import Trial, need_java
from tests.helpers.spark_reports import metric, of_now, report, write_csv, write_parquet

CLUSTER = "local-cluster[2,1,1024]"


@pytest.fixture(autouse=True, scope="module")
def java():
    need_java()


def test_a_stream_outlives_executors_and_broker_and_a_driver_that_is_killed_goes_on(tmp_path):
    """One kill of each kind. The crash matrix of the connector has all of them at every point."""
    with Trial(tmp_path, master=CLUSTER, count=40) as trial:
        trial.until("reading")
        trial.kill_broker()
        trial.go("reading")
        trial.start_broker()
        trial.until("writing")
        assert trial.kill_executors() > 0
        trial.until("committed")  # by the sink, and not in Spark's own log
        trial.kill_all()
        trial.start(master="local[2]")
        trial.finish()
        trial.check()


@pytest.mark.slow
def test_bulk_reconciliation_runs_on_executors(tmp_path):
    write_parquet(tmp_path / "reports" / "a.parquet", of_now(report(n, 1000 + n) for n in range(200)))
    write_csv(tmp_path / "metrics" / "a.csv", of_now(metric(n) for n in range(150)))
    command = [sys.executable, "-m", "fila.pipelines.submit.reconcile", "--master", CLUSTER]
    command += [f"--{name}={tmp_path / name}" for name in ("reports", "metrics", "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["reports"] == 200
    assert summary["statuses"]["MATCHED"] == 51
    assert summary["statuses"]["DISCREPANCY_LOW"] == 50
    assert (tmp_path / "out" / "report.html").exists()
