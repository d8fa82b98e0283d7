"""Tests of the whole: a real server process, reached through the SDK and the CLI alone."""

import pytest

from fila.testing import ServerProcess


@pytest.fixture
def server(tmp_path):
    """A server of the test's own, to be killed and restarted at will. Its log is shown when the test fails."""
    with ServerProcess(tmp_path) as process:
        yield process
        print(process.log)
