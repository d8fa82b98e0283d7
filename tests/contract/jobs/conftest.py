"""Every backend of `fila.jobs`, so that one suite holds for all of them."""

import pytest

from fila.testing import RedisProcess
from tests.contract.jobs.backends import Memory, Redis


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    """One Redis for all tests that leave it running."""
    with RedisProcess(tmp_path_factory.mktemp("redis")) as process:
        yield process


@pytest.fixture(params=["memory", "redis"])
def backend(request):
    """One backend, empty."""
    if request.param == "memory":
        made = Memory()
    else:
        made = Redis(request.getfixturevalue("redis_server").url)
    yield made
    made.close()


@pytest.fixture
def queue(backend):
    """An empty queue."""
    return backend.make()
