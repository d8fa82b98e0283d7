"""The parent of workers, with workers that do nothing."""

import subprocess
import sys
from dataclasses import replace

import pytest

from fila.config import Config
from fila.server.workers import serve_workers
from fila.settings import SettingsError

PATIENCE_S = 60

PARENT = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from fila.cluster import supervisor
from fila.config import Config

def wait(config, worker, sockets, told, tells, *, restarted):
    signal.pause()

def fail(config, worker, sockets, told, tells, *, restarted):
    raise ValueError("a defect")

forked, fork = [], os.fork

def fork_and_stop():
    forked.append(1)
    if len(forked) == STOP_AT:
        SEND
    return fork()

os.fork = fork_and_stop
config = Config()
config = replace(
    config,
    server=replace(config.server, workers=3, listen_addr="127.0.0.1:0"),
    storage=replace(config.storage, data_dir=sys.argv[1]),
)
code = supervisor.Supervisor(config, RUN).serve()
print("forked", len(forked), "code", code)
"""


def served(tmp_path, run, stop_at=0, send="pass"):
    script = PARENT.replace("RUN", run).replace("STOP_AT", str(stop_at)).replace("SEND", send)
    command = [sys.executable, "-c", script, str(tmp_path / "data")]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, start_new_session=True
    )
    return ended.stdout


@pytest.mark.parametrize("send", ["os.kill(os.getpid(), signal.SIGTERM)", "os.killpg(0, signal.SIGINT)"])
@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_a_signal_in_the_middle_of_the_start_stops_every_worker(tmp_path, stop_at, send):
    """None is started afterwards, none is left out, and it is a stop like any other, also by Ctrl-C in a terminal."""
    said = served(tmp_path, "wait", stop_at, send)
    assert f"forked {stop_at} code 0" in said
    assert "did not stop in time" not in said


def test_a_worker_that_fails_at_once_ends_alone(tmp_path):
    """It says why, and nothing of its parent's goes on in it."""
    said = served(tmp_path, "fail")
    assert "a defect" in said
    assert said.count("code 70") == 1


def test_each_worker_has_a_port_or_none_is_started(tmp_path):
    config = Config()
    config = replace(
        config,
        server=replace(config.server, workers=3),
        storage=replace(config.storage, data_dir=str(tmp_path / "data")),
    )
    direct = replace(config, server=replace(config.server, worker_port=65_534))
    metrics = replace(config, telemetry=replace(config.telemetry, prometheus_listen="127.0.0.1:65534"))
    for wrong, name in ((direct, "server.worker_port"), (metrics, "telemetry.prometheus_listen")):
        with pytest.raises(SettingsError, match=f"{name}: 3 workers need the ports 65534 to 65536"):
            serve_workers(wrong)
    assert not (tmp_path / "data").exists()
