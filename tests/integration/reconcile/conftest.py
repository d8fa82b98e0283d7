import pytest

from fila.reconcile.simulator import Simulator


@pytest.fixture(scope="session")
def simulator():
    """One server for all tests; each uses platforms of its own."""
    with Simulator() as running:
        yield running


@pytest.fixture
def platform(request):
    """A platform name that no other test uses."""
    return f"p{abs(hash(request.node.nodeid))}"
