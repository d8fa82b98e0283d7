"""Every backend of `fila.jobs`, so that one suite holds for all of them."""

import pytest

from fila.testing import RedisProcess, ServerProcess
from tests.contract.jobs.backends import Fila, Memory, Redis


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    """One Redis for all tests that leave it running."""
    with RedisProcess(tmp_path_factory.mktemp("redis")) as process:
        yield process


@pytest.fixture(scope="session")
def fila_server(tmp_path_factory):
    """One broker for all tests."""
    with ServerProcess(tmp_path_factory.mktemp("fila")) as process:
        yield process


@pytest.fixture(params=["memory", "redis", "fila"])
def backend(request):
    """One backend, empty."""
    if request.param == "memory":
        made = Memory()
    elif request.param == "redis":
        made = Redis(request.getfixturevalue("redis_server").url)
    else:
        made = Fila(request.getfixturevalue("fila_server").addr)
    yield made
    made.close()


@pytest.fixture
def queue(backend):
    """An empty queue."""
    return backend.make()
