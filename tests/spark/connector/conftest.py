"""A broker for the connector's tests, one for all, and a queue of its own for each."""

import itertools

import pytest

from fila import Client
from fila.testing import ServerProcess

_numbers = itertools.count(1)


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
