"""`scripts/setup` against fake interpreters: what it says and does on machines that lack something."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def machine(tmp_path):
    """A copy of what set-up reads, and a PATH on which only the named programs exist."""
    (tmp_path / "scripts").mkdir()
    for name in ("pyproject.toml", "constraints.txt", "scripts/setup"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "touch", "mkdir", "chmod", "cat"):
        (tools / name).symlink_to(shutil.which(name))
    return tmp_path


def program(machine, name, body):
    file = machine / "bin" / name
    file.write_text(f'#!/usr/bin/env bash\necho {name} "$@" >>{machine}/calls\n{body}\n')
    file.chmod(0o755)


def run(machine, *arguments):
    path = {"PATH": str(machine / "bin")}
    command = ["bash", "scripts/setup", *arguments]
    return subprocess.run(command, cwd=machine, env=path, capture_output=True, text=True, check=False)


# Answers as an interpreter would to the questions that set-up asks; `venv` makes a copy of itself.
GOOD_PYTHON = """
case "$*" in
  *"-m venv"*) mkdir -p .venv/bin; cat "$0" >.venv/bin/python; cat "$0" >.venv/bin/pip; chmod +x .venv/bin/* ;;
  --version) echo Python 3.11.9 ;;
  *sys.version_info\\[:2\\]*) echo python3.11 ;;
esac
"""


def as_user(machine, uid):
    program(machine, "id", f"echo {uid}")


def test_an_old_python_gets_one_clear_line(machine):
    as_user(machine, 1000)
    program(machine, "python3", 'if [ "$1" = --version ]; then echo Python 3.9.2; else exit 1; fi')
    result = run(machine)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert "needs Python 3.11 or newer, found Python 3.9.2" in result.stderr


def test_no_python_gets_one_clear_line(machine):
    as_user(machine, 1000)
    result = run(machine)
    assert result.returncode == 1
    assert "found none: install python3.11" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_newer_python_is_used_where_the_default_one_is_old(machine):
    program(machine, "python3", "exit 1")
    program(machine, "python3.12", GOOD_PYTHON)
    assert run(machine).returncode == 0
    assert "python3.12 -m venv" in (machine / "calls").read_text()


NO_VENV_PYTHON = f"""
case "$*" in *"import ensurepip"*) [ -e {{machine}}/venv-installed ] || exit 1 ;; esac
{GOOD_PYTHON}
"""


def test_without_the_venv_module_a_user_is_told_what_to_install(machine):
    as_user(machine, 1000)
    program(machine, "python3", NO_VENV_PYTHON.replace("{machine}", str(machine)))
    program(machine, "apt-get", "exit 0")
    result = run(machine)
    assert result.returncode == 1
    assert result.stderr == (
        "setup: cannot create a virtual environment: run 'apt-get install python3.11-venv' as root\n"
    )
    assert "apt-get" not in (machine / "calls").read_text()


def test_without_the_venv_module_root_gets_it_installed(machine):
    as_user(machine, 0)
    program(machine, "python3", NO_VENV_PYTHON.replace("{machine}", str(machine)))
    program(machine, "apt-get", f"touch {machine}/venv-installed")
    assert run(machine).returncode == 0
    assert "install -y -qq python3.11-venv" in (machine / "calls").read_text()


def test_dependencies_are_installed_under_the_pins_and_only_when_something_changed(machine):
    program(machine, "python3", GOOD_PYTHON)
    assert run(machine).returncode == 0
    done = (machine / ".venv" / ".setup-done").stat().st_mtime
    calls = (machine / "calls").read_text()
    installs = [line for line in calls.splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert all("--constraint constraints.txt" in line for line in installs)

    assert run(machine).stdout == ""
    os.utime(machine / "constraints.txt", (done + 5, done + 5))
    assert "installing pinned dependencies" in run(machine).stdout


def installs(machine):
    return [line for line in (machine / "calls").read_text().splitlines() if "install" in line]


def test_the_demo_gets_the_broker_and_nothing_that_only_tests_need(machine):
    as_user(machine, 0)
    program(machine, "python3", GOOD_PYTHON)
    program(machine, "apt-get", "exit 0")
    assert run(machine, "broker").returncode == 0
    assert installs(machine)[-1].endswith(".[server,console]")
    assert not [line for line in installs(machine) if line.startswith("apt-get")]

    assert run(machine).returncode == 0
    wanted = " ".join(installs(machine))
    assert all(name in wanted for name in ("spark", "redis-server", "prometheus"))


def test_what_is_set_up_for_tests_is_enough_for_the_demo(machine):
    program(machine, "python3", GOOD_PYTHON)
    assert run(machine).returncode == 0
    assert run(machine, "broker").stdout == ""


def test_an_unknown_part_gets_one_clear_line(machine):
    result = run(machine, "everything")
    assert (result.returncode, result.stderr) == (
        1,
        "setup: cannot set up 'everything': say 'broker', or nothing for all\n",
    )


def test_pins_are_names_and_versions_only():
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    for line in lines[1:]:
        name, _, version = line.partition("==")
        assert name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        assert version.replace(".", "").isalnum()
