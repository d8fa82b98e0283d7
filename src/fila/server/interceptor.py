"""What every call has in common: a refusal becomes a status, anything else is logged and becomes INTERNAL."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import structlog

from fila.core.errors import BrokerError, StoreFailed
from fila.server.status import status_of
from fila.server.types import Context, MethodHandler

log = structlog.get_logger(__name__)

REFUSAL_MARK = "fila-error"

Handler = Callable[[Any, Context], Awaitable[Any]]


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every handler. Handlers are coroutines: streams read and write through their context."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[MethodHandler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith("/fila."):
            return handler
        for kind in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
            behavior = getattr(handler, kind)
            if behavior is not None:
                make = getattr(grpc, f"{kind}_rpc_method_handler")
                wrapped = _guarded(behavior, handler_call_details.method)
                return make(wrapped, handler.request_deserializer, handler.response_serializer)
        return handler


def _guarded(behavior: Handler, method: str) -> Handler:
    async def call(request: Any, context: Context) -> Any:
        try:
            return await behavior(request, context)
        except BrokerError as error:
            code, text, kind = status_of(error), str(error), type(error).__name__
            if isinstance(error, StoreFailed):
                log.warning("the store failed", method=method, error=kind, reason=str(error.__cause__))
        except (grpc.aio.AbortError, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("call failed", method=method)
            code, kind = grpc.StatusCode.INTERNAL, "Defect"
            text = "the broker failed to handle the call; its log says why"
        # Out here, so that what gRPC keeps of the abort does not hold the error, its frames and the request in them.
        # The mark tells a refusal from a failure of the connection.
        return await context.abort(code, text, ((REFUSAL_MARK, kind),))

    return call
