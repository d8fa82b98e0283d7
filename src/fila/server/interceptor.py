"""What every call has in common: its caller is looked up and its right checked; a refusal becomes a status, anything
else is logged and becomes INTERNAL.
"""

import asyncio
from dataclasses import replace
from typing import Any

import structlog

from fila.core.errors import BrokerError, KeyEnded, StoreFailed, Unauthenticated, UnknownSigner
from fila.server.access import Gate
from fila.server.access_table import RULES, Rule, When
from fila.server.refusals import Refusals
from fila.server.status import DEFECT, row_of, text_of, write_details
from fila.server.types import Method, Methods, ServerCall
from fila.wire.method import Aborted, Handler

log = structlog.get_logger(__name__)


def guarded(service: str, methods: Methods, gate: Gate, refusals: Refusals) -> dict[str, Method]:
    """The methods of one of our services by their paths, each wrapped. Raises KeyError for one that has no rule."""
    guarded: dict[str, Method] = {}
    for name, method in methods.items():
        path = f"/{service}/{name}"
        guarded[path] = replace(method, handler=_guarded(method.handler, path, RULES[path], gate, refusals))
    return guarded


def _guarded(handler: Handler, path: str, rule: Rule, gate: Gate, refusals: Refusals) -> Handler:
    checked = rule.when is When.BEFORE
    action = path.rpartition("/")[2]

    async def handle(request: Any, call: ServerCall) -> Any:
        access = None
        try:
            try:
                access = gate.enter(call)
            except UnknownSigner:
                access = await gate.enter_again(call)
            access.action = action
            if isinstance(request, BrokerError):  # it was refused before it was decoded
                raise request
            if checked and access.restricted:
                access.require(rule.needs(request))
            return await handler(request, call)
        except BrokerError as error:
            row, text = row_of(error), text_of(error)
            if isinstance(error, StoreFailed):
                log.warning("the store failed", method=path, error=type(error).__name__, reason=str(error.__cause__))
            elif isinstance(error, Unauthenticated) and not isinstance(error, KeyEnded):
                await gate.slow_down(call)
            elif access is not None and rule.changes is not None and not isinstance(request, BrokerError):
                await refusals.add(access.origin, rule.changes(request), row.code)
        except asyncio.CancelledError:
            if access is None or access.ended is None:
                raise
            row, text = row_of(access.ended), text_of(access.ended)
        except Aborted:
            raise
        except Exception:
            log.exception("call failed", method=path)
            row, text = DEFECT, "the broker failed to handle the call; its log says why"
        finally:
            gate.leave(call)
        # The details also tell a refusal from a failure of the connection.
        return await call.abort(row.code, text, write_details(row, text))

    return handle
