"""Refuses a request whose body is too large, before more of it than is allowed is held in memory."""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """Middleware. It looks at the announced length first, then counts what really comes in."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        body = await self._read(receive) if announced.isdigit() and int(announced) <= self._max_bytes else None
        if body is None:
            text = f"a request may have {self._max_bytes} bytes"
            refusal = JSONResponse({"error": {"code": "too_large", "message": text}}, 413, {"Connection": "close"})
            await refusal(scope, receive, send)
            return
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return unread.pop() if unread else await receive()

        await self._app(scope, replayed, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """The whole body; None if it is too large."""
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self._max_bytes:
                return None
            if not message.get("more_body", False):
                return bytes(body)
