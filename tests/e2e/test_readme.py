"""What the README shows is what happens, in a shell that has the installed programs on its PATH."""

import os
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.support.pages import LONG_S, ROOT, Shell, blocks, environment
from tests.support.programs import broker, output, round_trip

README = (ROOT / "README.md").read_text()
INSTALL, QUICKSTART = (
    blocks(README[README.index(f"## {first}") : README.index(f"## {then}")])
    for first, then in (("Install", "Quickstart"), ("Quickstart", "From a checkout"))
)
START, COMMANDS = [block for block in QUICKSTART if block.kind == "sh"]
[CODE] = [block.text for block in QUICKSTART if block.kind == "python"]


@pytest.fixture
def folder(tmp_path):
    """Where somebody types the commands."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


def with_programs(programs=Path(sys.executable).parent, **variables):
    """The environment of somebody who has the programs of this folder on the PATH."""
    return environment(**variables) | {"PATH": f"{programs}:/usr/bin:/bin"}


def run_code(server, folder):
    code = CODE.replace("localhost:5555", server.addr)
    return output([sys.executable, "-c", code], with_programs(), folder).splitlines()


def test_the_quickstart_runs_as_it_is_printed_and_again(server, folder):
    """The quiet tenant's message overtakes the noisy one's backlog, and the noisy one's keep their order."""
    lines = run_code(server, folder)
    assert "quiet password reset" in lines
    assert [line for line in lines if line.startswith("noisy")] == [f"noisy newsletter {n}" for n in range(7)]
    assert "quiet password reset" in run_code(server, folder)


def test_the_commands_run_as_they_are_printed_and_again(server, folder):
    run_code(server, folder)
    with Shell(folder, with_programs(FILA_ADDR=server.addr)) as shell:
        for _ in range(2):
            shell.check(COMMANDS)


def start(folder, variables):
    """The broker, started as it is printed but for the port."""
    printed = START.text.strip().replace("127.0.0.1:5555", "{addr}")
    return broker(shlex.split(printed), ["fila"], variables, folder)


def test_the_broker_starts_as_it_is_printed(folder):
    with start(folder, with_programs()):
        assert (folder / "data").is_dir()


def test_a_newcomer_installs_it_as_it_is_printed(wheels, folder, tmp_path):
    """In a new environment, from an index that has this version; then the broker starts and passes a message on."""
    index = tmp_path / "index"
    whole = f"{wheels['fila']}[server]"
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--find-links", wheels["fila"].parent]
    fetch += ["--constraint", ROOT / "constraints.txt", "--dest", index, whole]
    subprocess.run(fetch, check=True, env=os.environ, timeout=LONG_S)
    venv.create(tmp_path / "venv", with_pip=True)
    variables = with_programs(tmp_path / "venv" / "bin")
    [install] = INSTALL
    only_ours = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    output(shlex.split(install.text), {**variables, **only_ours})
    with start(folder, variables) as found:
        round_trip(["fila"], found)
