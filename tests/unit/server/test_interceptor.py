"""Refusals become statuses; anything else is logged, and says nothing of its inside."""

import asyncio

import pytest
from structlog.testing import capture_logs

from fila.client.errors import details_of
from fila.core.errors import QueueNotFound, ShuttingDown
from fila.server.interceptor import guarded
from fila.v1 import errors_pb2
from fila.wire.method import Aborted, Method
from fila.wire.status import RpcError, StatusCode
from tests.helpers.access import NoRefusals, OpenGate


class Context:
    """As much of a call as the interceptor touches."""

    def __init__(self):
        self.aborted = None

    async def abort(self, code, details="", trailing_metadata=()):
        self.aborted = (code, details, dict(trailing_metadata))
        raise Aborted


def call(behavior, *, context=None):
    methods = guarded("fila.v1.FilaService", {"Ack": Method(behavior, bytes, bytes)}, OpenGate(), NoRefusals())
    return asyncio.run(methods["/fila.v1.FilaService/Ack"].handler("request", context))


def refuse(error):
    async def behavior(request, context):
        raise error

    return behavior


def test_a_refusal_becomes_its_status_with_its_text_and_its_kind():
    context = Context()
    with pytest.raises(Aborted):
        call(refuse(QueueNotFound("q")), context=context)
    code, text, trailers = context.aborted
    assert (code, text) == (StatusCode.NOT_FOUND, 'queue "q" does not exist')
    details = details_of(RpcError(code, text, tuple(trailers.items())))
    assert details.kind == errors_pb2.ERROR_KIND_QUEUE_NOT_FOUND


def test_a_refusal_is_not_logged():
    with capture_logs() as logs, pytest.raises(Aborted):
        call(refuse(ShuttingDown()), context=Context())
    assert logs == []


def test_a_defect_is_logged_with_its_method_and_tells_the_client_nothing_of_it():
    context = Context()
    with capture_logs() as logs, pytest.raises(Aborted):
        call(refuse(ValueError("secret")), context=context)
    code, details, _ = context.aborted
    assert code is StatusCode.INTERNAL
    assert "secret" not in details
    assert [(log["event"], log["method"]) for log in logs] == [("call failed", "/fila.v1.FilaService/Ack")]


@pytest.mark.parametrize("error", [asyncio.CancelledError(), Aborted()])
def test_a_call_that_was_ended_already_is_left_alone(error):
    context = Context()
    with capture_logs() as logs, pytest.raises(type(error)):
        call(refuse(error), context=context)
    assert context.aborted is None
    assert logs == []


def test_an_answer_passes_through():
    async def behavior(request, context):
        return request.upper()

    assert call(behavior) == "REQUEST"


def test_a_method_keeps_everything_but_its_handler():
    async def behavior(request, context):
        return request

    method = Method(behavior, str, bytes, takes_stream=True, gives_stream=True)
    (wrapped,) = guarded("fila.v1.FilaService", {"Consume": method}, OpenGate(), NoRefusals()).values()
    assert (wrapped.read, wrapped.write, wrapped.takes_stream, wrapped.gives_stream) == (str, bytes, True, True)
