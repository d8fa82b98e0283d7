import pytest

from fila.testing import ServerProcess


@pytest.fixture(scope="module")
def server():
    """A broker for tests that leave it running."""
    with ServerProcess() as process:
        yield process
