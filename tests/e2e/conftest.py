"""Tests of the whole: a real server process, reached through the SDK and the CLI alone."""

import re

import pytest

from fila import Client
from fila.testing import ServerProcess

pytest.register_assert_rewrite("tests.e2e.load", "tests.e2e.support")


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
