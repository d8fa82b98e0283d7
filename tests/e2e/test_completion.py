"""Completion in a real bash on a terminal, with a real broker."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from fila import Client
from fila.testing import ServerProcess
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("completion")) as process:
        with Client(process.addr, timeout=30) as client:
            client.create_queue("orders-of-today")
            client.create_queue("shipping")
            client.set_config("throttle.provider:aws", "rate=1")
            client.set_config("throttle.provider:gcp", "rate=1")
            client.set_config("evil$(touch pwned)", "x")
        yield process
        print(process.log)


@pytest.fixture
def bash(shared, tmp_path):
    """A bash in which completion is set up, as the documentation says."""
    folder = Path(sys.executable).parent
    env = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "FILA_ADDR": shared.addr,
        "XDG_CONFIG_HOME": str(tmp_path),
        "PS1": "ready> ",
        "HISTFILE": "",
    }
    program = ("bash", "--norc", "--noprofile", "-i")
    with Terminal(program=program, env=env, cwd=tmp_path) as terminal:
        terminal.await_text("ready> ")
        terminal.type('eval "$(fila completion bash)" && echo set-up\n')
        terminal.await_text("\nset-up\n")
        yield terminal


@pytest.mark.parametrize(
    "typed, shown",
    [
        ("fila exp\t", "fila explain "),
        ("fila queue inspect ord\t", "fila queue inspect orders-of-today"),
        ("fila redrive sh\t", "fila redrive shipping.dlq "),
        ("fila throttle unset provider:g\t", "fila throttle unset provider:gcp "),
        ("fila throttle unset prov\t", "fila throttle unset provider:"),
        ("fila journal tail --queue=shipping.\t", "fila journal tail --queue=shipping.dlq "),
        ("fila config get throttle.provider:a\t", "fila config get throttle.provider:aws "),
    ],
)
def test_names_are_completed(bash, typed, shown):
    bash.type(typed)
    bash.await_text(f"ready> {shown}")


def test_names_of_contexts_are_completed(bash):
    bash.type("fila context add production --addr b:1 2>/dev/null\n")
    bash.await_text('Added context "production"')
    bash.type("fila --context pro\t")
    bash.await_text("ready> fila --context production ")


def test_a_broker_that_is_away_is_silent(bash, tmp_path):
    absent = ServerProcess(tmp_path)  # never started
    bash.type(f"fila --addr {absent.addr} stats x\t\t; echo $((40 + 2))\n")
    screen = bash.await_text("\n42\n")
    absent.close()
    assert f"ready> fila --addr {absent.addr} stats x; echo $((40 + 2))\n" in screen


def test_a_name_that_a_shell_would_act_on_is_not_offered(bash, tmp_path):
    bash.type("fila config get ev\t\t; echo $((40 + 2))\n")
    screen = bash.await_text("\n42\n")
    assert "touch" not in screen
    assert not (tmp_path / "pwned").exists()
