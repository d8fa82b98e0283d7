import pytest

from fila.reconcile.simulator import Simulator
from tests.helpers.reconcile_api import Bench


@pytest.fixture(scope="session")
def simulator():
    """One server for all tests; each uses platforms of its own."""
    with Simulator() as running:
        yield running


@pytest.fixture
def platform(request):
    """A platform name that no other test uses."""
    return f"p{abs(hash(request.node.nodeid))}"


@pytest.fixture
def bench(tmp_path):
    made = []

    def make(**given):
        made.append(Bench(tmp_path, **given))
        return made[-1]

    yield make
    for each in made:
        each.close()
