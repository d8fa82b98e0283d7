"""A very small HTTP server for scrapes and probes.

It answers GET and HEAD of the pages that it was given and nothing else. Whoever connects has `READ_S` seconds to send a
head of at most `HEAD_BYTES`, and `WRITE_S` to take the answer; then the connection is closed. There are at most
`CONNECTIONS` at a time: one more takes the place of the oldest that has not sent its request, or else of the oldest. So
a probe is answered however many connections stay idle. Nothing that a client sends is logged or sent back.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

HEAD_BYTES = 8192
READ_S = 5.0
WRITE_S = 30.0
CONNECTIONS = 64

_REQUEST = re.compile(rb"([A-Z]{1,16}) (/[\x21-\x7e]*) HTTP/1\.[01]\r\n")


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


def plain(status: HTTPStatus) -> Page:
    return Page(f"{status.phrase.lower()}\n".encode(), status)


class Pages:
    """Serves pages by path."""

    def __init__(self, pages: Mapping[str, Callable[[], Awaitable[Page]]]) -> None:
        self._pages = pages
        #: Connections that have not sent their request, and those that have, oldest first.
        self._asking: dict[asyncio.StreamWriter, None] = {}
        self._answering: dict[asyncio.StreamWriter, None] = {}
        self._server: asyncio.Server | None = None

    async def listen(self, address: str) -> int:
        """Begin to serve; the port. Raises OSError when the address cannot be had."""
        host, _, port = address.rpartition(":")
        try:
            self._server = await asyncio.start_server(self._serve, host.strip("[]"), int(port), limit=HEAD_BYTES)
        except OSError as cause:
            raise OSError(f"cannot listen on {address} for metrics: {cause.strerror or cause}") from cause
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._asking) + len(self._answering) >= CONNECTIONS:
            oldest = next(iter(self._asking or self._answering))
            self._forget(oldest)
            oldest.transport.abort()
        self._asking[writer] = None
        try:
            await self._answer(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            pass  # the client is gone or too slow, and nobody else wants to know
        finally:
            self._forget(writer)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    def _forget(self, writer: asyncio.StreamWriter) -> None:
        self._asking.pop(writer, None)
        self._answering.pop(writer, None)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_S):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            page, method = plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), b"GET"
        else:
            self._asking.pop(writer, None)
            self._answering[writer] = None
            page, method = await self._find(head)
        writer.write(_encode(page, with_body=method != b"HEAD"))
        async with asyncio.timeout(WRITE_S):
            await writer.drain()

    async def _find(self, head: bytes) -> tuple[Page, bytes]:
        request = _REQUEST.match(head)
        if request is None:
            return plain(HTTPStatus.BAD_REQUEST), b"GET"
        method, target = request.groups()
        if method not in {b"GET", b"HEAD"}:
            return plain(HTTPStatus.METHOD_NOT_ALLOWED), method
        make = self._pages.get(target.partition(b"?")[0].decode())
        return await make() if make else plain(HTTPStatus.NOT_FOUND), method


def _encode(page: Page, *, with_body: bool) -> bytes:
    allow = "Allow: GET, HEAD\r\n" if page.status is HTTPStatus.METHOD_NOT_ALLOWED else ""
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\n"
        f"{allow}X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (page.body if with_body else b"")
