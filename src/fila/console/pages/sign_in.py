"""Signing in with an API key, and out."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from fila.console.forms import read_form
from fila.console.pages.base import Page, session_of, set_session
from fila.console.rendering import render
from fila.console.sessions import Refused, Sessions
from fila.console.urls import local


async def form(request: Request) -> Response:
    return _form(request, "")


def _form(request: Request, error: str, status: int = 200) -> Response:
    about = {"error": error, "next": local(request.query_params.get("next", "/"))}
    return render(request, "sign-in.html", about, status=status)


async def sign_in(request: Request) -> Response:
    """The key goes to the broker, which says whose it is. No session, so no token: the guard has compared the origin,
    and being signed in with somebody else's key gives nothing away.
    """
    sessions: Sessions = request.app.state.sessions
    fields = await read_form(request, None)
    key = fields.get("key", "").strip()
    try:
        if not key:
            raise Refused("Paste a key.")
        cookie, session = await sessions.begin(key)
    except Refused as refused:
        return _form(request, str(refused), 403)
    await sessions.end(request.state.cookie)
    request.state.session, request.state.cookie = session, cookie
    response = RedirectResponse(local(fields.get("next", "/")), 303)
    set_session(response, request, cookie)
    return response


async def sign_out(request: Request) -> Response:
    sessions: Sessions = request.app.state.sessions
    await read_form(request, session_of(request))
    await sessions.end(request.state.cookie)
    request.state.cookie = ""
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(request.app.state.cookie, path="/")
    return response


PAGES = (
    Page("/sign-in", form, needs_session=False),
    Page("/sign-in", sign_in, ("POST",), needs_session=False),
    Page("/sign-out", sign_out, ("POST",)),
)
