"""docs/protocol.md says what the server does: its error table, its list of calls and its transcript are checked."""

import re
from pathlib import Path

import pytest
from google.rpc import status_pb2

from fila.server.status import DEFECT, TABLE
from fila.v1 import admin_pb2, auth_pb2, errors_pb2, service_pb2
from fila.wire.status import StatusCode

PAGE = (Path(__file__).parents[3] / "docs/protocol.md").read_text(encoding="utf-8")
ROWS = {
    kind: (status, retryable == "yes", int(after or 0))
    for kind, status, retryable, after in re.findall(
        r"^\| `([A-Z_]+)` \| `([A-Z_]+)` \| (yes|no) \| (\d*) ?\|", PAGE, re.MULTILINE
    )
}
LATER = {"NOT_OWNER"}
"""Kinds that no error of this server has."""
LINES = re.findall(r"^[<>] (\w+) +((?:[0-9a-f]{2} ?)+)$", PAGE, re.MULTILINE)


def test_the_error_table_has_every_kind():
    assert set(ROWS) == {name.removeprefix("ERROR_KIND_") for name, number in errors_pb2.ErrorKind.items() if number}


def test_the_error_table_is_the_one_that_the_server_goes_by():
    served = {
        errors_pb2.ErrorKind.Name(row.kind).removeprefix("ERROR_KIND_"): (
            row.code.name,
            row.retryable,
            row.retry_after_ms,
        )
        for row in (*TABLE.values(), DEFECT)
    }
    assert served == {kind: row for kind, row in ROWS.items() if kind in served}
    assert set(ROWS) - set(served) <= LATER


def test_kinds_that_this_server_never_sends_follow_the_rule_of_the_others():
    for kind in LATER:
        status, retryable, _ = ROWS[kind]
        assert retryable == (StatusCode[status] in {StatusCode.RESOURCE_EXHAUSTED, StatusCode.UNAVAILABLE})


@pytest.mark.parametrize("module", [service_pb2, admin_pb2, auth_pb2])
def test_every_call_is_listed(module):
    for service in module.DESCRIPTOR.services_by_name.values():
        assert [method.name for method in service.methods if f"`{method.name}`" not in PAGE] == []


@pytest.mark.parametrize("name, encoded", LINES, ids=[name for name, _ in LINES])
def test_the_bytes_of_the_transcript_are_what_they_are_called(name, encoded):
    """They are read without a field that the contract does not have, and written again in the same bytes."""
    message = (status_pb2 if name == "Status" else service_pb2).__dict__[name].FromString(bytes.fromhex(encoded))
    assert message.SerializeToString() == bytes.fromhex(encoded)
    message.DiscardUnknownFields()
    assert message.SerializeToString(deterministic=True) == bytes.fromhex(encoded)


def test_the_transcript_was_found():
    assert len(LINES) == 11
