"""Refusals become statuses; anything else is logged, and says nothing of its inside."""

import asyncio
from types import SimpleNamespace

import grpc
import pytest
from structlog.testing import capture_logs

from fila.core.errors import QueueNotFound, ShuttingDown
from fila.server.interceptor import ErrorInterceptor


class Context:
    """As much of a call as the interceptor touches."""

    def __init__(self):
        self.aborted = None

    async def abort(self, code, details="", trailing_metadata=()):
        self.aborted = (code, details, dict(trailing_metadata))
        raise grpc.aio.AbortError


def call(behavior, *, kind="unary_unary", method="/fila.v1.FilaService/Ack", context=None):
    handler = getattr(grpc, f"{kind}_rpc_method_handler")(behavior)

    async def continuation(_):
        return handler

    async def run():
        wrapped = await ErrorInterceptor().intercept_service(continuation, SimpleNamespace(method=method))
        return await getattr(wrapped, kind)("request", context)

    return asyncio.run(run())


def refuse(error):
    async def behavior(request, context):
        raise error

    return behavior


@pytest.mark.parametrize("kind", ["unary_unary", "unary_stream", "stream_unary", "stream_stream"])
def test_a_refusal_becomes_its_status_with_its_text_and_its_name(kind):
    context = Context()
    with pytest.raises(grpc.aio.AbortError):
        call(refuse(QueueNotFound("q")), kind=kind, context=context)
    expected = (grpc.StatusCode.NOT_FOUND, 'queue "q" does not exist', {"fila-error": "QueueNotFound"})
    assert context.aborted == expected


def test_a_refusal_is_not_logged():
    with capture_logs() as logs, pytest.raises(grpc.aio.AbortError):
        call(refuse(ShuttingDown()), context=Context())
    assert logs == []


def test_a_defect_is_logged_with_its_method_and_tells_the_client_nothing_of_it():
    context = Context()
    with capture_logs() as logs, pytest.raises(grpc.aio.AbortError):
        call(refuse(ValueError("secret")), context=context)
    code, details, _ = context.aborted
    assert code is grpc.StatusCode.INTERNAL
    assert "secret" not in details
    assert [(log["event"], log["method"]) for log in logs] == [("call failed", "/fila.v1.FilaService/Ack")]


@pytest.mark.parametrize("error", [asyncio.CancelledError(), grpc.aio.AbortError()])
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


def test_services_of_others_are_not_touched():
    """Health and reflection have handlers of another kind."""
    with pytest.raises(QueueNotFound):
        call(refuse(QueueNotFound("q")), method="/grpc.health.v1.Health/Check")


def test_an_unknown_method_stays_unknown():
    async def continuation(_):
        return None

    details = SimpleNamespace(method="/fila.v1.FilaService/Nothing")
    assert asyncio.run(ErrorInterceptor().intercept_service(continuation, details)) is None
