"""What the README shows is what happens, in a shell in which nothing was activated."""

import shlex
import signal
import subprocess
import time

import pytest

from fila.testing import ServerProcess
from tests.support.pages import LONG_S, ROOT, Shell, blocks, checkout, environment

README = (ROOT / "README.md").read_text()
QUICKSTART = blocks(README[README.index("## Quickstart") : README.index("## What it does")])
START, COMMANDS = [block for block in QUICKSTART if block.kind == "sh"]
[CODE] = [block.text for block in QUICKSTART if block.kind == "python"]


@pytest.fixture
def folder(tmp_path):
    return checkout(tmp_path / "checkout")


def run_code(server, folder):
    run = [".venv/bin/python", "-c", CODE.replace("localhost:5555", server.addr)]
    done = subprocess.run(
        run, cwd=folder, env=environment(), check=True, capture_output=True, text=True, timeout=LONG_S
    )
    return done.stdout.splitlines()


def test_the_quickstart_runs_as_it_is_printed_and_again(server, folder):
    """The quiet tenant's message overtakes the noisy one's backlog, and the noisy one's keep their order."""
    lines = run_code(server, folder)
    assert "quiet password reset" in lines
    assert [line for line in lines if line.startswith("noisy")] == [f"noisy newsletter {n}" for n in range(7)]
    assert "quiet password reset" in run_code(server, folder)


def test_the_commands_run_as_they_are_printed_and_again(server, folder):
    run_code(server, folder)
    with Shell(folder, environment(FILA_ADDR=server.addr)) as shell:
        for _ in range(2):
            shell.check(COMMANDS)


def test_the_broker_starts_as_it_is_printed(folder, tmp_path):
    setup, start = START.text.splitlines()
    assert setup == "make setup"
    holder = ServerProcess(tmp_path)  # never started: it keeps a port free for us
    command = shlex.split(start.replace("127.0.0.1:5555", holder.addr))
    variables = environment(FILA_ADDR=holder.addr)
    broker = subprocess.Popen(command, cwd=folder, env=variables)
    try:
        deadline = time.monotonic() + LONG_S
        listing = [".venv/bin/fila", "queue", "list"]
        while subprocess.run(
            listing, cwd=folder, env=variables, check=False, capture_output=True, timeout=LONG_S
        ).returncode:
            assert time.monotonic() < deadline
            assert broker.poll() is None
        broker.send_signal(signal.SIGINT)
        assert broker.wait(LONG_S) == 0
    finally:
        broker.kill()
        broker.wait()
        holder.close()
    assert (folder / "data").is_dir()
