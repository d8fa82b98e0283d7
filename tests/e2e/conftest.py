"""Tests of the whole: a real server process, reached through the SDK and the CLI alone."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fila import Client
from fila.testing import ServerProcess

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server(tmp_path):
    """A server of the test's own, to be killed and restarted at will. Its log is shown when the test fails."""
    with ServerProcess(tmp_path) as process:
        yield process
        print(process.log)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    """One server for all tests that leave it running; each uses a queue of its own."""
    with ServerProcess(tmp_path_factory.mktemp("shared")) as process:
        yield process


@pytest.fixture
def client(shared_server):
    """A client of the shared server. What the server logs during the test is shown when the test fails."""
    before = len(shared_server.log)
    with Client(shared_server.addr, timeout=30) as client:
        yield client
    print(shared_server.log[before:])


@pytest.fixture
def queue(request):
    """A queue name that no other test uses."""
    return re.sub(r"\W", "-", f"{request.module.__name__.rpartition('.')[2]}.{request.node.name}")[:200]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """The wheel of each distribution by its name. Built from a copy, since a build leaves files behind."""
    tree, made = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheels")
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, tree)
    for name in ("src", "packages"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    for source in (tree / "packages" / "fila-client", tree):
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        command += ["--wheel-dir", made, source]
        built = subprocess.run(command, check=False, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
    return {wheel.name.split("-")[0].replace("_", "-"): wheel for wheel in made.glob("*.whl")}
