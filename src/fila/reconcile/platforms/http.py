"""Platforms over HTTP.

Rules:
- What a platform sends is hostile: its size and its time are bounded, and a figure that is no count is no figure.
- Nothing it does raises. Each way to fail has one reason, in one table.
- A connection goes to an address that was checked (`addresses`), and no redirect is followed to another.
- Connections are httpcore's own: nothing is followed, kept for the next question or unpacked, as httpx would.
"""

import json
import logging
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpcore
import httpx

from fila.reconcile.domain.models import METRICS, Fetched, Observation, Post, Reason
from fila.reconcile.domain.settings import HOUR_MS, MAX_COUNT
from fila.reconcile.platforms.addresses import AddressRefused
from fila.reconcile.platforms.network import Deadline, Network
from fila.reconcile.platforms.settings import OBSERVED_AT, Platform

logger = logging.getLogger(__name__)

MAX_RETRY_AFTER_MS = 24 * HOUR_MS
"""A platform that wants to be left alone for longer is asked again after this."""

KEEP_IDLE_S = 5.0
"""httpx's default for an idle connection; many servers close theirs not much later."""

FAILURES: Mapping[int, Reason] = {
    401: Reason.AUTH_FAILED,
    403: Reason.AUTH_FAILED,
    404: Reason.ABSENT,
    410: Reason.ABSENT,
    429: Reason.RATE_LIMITED,
}
"""What a status means. Every other one but 200 is a platform that does not answer sensibly."""


class _Unusable(Exception):
    """The answer is too large, packed, or not what it should be."""


class HttpFetcher:
    """Asks one platform as its settings say."""

    def __init__(self, platform: Platform, *, connections: int = 32) -> None:
        self._platform = platform
        self._headers = _headers(platform)
        self._deadline = Deadline()
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            max_connections=connections,
            keepalive_expiry=KEEP_IDLE_S,
            network_backend=Network(self._deadline, internal=platform.internal),
        )

    def fetch(self, post: Post, now_ms: int) -> Fetched:
        if post.post_id.strip(".") == "":  # would name another resource: /posts/../metrics
            return Fetched(failure=Reason.ABSENT)
        try:
            return self._ask(post, now_ms)
        except AddressRefused as error:
            extra = {"platform": self._platform.name, "error": str(error)}
            logger.warning("platform not asked: its name leads to an internal address", extra=extra)
            return Fetched(failure=Reason.UNREACHABLE)
        except Exception as error:  # noqa: BLE001 - what a platform can make a library raise has no list
            extra = {"platform": self._platform.name, "error": type(error).__name__}
            logger.info("unusable answer from a platform", extra=extra)
            return Fetched(failure=Reason.UNREACHABLE)

    def close(self) -> None:
        self._pool.close()

    def _ask(self, post: Post, now_ms: int) -> Fetched:
        path = self._platform.path.replace("{post_id}", quote(post.post_id, safe=""))
        address = f"{self._platform.base_url.rstrip('/')}/{path.lstrip('/')}"
        request = httpx.Request("GET", address, headers=self._headers)
        url = request.url
        seconds = self._platform.timeout_ms / 1000
        self._deadline.start(seconds)
        with self._pool.stream(
            "GET",
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            extensions={"timeout": {"pool": seconds}},
        ) as answer:
            headers = httpx.Headers(answer.headers)
            if answer.status != HTTPStatus.OK:
                reason = FAILURES.get(answer.status, Reason.UNREACHABLE)
                return Fetched(failure=reason, retry_after_ms=_retry_after_ms(headers, now_ms))
            if headers.get("Content-Encoding", "identity").lower() != "identity":
                raise _Unusable
            return Fetched(self._read(self._body(answer), now_ms))

    def _body(self, answer: httpcore.Response) -> bytes:
        body = bytearray()
        for chunk in answer.iter_stream():
            body += chunk
            if len(body) > self._platform.max_answer_bytes:
                raise _Unusable
        return bytes(body)

    def _read(self, body: bytes, now_ms: int) -> Observation:
        answer = json.loads(body)
        if not isinstance(answer, dict):
            raise _Unusable
        paths = self._platform.fields
        views, clicks, conversions = (_count(_find(answer, paths[name])) for name in METRICS)
        observed_at_ms = _moment_ms(_find(answer, paths[OBSERVED_AT]), now_ms)
        return Observation(observed_at_ms, views, clicks, conversions)


def _headers(platform: Platform) -> dict[str, str]:
    headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "fila-reconcile"}
    if platform.user:
        headers["Authorization"] = f"Basic {b64encode(f'{platform.user}:{platform.token}'.encode()).decode()}"
    elif platform.token:
        headers["Authorization"] = f"Bearer {platform.token}"
    return headers


def _find(answer: Any, path: str) -> Any:
    for name in path.split("."):
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
