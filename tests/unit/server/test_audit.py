"""What the audit is told of a purge or redrive."""

import pytest

from fila.server.audit import FROM_CALL_TO_CALL, describe_sweep, identity_of_sweep
from fila.v1 import admin_pb2 as pb

RESOURCE = {"queue", "dlq_queue"}
"""What the entry is about, in a column of its own"""


def requests_with_one_field(kind):
    """A request for every field, also for each of its filter, that says this and nothing else."""
    for field in kind.DESCRIPTOR.fields:
        if field.message_type is None:
            yield field.name, kind(**{field.name: 1 if field.type != field.TYPE_STRING else "x"})
            continue
        for inside in field.message_type.fields:
            request = kind()
            one = getattr(request, field.name)
            if inside.name == "headers":
                one.headers.add(name="x", value="y")
            elif inside.is_repeated:
                getattr(one, inside.name).append(1 if inside.type != inside.TYPE_STRING else "x")
            else:
                setattr(one, inside.name, 1 if inside.type != inside.TYPE_STRING else "x")
            yield inside.name, request


@pytest.mark.parametrize("kind", [pb.PurgeRequest, pb.RedriveRequest])
def test_every_field_that_says_which_messages_is_told(kind):
    nothing = describe_sweep(kind())
    untold = {name for name, request in requests_with_one_field(kind) if describe_sweep(request) == nothing}
    assert untold <= RESOURCE | set(FROM_CALL_TO_CALL)


@pytest.mark.parametrize("kind", [pb.PurgeRequest, pb.RedriveRequest])
def test_every_field_but_those_that_change_from_call_to_call_tells_a_sweep_from_others(kind):
    same = identity_of_sweep(kind())
    alike = {name for name, request in requests_with_one_field(kind) if identity_of_sweep(request) == same}
    assert alike == set(FROM_CALL_TO_CALL)
