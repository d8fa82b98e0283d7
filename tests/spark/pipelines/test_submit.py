"""Each pipeline as a program under `spark-submit`, as a cluster runs them: its master and its settings count."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from fila import Client, OutgoingMessage
from fila.pipelines import submit as programs
from fila.pipelines.lake import delta
from fila.testing import ServerProcess
from tests.helpers.spark import QUICK
from tests.helpers.spark_lake import Tables
from tests.helpers.spark_reports import metric, of_now, report, write_parquet


def submit(name, **options):
    """Runs a pipeline as the documentation says. Returns what it printed."""
    found = shutil.which("spark-submit", path=str(Path(sys.executable).parent))
    assert found, "pyspark brings spark-submit"
    settings = [word for key, value in QUICK.items() for word in ("--conf", f"{key}={value}")]
    settings += ["--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR"]
    settings += ["--jars", ",".join(map(str, delta.jars()))]  # as --packages does, without the network
    arguments = [word for key, value in options.items() for word in (f"--{key}", *([str(value)] if value else []))]
    done = subprocess.run(
        [found, "--master", "local[2]", *settings, str(Path(programs.__file__).with_name(f"{name}.py")), *arguments],
        capture_output=True,
        text=True,
        timeout=500,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_the_pipelines_run_under_spark_submit(spark, tmp_path):
    rows = of_now(report(n, 1000 + 100 * n) for n in range(6))
    write_parquet(tmp_path / "reports" / "a.parquet", rows)
    write_parquet(tmp_path / "metrics" / "a.parquet", of_now(metric(n) for n in range(5)))
    printed = submit(
        "reconcile", reports=tmp_path / "reports", metrics=tmp_path / "metrics", out=tmp_path / "reconciled"
    )
    statuses = json.loads(printed.splitlines()[-1])["statuses"]
    assert sum(statuses.values()) == 6
    assert statuses["MISSING_PLATFORM_DATA"] == 1

    with ServerProcess(config="[journal]\nenabled = true\n") as server, Client(server.addr) as client:
        for name in ("reports", "reports.discrepancies", "reports.alerts"):
            client.create_queue(name)
        client.enqueue_many("reports", (OutgoingMessage(json.dumps(row).encode()) for row in rows))
        submit(
            "stream",
            broker=server.addr,
            queue="reports",
            metrics=tmp_path / "metrics",
            out=tmp_path / "streamed",
            once=None,
        )
        [found] = Tables(spark, tmp_path / "streamed").totals("platform").values()
        assert {name: found[name.lower()] for name in statuses} == statuses

        printed = submit("fairness", broker=server.addr, out=tmp_path / "fairness")
    summary = json.loads(printed.splitlines()[-1])
    assert summary["conserved"]
    assert summary["enqueued"] >= 6
