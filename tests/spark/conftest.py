"""One Spark session for all tests here. `make test` runs them in a process of their own, so that one JVM is started."""

import os

import pytest

from fila.spark.errors import SparkMissing
from fila.spark.session import open_session
from tests.helpers.spark import COMPILED, QUICK


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
