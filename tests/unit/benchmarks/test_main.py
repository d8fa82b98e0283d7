"""The command, from its arguments to its file. Says nothing about speed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main

ROOT = Path(__file__).parents[3]


def bench(*arguments):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_a_run_shows_progress_and_a_table_and_writes_every_figure(tmp_path):
    ran = bench("--quick", "--only", "enqueue,drain", "--messages", "600", "--output", str(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "enqueue 1/1: enqueueing 600 messages" in ran.stdout
    assert "ratio to floor" in ran.stdout

    [path] = tmp_path.iterdir()
    report = json.loads(path.read_text())
    assert report["quick"] is True
    assert report["scale"]["messages"] == 600
    assert {"cores", "python", "versions", "durability", "load_average"} <= report["machine"].keys()
    assert [workload["name"] for workload in report["workloads"]] == ["enqueue", "drain"]
    for workload in report["workloads"]:
        assert workload["error"] == ""
        assert len(workload["samples"]) == 1
        assert workload["figures"].keys() == {"messages_per_s", "server_cpu_s_per_100k", "client_cpu_s_per_100k"}
        speed = workload["figures"]["messages_per_s"]
        assert 0 < speed["min"] <= speed["median"] <= speed["max"]
        assert speed["ratio_to_floor"]["median"] > 0
        assert "grpc_batches" in workload["samples"][0]["floors"]


def test_workloads_without_a_server_run(tmp_path):
    """They use parts of the broker by themselves, and break when these change."""
    ran = bench("--quick", "--only", "lua,throttle_decision,ledger", "--output", str(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_quick_run_writes_no_page(capsys):
    with pytest.raises(SystemExit):
        main(["--quick", "--pages"])
    assert "--pages needs a full run" in capsys.readouterr().err


def test_an_unknown_workload_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--only", "enqueue,nonsense"])
    assert ended.value.code == 2
    assert "no workload is called nonsense; there are: enqueue, drain" in capsys.readouterr().err


def test_a_count_below_one_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--repeat", "0"])
    assert "must be at least 1" in capsys.readouterr().err
