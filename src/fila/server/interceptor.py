"""What every call has in common: a refusal becomes a status, anything else is logged and becomes INTERNAL."""

import asyncio
from dataclasses import replace
from typing import Any

import structlog

from fila.core.errors import BrokerError, StoreFailed
from fila.server.status import status_of
from fila.server.types import Context, Method, Methods
from fila.wire.context import Aborted, Handler
from fila.wire.status import StatusCode

log = structlog.get_logger(__name__)

REFUSAL_MARK = "fila-error"


def guarded(service: str, methods: Methods) -> dict[str, Method]:
    """The methods of one of our services by their paths, each wrapped."""
    guarded: dict[str, Method] = {}
    for name, method in methods.items():
        path = f"/{service}/{name}"
        guarded[path] = replace(method, handler=_guarded(method.handler, path))
    return guarded


def _guarded(handler: Handler, path: str) -> Handler:
    async def call(request: Any, context: Context) -> Any:
        try:
            if isinstance(request, BrokerError):  # it was refused before it was decoded
                raise request
            return await handler(request, context)
        except BrokerError as error:
            code, text, kind = status_of(error), str(error), type(error).__name__
            if isinstance(error, StoreFailed):
                log.warning("the store failed", method=path, error=kind, reason=str(error.__cause__))
        except (Aborted, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("call failed", method=path)
            code, kind = StatusCode.INTERNAL, "Defect"
            text = "the broker failed to handle the call; its log says why"
        # The mark tells a refusal from a failure of the connection.
        return await context.abort(code, text, ((REFUSAL_MARK, kind),))

    return call
