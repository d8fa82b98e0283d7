"""What pages have in common: a path, and a handler that is given a request with a session."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from fila.console.links import Link
from fila.console.sessions import Session
from fila.console.urls import local


@dataclass(frozen=True, slots=True)
class Page:
    """One route."""

    path: str
    handle: Callable[[Request], Awaitable[Response]]
    methods: tuple[str, ...] = ("GET",)
    needs_session: bool = True


def session_of(request: Request) -> Session:
    session: Session = request.state.session
    return session


def link_of(request: Request) -> Link:
    return session_of(request).link


def done(request: Request, text: str, fields: dict[str, str], fallback: str = "/") -> Response:
    """Back to the page that the form was on, which says what was done."""
    session_of(request).notices.append(("ok", text))
    session_of(request).link.watch.forget()
    return back(fields, fallback)


def back(fields: dict[str, str], fallback: str = "/") -> Response:
    return RedirectResponse(local(fields.get("back", fallback)), 303)


def set_session(response: Response, request: Request, cookie: str) -> None:
    """The browser gets the session; scripts and other sites do not."""
    state = request.app.state
    response.set_cookie(state.cookie, cookie, httponly=True, samesite="strict", secure=state.secure, path="/")


def page_number(request: Request) -> int:
    """The page of a table, from 0."""
    text = request.query_params.get("page", "0")
    return min(int(text), 100_000) if text.isascii() and text.isdecimal() else 0
