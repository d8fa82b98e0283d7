"""The application: routes, who may enter, and what becomes of errors."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fila.client import (
    FilaError,
    FilaTimeoutError,
    PermissionDeniedError,
    QueueNotFoundError,
    TLSError,
    UnavailableError,
)
from fila.console.forms import BadForm
from fila.console.guard import Guard
from fila.console.links import Links
from fila.console.pages import PAGES
from fila.console.pages.base import Page, back, set_session
from fila.console.rendering import LIVE, render
from fila.console.sessions import Refused, Session, Sessions
from fila.console.urls import url
from fila.wire.address import is_loopback

Handler = Callable[[Request], Awaitable[Response]]

_STATIC = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def console_app(
    links: Links,
    hosts: Iterable[str],
    cookie: str,
    *,
    secure: bool = False,
    keyless: bool = True,
    reports: Path | None = None,
) -> Starlette:
    """The console as an ASGI application. `hosts` are the values of Host that it answers to. With `keyless`, browsers
    on this machine need no key while the broker asks for none.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await links.close()

    routes = [Route(f"/static/{name}", _static(name), methods=["GET"]) for name in _STATIC]
    routes += [Route(page.path, _entered(page), methods=list(page.methods)) for page in PAGES]
    guard = Middleware(Guard, hosts=tuple(hosts), secure=secure)
    app = Starlette(routes=routes, middleware=[guard], lifespan=lifespan)
    app.state.links = links
    app.state.sessions = Sessions(links)
    app.state.secure = secure
    app.state.keyless = keyless
    app.state.cookie = cookie
    app.state.reports = reports
    return app


def _static(name: str) -> Handler:
    body = (files("fila.console") / "static" / name).read_bytes()

    async def static(_: Request) -> Response:
        return Response(body, media_type=_STATIC[name], headers={"cache-control": "max-age=300"})

    return static


def _entered(page: Page) -> Handler:
    """The page for whoever is signed in; others go to the sign-in page."""

    async def handler(request: Request) -> Response:
        sessions: Sessions = request.app.state.sessions
        cookie, session = request.cookies.get(request.app.state.cookie, ""), None
        try:
            session = sessions.find(cookie)
            if session is None and page.needs_session:
                cookie, session = await _enter(request, sessions)
            request.state.session, request.state.cookie = session, cookie
            response = await page.handle(request)
        except Refused:
            return _to_sign_in(request)
        except PermissionDeniedError as error:
            return await _denied(request, sessions, cookie, session, error)
        except (FilaError, BadForm) as error:
            response = _failed(request, error)
        if (
            session is not None
            and request.cookies.get(request.app.state.cookie) != cookie
            and request.state.cookie == cookie
        ):
            set_session(response, request, cookie)
        return response

    return handler


async def _enter(request: Request, sessions: Sessions) -> tuple[str, Session]:
    """Without a key, for a browser on this machine and a broker that asks for none. Raises Refused."""
    if not request.app.state.keyless or request.client is None or not is_loopback(request.client.host):
        raise Refused("Sign in with a key.")
    return await sessions.begin(None)


def _to_sign_in(request: Request) -> Response:
    if LIVE in request.headers:
        return Response("Signed out", 401)
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(url("/sign-in", next=wanted if request.method == "GET" else "/"), 303)


async def _denied(
    request: Request, sessions: Sessions, cookie: str, session: Session | None, error: PermissionDeniedError
) -> Response:
    """A key that is no longer valid ends the session; one that may not do this is told so."""
    if session is not None:
        try:
            await session.link.client.auth.who_am_i()
        except PermissionDeniedError:
            await sessions.end(cookie)
            return _to_sign_in(request)
        except FilaError:
            pass
    text = f"Your key does not allow this: {error}"
    if (answer := _back_with(request, text)) is not None:
        return answer
    about = {"title": "Not allowed", "text": text, "away": False}
    return render(request, "error.html", about, status=403)


def _back_with(request: Request, text: str) -> Response | None:
    """An action that was refused leads back to the page that it was on, which says why."""
    fields = getattr(request.state, "fields", None)
    if fields is None or "back" not in fields or request.state.session is None:
        return None
    request.state.session.notices.append(("error", text))
    return back(fields)


def _failed(request: Request, error: FilaError | BadForm) -> Response:
    """What the person can do about it. A broker that is away is asked again by the page itself."""
    request.state.session = getattr(request.state, "session", None)
    if (answer := _back_with(request, str(error))) is not None:
        return answer
    match error:
        case UnavailableError() | FilaTimeoutError() | TLSError():
            about = {"title": "The broker does not answer", "text": str(error), "away": True}
            return render(request, "error.html", about, status=503)
        case QueueNotFoundError():
            about = {"title": "Not found", "text": str(error), "away": False}
            return render(request, "error.html", about, status=404)
    about = {"title": "Refused", "text": str(error), "away": False}
    return render(request, "error.html", about, status=400)
