"""The one place where the API decides who may do what, before anything else of a request is looked at.

1. `/healthz` is for everybody.
2. A request with a key is its owner's. A key that is wrong, expired or revoked is refused, later and later.
3. Without a key, and as long as none was ever created, peers on this machine are operators (protected mode); with
   `insecure` all peers are.
4. What the route needs is in `access.rights`; a route without a row is not served.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from ipaddress import ip_address

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fila.auth.failed_logins import FailedLogins
from fila.reconcile.access.rights import Caller, Permission, Role, permission_for
from fila.reconcile.api import errors
from fila.reconcile.api.errors import Refused
from fila.reconcile.store import StoreError
from fila.reconcile.store.keys import Keys

logger = logging.getLogger(__name__)

PROTECTED = (
    "there are no API keys, so only this machine is served: create one with `fila reconcile key create`, or set"
    " insecure = true in [api]"
)
OPEN = "insecure = true in [api]: as long as there are no API keys, everybody who reaches the port may do everything"


class AccessCheck:
    """Middleware, the outermost."""

    def __init__(self, app: ASGIApp, keys: Keys, clock_ms: Callable[[], int], *, insecure: bool) -> None:
        self._app = app
        self._keys = keys
        self._clock_ms = clock_ms
        self._insecure = insecure
        self._failed = FailedLogins()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there is no other kind of route, and no right for one
        try:
            scope.setdefault("state", {})["caller"] = await self._admit(scope)
        except Refused as refused:
            await _answer(refused)(scope, receive, send)
        except StoreError as error:
            await errors.unavailable(Request(scope), error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _admit(self, scope: Scope) -> Caller | None:
        needed = permission_for(scope["method"], scope["path"])
        if needed is Permission.NONE:
            return None
        caller = await self._caller(scope)
        if needed is None:
            raise Refused(404, "not_found", "there is nothing at this path")
        if not caller.may(needed):
            raise Refused(403, "forbidden", f"a key of the role {caller.role} may not do this")
        return caller

    async def _caller(self, scope: Scope) -> Caller:
        headers, peer = Headers(scope=scope), (scope.get("client") or ("",))[0]
        if "Authorization" in headers:
            return await self._owner(headers["Authorization"], peer)
        if await run_in_threadpool(self._keys.exist):
            raise Refused(401, "unauthorised", "an API key is needed: Authorization: Bearer KEY")
        if self._insecure or (_is_loopback(peer) and _is_plain_host(headers.get("Host", ""))):
            return Caller(Role.OPERATOR)
        raise Refused(403, "protected", PROTECTED)

    async def _owner(self, authorization: str, peer: str) -> Caller:
        scheme, _, token = authorization.partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else ""
        key = await run_in_threadpool(self._keys.check, given, self._clock_ms())
        if key is not None:
            return Caller(key.role, key.affiliate_id)
        count, wait_s = self._failed.fail(peer, time.monotonic())
        if count & (count - 1) == 0:  # 1, 2, 4, 8, ...: the log cannot be flooded
            logger.warning("login failed", extra={"peer": peer, "times": count})
        await asyncio.sleep(wait_s)
        raise Refused(401, "unauthorised", "the API key is unknown, expired or revoked")


def caller_of(request: Request) -> Caller:
    """For routes: who sent the request."""
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


def _answer(refused: Refused) -> JSONResponse:
    response = errors.answer(refused.status, refused.code, str(refused))
    if refused.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _is_loopback(peer: str) -> bool:
    try:
        found = ip_address(peer)
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def _is_plain_host(host: str) -> bool:
    """Whether a request was sent to `localhost` or to an address. A page whose name was made to lead here (DNS
    rebinding) sends its own name.
    """
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    try:
        ip_address(name)
    except ValueError:
        return name.lower() == "localhost"
    return True
