"""Pipelines: the reports in the folder that --reports names, opened inside.

A report is shown in a frame without scripts, forms and origin (sandbox), whatever is written in it.
"""

import asyncio
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from fila.console.pages.base import Page
from fila.console.rendering import render
from fila.console.reports import read_report, reports

_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"


async def pipelines(request: Request) -> Response:
    folder: Path | None = request.app.state.reports
    found = await asyncio.to_thread(reports, folder) if folder is not None else []
    wanted = request.query_params.get("report", "")
    shown = next((each for each in found if each.name == wanted), None)
    return render(request, "pipelines.html", {"folder": folder, "reports": found, "shown": shown})


async def report(request: Request) -> Response:
    folder: Path | None = request.app.state.reports
    body = None
    if folder is not None:
        body = await asyncio.to_thread(read_report, folder, request.query_params.get("name", ""))
    if body is None:
        return PlainTextResponse("There is no such report.\n", 404)
    headers = {"content-security-policy": _POLICY, "x-frame-options": "SAMEORIGIN"}
    return Response(body, media_type="text/html; charset=utf-8", headers=headers)


PAGES = (Page("/pipelines", pipelines), Page("/pipelines/report", report))
