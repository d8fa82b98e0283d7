"""What the API refuses, and how it says so. One table from what went wrong to what is answered."""

import logging
import math

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from fila.jobs.errors import QueueUnavailable
from fila.reconcile.store import KeyReused, PostTaken, StoreError, SubmissionRefused

logger = logging.getLogger(__name__)

UNAVAILABLE_RETRY_S = 5
MAX_COMPLAINTS = 5


class Refused(Exception):
    """A request that is not done, with its status, a word for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


CONFLICTS: dict[type[SubmissionRefused], str] = {KeyReused: "key_reused", PostTaken: "post_taken"}


def install(app: FastAPI) -> None:
    """Every error leaves in the same form."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(SubmissionRefused, _conflict)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(StoreError, unavailable)
    app.add_exception_handler(QueueUnavailable, unavailable)


def answer(
    status: int, code: str, message: str, *, index: int | None = None, retry_s: float | None = None
) -> JSONResponse:
    problem: dict[str, object] = {"code": code, "message": message}
    if index is not None:
        problem["index"] = index
    headers = {} if retry_s is None else {"Retry-After": str(max(1, math.ceil(retry_s)))}
    return JSONResponse({"error": problem}, status, headers)


def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return answer(error.status, error.code, str(error), retry_s=error.retry_after_s)


def _conflict(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SubmissionRefused)
    return answer(409, CONFLICTS[type(error)], str(error), index=error.index)


def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """Which field and what was expected. What was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    complaints = [
        f"{'.'.join(str(part)[:64] for part in each['loc'] if part != 'body')}: {each['msg']}".removeprefix(": ")
        for each in error.errors()
    ]
    more = f" (and {len(complaints) - MAX_COMPLAINTS} more)" if len(complaints) > MAX_COMPLAINTS else ""
    return answer(422, "invalid", "; ".join(complaints[:MAX_COMPLAINTS]) + more)


def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return answer(error.status_code, "http", str(error.detail))


def unavailable(_request: Request, error: Exception) -> JSONResponse:
    """The store or the queue does not answer."""
    logger.error("the store or the queue is unavailable", extra={"error": str(error)})
    return answer(503, "unavailable", "try again later", retry_s=UNAVAILABLE_RETRY_S)
