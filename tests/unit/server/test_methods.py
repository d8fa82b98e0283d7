"""Every method of the contract is served, and as the kind of stream that the contract says."""

from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import pytest

import fila.v1
from fila.auth.rights import Kind
from fila.config import LimitsConfig
from fila.server import admin, auth, service
from fila.server.access_table import RULES, When
from fila.v1 import admin_pb2, auth_pb2, service_pb2
from tests.helpers.contract import METHODS, path_of

SERVICES = {
    "FilaService": (service_pb2, service.methods(MagicMock(), MagicMock(), MagicMock(), LimitsConfig())),
    "FilaAdmin": (admin_pb2, admin.methods(MagicMock())),
    "FilaAuth": (auth_pb2, auth.methods(MagicMock())),
}

NAMES_NO_RESOURCE = """
    message_id message_ids fairness_key headers payload dedup_key error lease_id group cursor key_prefix value
    fairness_header weight_header throttle_headers cost_header script on_enqueue on_failure who action resource
"""
"""Fields of requests with text that names no queue and no entry of the configuration"""


@pytest.mark.parametrize("name", SERVICES)
def test_every_method_of_the_contract_is_served(name):
    contract, served = SERVICES[name]
    declared = contract.DESCRIPTOR.services_by_name[name].methods
    assert {method.name: (method.client_streaming, method.server_streaming) for method in declared} == {
        name: (method.takes_stream, method.gives_stream) for name, method in served.items()
    }


@pytest.mark.parametrize("name", SERVICES)
def test_a_request_is_small_or_shares_the_limit_on_work(name):
    """What is as large as the connection accepts any, and is not counted, holds everybody up while it is decoded."""
    _, served = SERVICES[name]
    assert [name for name, method in served.items() if method.max_request_bytes is None and not method.bulk] == []


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


def fill(message):
    """Give every text of a request a value of its own, also inside its messages. Returns the values."""
    given = []
    for field in message.DESCRIPTOR.fields:
        if field.name in NAMES_NO_RESOURCE.split():
            continue
        value = getattr(message, field.name)
        if field.message_type is not None:
            given += fill(value.add() if field.is_repeated else value)
        elif field.type == field.TYPE_STRING:
            given.append(f"this {field.full_name}")
            if field.is_repeated:
                value.append(given[-1])
            else:
                setattr(message, field.name, given[-1])
    return given


CHECKED_ONCE = [name for name in METHODS if RULES[path_of(name)].when in {When.BEFORE, When.FIRST}]


@pytest.mark.parametrize("name", CHECKED_ONCE)
def test_a_right_is_asked_for_on_everything_that_a_request_names(name):
    """A request may name two queues: a rule that knows of one only (no `also`) would let everybody into the other."""
    (method, file), rule = METHODS[name], RULES[path_of(name)]
    request = getattr(file, method.input_type.name)()
    names = fill(request)
    assert rule.resource is not None
    needs = [resource for _, resource in rule.needs(request)]
    assert (Kind.SERVER, "") in needs or set(names) <= {resource for _, resource in needs}
