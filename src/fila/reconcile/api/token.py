"""Refuses a request that does not bring the token, before anything else of it is looked at."""

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from fila.reconcile.api import errors

OPEN = "/healthz"
"""The one path for which nobody needs a token: who looks after processes has none."""


class TokenCheck:
    """Middleware, the outermost. Without a token to check it lets everything pass."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != OPEN and not self._brings_it(Headers(scope=scope)):
            await errors.answer(401, "unauthorised", "a bearer token is needed")(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _brings_it(self, headers: Headers) -> bool:
        given = headers.get("Authorization", "").encode()
        return self._expected is None or hmac.compare_digest(given, self._expected)
