"""The DAG of examples/: its tasks run commands that there are, with options that they take, in the right order."""

import runpy
import shlex
import subprocess
import sys
from types import ModuleType
from typing import ClassVar

import pytest

from fila.cli.main import cli
from tests.support.pages import ROOT

EXAMPLE = ROOT / "examples" / "pipeline" / "airflow_dag.py"
DAY = "2026-11-15"  # a Sunday


class Dag:
    """Stands in for Airflow, which has a hundred packages: what a DAG is made with."""

    tasks: ClassVar = {}

    def __init__(self, name, **settings):
        self.settings = settings

    def __enter__(self):
        Dag.tasks = {}
        return self

    def __exit__(self, *_):
        pass


class Task:
    def __init__(self, task_id, bash_command, **settings):
        self.command = bash_command.replace("{{ ds }}", DAY)
        self.settings, self.after = settings, []
        Dag.tasks[task_id] = self

    def __rshift__(self, others):
        self.after = others


@pytest.fixture
def tasks(monkeypatch):
    for name, values in {
        "airflow": {},
        "airflow.sdk": {"DAG": Dag},
        "airflow.providers": {},
        "airflow.providers.standard": {},
        "airflow.providers.standard.operators": {},
        "airflow.providers.standard.operators.bash": {"BashOperator": Task},
    }.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    runpy.run_path(str(EXAMPLE))
    return Dag.tasks


def parsed(command):
    """What the command line makes of `fila pipeline ...`. Raises click's errors."""
    _, group, name, *arguments = shlex.split(command)
    return cli.commands[group].commands[name].make_context(name, arguments).params


def test_the_commands_are_taken(tasks):
    daily = parsed(tasks["daily"].command)
    assert daily["day"].date().isoformat() == DAY
    assert (daily["max_refused"], daily["max_age"]) == (200, 36 * 3_600_000)
    assert "{date}" in daily["reports"]
    assert "{date}" in daily["metrics"]
    checks = parsed(tasks["failed_checks"].command)
    assert checks["failed"]
    assert checks["out"] == daily["out"]
    condition, _, maintain = tasks["maintain"].command.partition(" || ")
    assert parsed(maintain)["out"] == daily["out"]
    for day, runs in ((DAY, True), ("2026-11-16", False)):
        done = subprocess.run(["bash", "-c", condition.replace(DAY, day)], check=False)
        assert (done.returncode != 0) == runs, day


def test_what_failed_is_printed_when_a_day_failed(tasks):
    assert tasks["daily"].after == [tasks["maintain"], tasks["failed_checks"]]
    assert tasks["failed_checks"].settings["trigger_rule"] == "one_failed"
