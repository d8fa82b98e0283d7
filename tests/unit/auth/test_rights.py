"""Grants and roles: what is not granted is not allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.auth.rights import APPLIES, BUILT_IN, Grant, Kind, Permission, Rights

PERMISSIONS = st.sampled_from(Permission)
KINDS = st.sampled_from(Kind)


@st.composite
def grants(draw):
    permission = draw(PERMISSIONS)
    kind = draw(st.sampled_from(sorted(APPLIES[permission])))
    return Grant(permission, kind, "" if kind is Kind.SERVER else draw(st.sampled_from(["a.*", "b", "**"])))


@given(grants())
def test_a_grant_reads_back_from_its_text(grant):
    assert Grant.parse(str(grant)) == grant


@given(st.lists(grants()), PERMISSIONS, KINDS, st.sampled_from(["a.x", "b", "c", "b.dlq"]))
def test_nothing_is_allowed_that_no_grant_allows(granted, permission, kind, name):
    names = {"a.*": {"a.x"}, "b": {"b", "b.dlq"} if kind is Kind.QUEUE else {"b"}, "**": {"a.x", "b", "c", "b.dlq"}}
    allowed = any(
        grant.permission is permission and grant.kind is kind and (kind is Kind.SERVER or name in names[grant.pattern])
        for grant in granted
    )
    rights = Rights((grant, "") for grant in granted)
    for _ in range(2):  # the second answer is remembered
        assert rights.allow(permission, kind, "" if kind is Kind.SERVER else name) is allowed


def test_without_a_kind_a_grant_is_about_queues():
    assert Grant.parse("enqueue=orders.**") == Grant(Permission.ENQUEUE, Kind.QUEUE, "orders.**")
    assert Grant.parse("browse=throttle:provider:aws").pattern == "provider:aws"


@pytest.mark.parametrize(
    "text",
    ["", "enqueue", "enqueue=", "fly=orders", "enqueue=server", "admin=queue:x", "admin=server:x", "audit=config:x"],
)
def test_grants_that_mean_nothing_are_refused(text):
    with pytest.raises(ValueError):
        Grant.parse(text)


def test_a_scope_narrows_every_grant_of_a_role():
    rights = Rights((grant, "orders.**") for grant in BUILT_IN["admin"])
    assert rights.allow(Permission.ENQUEUE, Kind.QUEUE, "orders.new")
    assert rights.allow(Permission.CONSUME, Kind.QUEUE, "orders.new.dlq")
    assert not rights.allow(Permission.ENQUEUE, Kind.QUEUE, "mail")
    assert not rights.allow(Permission.ADMIN, Kind.SERVER)


def test_a_viewer_sees_no_values_of_the_runtime_configuration():
    rights = Rights((grant, "") for grant in BUILT_IN["viewer"])
    assert rights.allow(Permission.BROWSE, Kind.QUEUE, "orders")
    assert not rights.allow(Permission.BROWSE, Kind.CONFIG, "pricing.secret")


def test_remembered_answers_are_bounded():
    rights = Rights([(Grant.parse("enqueue=a"), "")])
    for number in range(3 * Rights.MAX_KNOWN):
        assert not rights.allow(Permission.ENQUEUE, Kind.QUEUE, f"q{number}")
    assert len(rights._known) <= Rights.MAX_KNOWN
