"""Everything that the broker names has its number in the contract."""

import pytest

from fila.auth.callers import How
from fila.auth.certificates import FIELDS
from fila.broker.explain import CAUSES
from fila.broker.outcomes import OUTCOMES
from fila.broker.stats import SORTS
from fila.client import enums as client_enums
from fila.core.errors import InvalidArgument
from fila.core.ledger import PARTS
from fila.core.lifecycle import State
from fila.server.audit import KINDS
from fila.server.enums import number_of, word_of
from fila.storage.records import OVERFLOWS, DeathReason, LeaseEnd
from fila.v1 import admin_pb2, auth_pb2, messages_pb2

KIND_NAMES = sorted(KINDS)

NAMES = {
    "WaitCause": (admin_pb2.WaitCause, list(CAUSES)),
    "KeyOrder": (admin_pb2.KeyOrder, [*SORTS, "name"]),
    "AttemptEnd": (messages_pb2.AttemptEnd, [one.name.lower() for one in LeaseEnd if OUTCOMES[one].counts]),
    "DeadLetterReason": (messages_pb2.DeadLetterReason, list(DeathReason)),
    "MessageState": (admin_pb2.MessageState, [one.value for one in State if one is not State.NONE]),
    "HookFailureCause": (admin_pb2.HookFailureCause, ["error", "timeout", "memory", "bad_return"]),
    "Hook": (admin_pb2.Hook, ["on_enqueue", "on_failure"]),
    "ClientAuth": (admin_pb2.ClientAuth, ["none", "optional", "required"]),
    "Overflow": (admin_pb2.Overflow, ["reject", "drop_oldest"]),
    "AuditResource": (admin_pb2.AuditResource, KIND_NAMES),
    "AuditStage": (admin_pb2.AuditStage, ["begin", "end"]),
    "CredentialKind": (auth_pb2.CredentialKind, list(How)),
    "CertificateField": (auth_pb2.CertificateField, FIELDS),
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


def test_a_number_of_a_request_that_the_contract_does_not_have_is_refused():
    assert word_of(admin_pb2.Overflow, 2, OVERFLOWS, "overflow") == "drop-oldest"
    for number in (0, 3, -1):
        with pytest.raises(InvalidArgument, match=f"overflow is {number}"):
            word_of(admin_pb2.Overflow, number, OVERFLOWS, "overflow")


def test_a_number_that_only_a_later_version_knows_can_be_sent_back():
    assert client_enums.number_of(admin_pb2.Overflow, client_enums.name_of(admin_pb2.Overflow, 99)) == 99
    assert client_enums.number_of(admin_pb2.Overflow, "drop-oldest") == 2
