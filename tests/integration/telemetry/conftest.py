"""A real server that is watched, and a collector in the test's own process."""

import pytest

from tests.helpers.telemetry import Collector, Watched


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.close()


@pytest.fixture
def watched(tmp_path):
    with Watched(tmp_path, config='[telemetry]\nprometheus_listen = "127.0.0.1:0"\n') as server:
        yield server
        print(server.log)
