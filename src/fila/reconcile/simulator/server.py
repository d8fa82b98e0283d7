"""The simulated platforms as an HTTP server, any number of them under one address.

GET /{platform}/v1/posts/{post_id}/metrics    what the platform's own interface would be
GET /control/{platform}                       its faults, and how often it gave which answer
PUT /control/{platform}                       set its faults
PUT /control/{platform}/posts/{post_id}       set a post's figures
"""

import asyncio
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fila.reconcile.serving import HttpServer
from fila.reconcile.simulator.faults import Faults
from fila.reconcile.simulator.truth import truth

TOKEN = "simulated"  # noqa: S105 - the password of platforms that do not exist


@dataclass(slots=True)
class _State:
    """One platform."""

    faults: Faults = field(default_factory=Faults)
    posts: dict[str, dict[str, int | None]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    #: The second it is, and how many questions were accepted in it.
    second: tuple[int, int] = (0, 0)

    def over_rate(self, now: float) -> bool:
        second, taken = self.second
        if second != int(now):
            taken = 0
        if taken >= self.faults.per_second > 0:
            return True
        self.second = int(now), taken + 1
        return False


class Simulator:
    """A server on a loopback port of its own. As a context manager it runs from entering to leaving."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._platforms: dict[str, _State] = {}
        self.app = Starlette(
            routes=[
                Route("/{platform}/v1/posts/{post_id}/metrics", self._metrics),
                Route("/control/{platform}", self._show),
                Route("/control/{platform}", self._set_faults, methods=["PUT"]),
                Route("/control/{platform}/posts/{post_id}", self._set_post, methods=["PUT"]),
            ]
        )
        self._server = HttpServer(self.app, host, port)
        self.url = self._server.url

    def start(self) -> None:
        """Returns when questions are answered."""
        self._server.start()

    def stop(self) -> None:
        self._server.stop(wait=False)

    def set(self, platform: str, faults: Faults) -> None:
        """Give a platform these faults, from now on."""
        self._state(platform).faults = faults

    def set_post(self, platform: str, post_id: str, **figures: int | None) -> None:
        """Give a post these figures: views, clicks, conversions, observed_at. None leaves one out."""
        self._state(platform).posts[post_id] = figures

    def answers(self, platform: str) -> Counter[str]:
        """How often the platform gave which answer, by name of the fault or `ok`."""
        return Counter(self._state(platform).answers)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def _state(self, platform: str) -> _State:
        return self._platforms.setdefault(platform, _State())

    async def _metrics(self, request: Request) -> Response:
        platform, post_id = request.path_params["platform"], request.path_params["post_id"]
        state = self._state(platform)
        faults = state.faults
        if faults.delay_ms:
            await asyncio.sleep(faults.delay_ms / 1000)
        state.asked[post_id] += 1
        name, answer = self._answer(state, platform, post_id, request.headers.get("Authorization", ""))
        state.answers[name] += 1
        return answer

    def _answer(self, state: _State, platform: str, post_id: str, credential: str) -> tuple[str, Response]:
        faults, asked = state.faults, state.asked[post_id]
        if faults.down:
            return "down", Response("down for maintenance", 503)
        if faults.locked or credential != f"Bearer {TOKEN}":
            return "auth", Response("who are you?", 401)
        if state.over_rate(time.time()):
            return "rate_limited", Response("slow down", 429, {"Retry-After": str(faults.retry_after_seconds)})
        if faults.strikes("error", post_id, asked):
            return "error", Response("something broke", 500)
        if faults.strikes("garbage", post_id, asked):
            return "garbage", Response("<html>", 200)
        if faults.strikes("absent", post_id, asked):
            return "absent", Response("no such post", 404)
        figures = state.posts.get(post_id)
        if figures is None:
            figures = dict(zip(("views", "clicks", "conversions"), truth(platform, post_id), strict=True))
        if faults.strikes("partial", post_id, asked):
            return "partial", JSONResponse({k: v for k, v in figures.items() if k != "conversions"})
        return "ok", JSONResponse({k: v for k, v in figures.items() if v is not None})

    async def _show(self, request: Request) -> Response:
        state = self._state(request.path_params["platform"])
        return JSONResponse({"faults": asdict(state.faults), "answers": dict(state.answers)})

    async def _set_faults(self, request: Request) -> Response:
        try:
            self.set(request.path_params["platform"], Faults.from_mapping(await _object(request)))
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 422)
        return Response(status_code=204)

    async def _set_post(self, request: Request) -> Response:
        try:
            figures = await _object(request)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 422)
        self.set_post(request.path_params["platform"], request.path_params["post_id"], **figures)
        return Response(status_code=204)


async def _object(request: Request) -> dict[str, Any]:
    body = await request.json()
    if not isinstance(body, dict):
        raise ValueError("expected an object")  # noqa: TRY004 - a wrong value from outside, not a wrong call
    return body
