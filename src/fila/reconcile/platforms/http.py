"""Platforms over HTTP.

Rules:
- What a platform sends is hostile: its size and its time are bounded, and a figure that is no count is no figure.
- Nothing it does raises. Each way to fail has one reason, in one table.
"""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import httpx

from fila.reconcile.domain.models import METRICS, Fetched, Observation, Post, Reason
from fila.reconcile.domain.settings import HOUR_MS, MAX_COUNT
from fila.reconcile.platforms.settings import OBSERVED_AT, Platform

MAX_RETRY_AFTER_MS = 24 * HOUR_MS
"""A platform that wants to be left alone for longer is asked again after this."""

FAILURES: Mapping[int, Reason] = {
    401: Reason.AUTH_FAILED,
    403: Reason.AUTH_FAILED,
    404: Reason.ABSENT,
    410: Reason.ABSENT,
    429: Reason.RATE_LIMITED,
}
"""What a status means. Every other one but 200 is a platform that does not answer sensibly."""


class _Unusable(Exception):
    """The answer took too long, is too large, or is not what it should be."""


class HttpFetcher:
    """Asks one platform as its settings say."""

    def __init__(self, platform: Platform, *, connections: int = 32) -> None:
        self._platform = platform
        headers = {"Accept": "application/json", "User-Agent": "fila-reconcile"}
        if platform.token:
            headers["Authorization"] = f"Bearer {platform.token}"
        self._client = httpx.Client(
            base_url=platform.base_url,
            headers=headers,
            timeout=platform.timeout_ms / 1000,
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            trust_env=False,
        )

    def fetch(self, post: Post, now_ms: int) -> Fetched:
        if post.post_id.strip(".") == "":  # would be read as another place in the path
            return Fetched(failure=Reason.ABSENT)
        path = self._platform.path.replace("{post_id}", quote(post.post_id, safe=""))
        deadline = time.monotonic() + self._platform.timeout_ms / 1000
        try:
            with self._client.stream("GET", path) as answer:
                if answer.status_code != httpx.codes.OK:
                    reason = FAILURES.get(answer.status_code, Reason.UNREACHABLE)
                    return Fetched(failure=reason, retry_after_ms=_retry_after_ms(answer.headers, now_ms))
                return Fetched(self._read(self._body(answer, deadline), now_ms))
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, _Unusable):
            return Fetched(failure=Reason.UNREACHABLE)

    def close(self) -> None:
        self._client.close()

    def _body(self, answer: httpx.Response, deadline: float) -> bytes:
        body = bytearray()
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > self._platform.max_answer_bytes or time.monotonic() > deadline:
                raise _Unusable
        return bytes(body)

    def _read(self, body: bytes, now_ms: int) -> Observation:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _Unusable from error
        if not isinstance(answer, dict):
            raise _Unusable
        places = self._platform.fields
        views, clicks, conversions = (_count(_find(answer, places[name])) for name in METRICS)
        observed_at_ms = _moment_ms(_find(answer, places[OBSERVED_AT]), now_ms)
        return Observation(observed_at_ms, views, clicks, conversions)


def _find(answer: Any, place: str) -> Any:
    for name in place.split("."):
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def _moment_ms(value: Any, now_ms: int) -> int:
    """Of when the figures are: now if it is not said, and never later than now."""
    if type(value) is int:
        return min(max(value, 0), now_ms)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return now_ms
        return min(_epoch_ms(moment), now_ms)
    return now_ms


def _epoch_ms(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0, int(aware.timestamp() * 1000))


def _retry_after_ms(headers: httpx.Headers, now_ms: int) -> int:
    """`Retry-After` is a number of seconds or a date."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        wait_ms = int(text[:9]) * 1000
    else:
        try:
            wait_ms = _epoch_ms(parsedate_to_datetime(text)) - now_ms
        except (ValueError, OverflowError):
            return 0
    return min(max(wait_ms, 0), MAX_RETRY_AFTER_MS)
