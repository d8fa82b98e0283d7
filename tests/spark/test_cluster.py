"""The same program on executors of their own: real processes, as on a cluster, each with its own memory."""

import json
import os
import subprocess
import sys

import pytest

from tests.spark.test_bulk import metric, report, write_csv, write_parquet


@pytest.mark.slow
def test_bulk_reconciliation_runs_on_executors(spark, tmp_path):
    write_parquet(tmp_path / "reports" / "a.parquet", [report(n, 1000 + n) for n in range(200)])
    write_csv(tmp_path / "metrics" / "a.csv", [metric(n) for n in range(150)])
    command = [sys.executable, "-m", "fila.spark.jobs.reconcile", "--master", "local-cluster[2,1,1024]"]
    command += [f"--{name}={tmp_path / name}" for name in ("reports", "metrics", "out")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=500,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["reports"] == 200
    assert summary["statuses"]["MATCHED"] == 51
    assert summary["statuses"]["DISCREPANCY_LOW"] == 50
    assert (tmp_path / "out" / "report.html").exists()
