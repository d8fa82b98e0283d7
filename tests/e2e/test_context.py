"""Contexts against real servers: which broker is reached, with which key, and what is said when none is."""

import json
import os
import subprocess
import sys
import threading

import pytest

from fila.testing import ServerProcess


@pytest.fixture
def run(tmp_path):
    """Runs the command as a user whose only settings are their contexts."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}

    def run(*args, **variables):
        env = clean | {"XDG_CONFIG_HOME": str(tmp_path / "config")} | variables
        command = [sys.executable, "-m", "fila.cli.main", *args]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_a_context_brings_its_key_to_its_broker_and_to_no_other(run, server, tmp_path):
    run("context", "add", "local", "--addr", server.addr)
    key = run("--context", "local", "auth", "init").stdout
    (tmp_path / "admin.key").write_text(key)
    (tmp_path / "admin.key").chmod(0o600)
    run("context", "add", "admin", "--addr", server.addr, "--api-key-file", str(tmp_path / "admin.key"))
    run("context", "use", "admin")
    assert run("queue", "create", "orders").returncode == 0
    assert run("queue", "list", FILA_CONTEXT="local").returncode == 1
    for refused in (run("--addr", server.addr, "queue", "list"), run("queue", "list", FILA_ADDR=server.addr)):
        assert (refused.returncode, "key" in refused.stderr) == (1, True)
    shown = run("context", "show", "admin", "--json")
    assert json.loads(shown.stdout)["in_use"]
    assert key.strip() not in shown.stdout + (tmp_path / "config/fila/contexts.toml").read_text()


def test_where_nobody_answers_it_is_said_whose_address_it_was(run, tmp_path):
    absent = ServerProcess(tmp_path)
    run("context", "add", "prod", "--addr", absent.addr)
    told = {
        "the command line": run("--addr", absent.addr, "queue", "list"),
        "FILA_ADDR": run("queue", "list", FILA_ADDR=absent.addr),
        'the context "prod"': run("--context", "prod", "queue", "list"),
    }
    absent.close()
    for source, result in told.items():
        said = f"Error: no broker answers at {absent.addr} (address from {source}). Is fila-server running?\n"
        assert (result.returncode, result.stderr) == (3, said)


def test_changes_at_the_same_time_are_all_kept(run):
    names = {f"broker-{number}" for number in range(6)}
    threads = [threading.Thread(target=run, args=("context", "add", name, "--addr", "b:1")) for name in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {each["name"] for each in json.loads(run("context", "list", "--json").stdout)} == names
