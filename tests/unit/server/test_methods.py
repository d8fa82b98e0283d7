"""Every method of the contract is served, and as the kind of stream that the contract says."""

from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import pytest

import fila.v1
from fila.config import LimitsConfig
from fila.server import admin, auth, service
from fila.server.access_table import RULES
from fila.v1 import admin_pb2, auth_pb2, service_pb2

SERVICES = {
    "FilaService": (service_pb2, service.methods(MagicMock(), MagicMock(), MagicMock(), LimitsConfig())),
    "FilaAdmin": (admin_pb2, admin.methods(MagicMock())),
    "FilaAuth": (auth_pb2, auth.methods(MagicMock())),
}


@pytest.mark.parametrize("name", SERVICES)
def test_every_method_of_the_contract_is_served(name):
    contract, served = SERVICES[name]
    declared = contract.DESCRIPTOR.services_by_name[name].methods
    assert {method.name: (method.client_streaming, method.server_streaming) for method in declared} == {
        name: (method.takes_stream, method.gives_stream) for name, method in served.items()
    }


def test_every_method_of_the_contract_has_a_rule_and_no_rule_is_left_over():
    """Walks the descriptors of all services, also of those that a later proto file adds."""
    files = [import_module(f"fila.v1.{path.stem}") for path in Path(fila.v1.__path__[0]).glob("*_pb2.py")]
    declared = {
        f"/{contract.full_name}/{method.name}"
        for file in files
        for contract in file.DESCRIPTOR.services_by_name.values()
        for method in contract.methods
    }
    assert declared == set(RULES)
    assert {name.split(".")[-1] for name in SERVICES} == {path.split("/")[1].split(".")[-1] for path in declared}
