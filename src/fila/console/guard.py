"""What every request must pass, and what every answer carries. Plain ASGI, around everything else.

| refused | why |
|---|---|
| a Host that is not ours | DNS rebinding: a page of another site whose name now points here |
| a POST whose Origin is another site | CSRF, beside the token in each form |
| a method other than GET, HEAD, POST | nothing here needs one |
| a body above the limit | memory |

The policy (CSP) allows scripts, styles and pictures of our own files alone: no inline code, no eval, no other host.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fila.console.limits import MAX_BODY_BYTES

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

_HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, browsers hide Origin from our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}


class Guard:
    """Lets through what is meant for us."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], *, secure: bool = False) -> None:
        """`hosts` are the values of Host that are ours, each with its port."""
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        app = self._app if refusal is None else PlainTextResponse(refusal[1] + "\n", refusal[0])
        await app(scope, receive, self._sealed(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host", "").lower() not in self._hosts:
            return 421, "This host is not the console: open it by the address that it printed, or add --host NAME."
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            return 405, "Only GET, HEAD and POST are answered."
        length = headers.get("content-length", "0")
        if scope["method"] == "POST":
            if not self._same_site(headers):
                return 403, "The form comes from another site."
            if not length.isdecimal() or int(length) > MAX_BODY_BYTES or "transfer-encoding" in headers:
                return 413, f"The body must have a length of at most {MAX_BODY_BYTES:,} bytes."
        return None

    def _same_site(self, headers: dict[str, str]) -> bool:
        """Browsers send Origin with every POST, and Sec-Fetch-Site where they know it."""
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            return False
        origin = headers.get("origin")
        if origin is None:
            return "sec-fetch-site" in headers
        parts = urlsplit(origin)
        scheme = "https" if self._secure else "http"
        return (parts.scheme, parts.netloc.lower()) == (scheme, headers.get("host", "").lower())

    def _sealed(self, send: Send) -> Send:
        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if self._secure:
                    headers.setdefault("strict-transport-security", "max-age=31536000")
            await send(message)

        return sealed
