"""What is installed is what was tested: every dependency has a pinned version and a reason."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROJECTS = [ROOT / "pyproject.toml", ROOT / "packages" / "fila-client" / "pyproject.toml"]
OWN = {"fila", "fila-client"}


def plain(requirement):
    """The name of a package as registries compare it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def requirements(project):
    table = tomllib.loads(project.read_text())["project"]
    return [
        *table.get("dependencies", ()),
        *(each for extra in table["optional-dependencies"].values() for each in extra),
    ]


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.parent.name)
def test_every_dependency_is_pinned(project):
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {plain(line) for line in lines if re.fullmatch(r"[\w.-]+==\S+", line)}
    assert {plain(each) for each in requirements(project)} - OWN - pinned == set()


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.parent.name)
def test_every_dependency_has_a_reason(project):
    text = project.read_text()
    wrong = []
    for each in requirements(project):
        reason = re.search(rf'"{re.escape(each)}"[],]* *# \S', text, re.MULTILINE)
        if plain(each) not in OWN and reason is None:
            wrong.append(each)
    assert wrong == []
