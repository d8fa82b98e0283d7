"""Everything that the broker names has its number in the contract."""

import re
from pathlib import Path

import pytest

import fila.broker.explain
from fila.broker.stats import SORTS
from fila.client import enums as client_enums
from fila.core.ledger import PARTS
from fila.core.lifecycle import State
from fila.server.enums import number_of
from fila.storage.records import LeaseEnd
from fila.v1 import admin_pb2, messages_pb2

CODES = sorted(set(re.findall(r'Reason\("(\w+)"', Path(fila.broker.explain.__file__).read_text(encoding="utf-8"))))

NAMES = {
    "WaitCause": (admin_pb2.WaitCause, CODES),
    "KeyOrder": (admin_pb2.KeyOrder, [*SORTS, "name"]),
    "AttemptEnd": (messages_pb2.AttemptEnd, [one.name.lower() for one in LeaseEnd if one is not LeaseEnd.RELEASED]),
    "DeadLetterReason": (
        messages_pb2.DeadLetterReason,
        ["max_attempts", "on_failure", "rejected", "max_depth", "max_bytes"],
    ),
    "MessageState": (admin_pb2.MessageState, [one.value for one in State if one is not State.NONE]),
    "HookFailureCause": (admin_pb2.HookFailureCause, ["error", "timeout", "memory", "bad_return"]),
    "Hook": (admin_pb2.Hook, ["on_enqueue", "on_failure"]),
    "ClientAuth": (admin_pb2.ClientAuth, ["none", "optional", "required"]),
    "Durability": (admin_pb2.Durability, ["wal", "fsync"]),
}


@pytest.mark.parametrize("enum, names", NAMES.values(), ids=NAMES)
def test_names_and_numbers_stand_for_each_other(enum, names):
    """On both ends, and none is left over."""
    numbers = [number_of(enum, name) for name in names]
    assert sorted({0, *numbers}) == sorted(enum.values())
    assert [client_enums.name_of(enum, number) for number in numbers] == list(names)


def test_nothing_is_0_and_a_later_number_is_its_own_name():
    assert number_of(admin_pb2.Hook, "") == 0
    assert client_enums.name_of(admin_pb2.Hook, 0) == ""
    assert client_enums.name_of(admin_pb2.Hook, 99) == "99"


def test_the_parts_of_a_wait_are_the_fields_of_the_contract():
    assert {field.name for field in admin_pb2.WaitParts.DESCRIPTOR.fields} == set(PARTS)
