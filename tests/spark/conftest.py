"""One Spark session and one broker for all tests here.

`make test` runs them in a process of their own, so that one JVM is started.
"""

import itertools
import os

import pytest

from fila import Client
from fila.pipelines.session import open_session
from fila.spark.errors import SparkMissing
from fila.testing import ServerProcess
from tests.helpers.spark import COMPILED, QUICK

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items):
    """Spark plans and compiles for seconds what it then does at once, and a busy machine multiplies that."""
    for item in items:
        if "tests/spark" in item.path.as_posix():
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def spark():
    """A session on two cores. Without Java or pyspark the test is skipped, in CI it fails."""
    try:
        session = open_session("tests", "local[2]", QUICK)
    except SparkMissing as error:
        pytest.fail(str(error)) if os.environ.get("CI") else pytest.skip(str(error))
    yield session
    session.stop()


@pytest.fixture
def compiled(spark):
    """The session, making code for queries as it does in use."""
    for name, value in COMPILED.items():
        spark.conf.set(name, value)
    yield spark
    for name in COMPILED:
        spark.conf.set(name, QUICK[name])


@pytest.fixture(scope="session")
def broker():
    with ServerProcess(config="[journal]\nenabled = true\n") as server:
        yield server


@pytest.fixture
def client(broker):
    with Client(broker.addr, timeout=30) as client:
        yield client


@pytest.fixture
def queue(client):
    name = f"q{next(_numbers)}"
    client.create_queue(name)
    return name
