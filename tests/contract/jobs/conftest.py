"""Every backend of `fila.jobs`, so that one suite holds for all of them."""

import pytest

from tests.contract.jobs.backends import Memory


@pytest.fixture(params=["memory"])
def backend(request):
    """One backend, empty."""
    made = Memory()
    yield made
    made.close()


@pytest.fixture
def queue(backend):
    """An empty queue."""
    return backend.make()
