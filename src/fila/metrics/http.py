"""A very small HTTP server for scrapes and probes.

Rules:
- It answers GET and HEAD of the pages that it was given and nothing else, then closes the connection.
- A client has `READ_S` seconds to send a head of at most `HEAD_BYTES`, and `WRITE_S` to read the response.
- There are at most `CONNECTIONS` at a time. One more closes the oldest that has not sent its request, or else the
  oldest. So a probe is answered however many connections stay idle.
- A request that `refuse` has an answer for gets that answer, whether the page exists or not.
- Nothing that a client sends is logged or sent back.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

HEAD_BYTES = 8192
READ_S = 5.0
WRITE_S = 30.0
CONNECTIONS = 64

_REQUEST = re.compile(rb"([A-Z]{1,16}) (/[\x21-\x7e]*) HTTP/1\.[01]\r\n")
_AUTHORIZATION = re.compile(rb"\r\nauthorization:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Page:
    """A response."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


def plain(status: HTTPStatus) -> Page:
    return Page(f"{status.phrase.lower()}\n".encode(), status)


def refused(reason: str, status: HTTPStatus = HTTPStatus.FORBIDDEN) -> Page:
    """For `refuse`. UNAUTHORIZED also tells the client to send a bearer token."""
    return Page(f"{reason}\n".encode(), status)


Pages = Mapping[str, Callable[[], Awaitable[Page]]]
"""What is served, by path."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Who asks for what."""

    path: str
    #: Of the peer, without its port; empty when it is not known.
    address: str
    #: The TLS of the connection; None: it has none.
    tls: ssl.SSLObject | None
    #: The values of its authorization headers.
    authorization: tuple[str, ...] = ()


Refuse = Callable[[PageRequest], Page | None]
"""The answer to a request that is not served; None: it is served."""


Wrap = Callable[[asyncio.Protocol], asyncio.BaseProtocol]
"""Puts something, such as TLS, between a connection and its protocol."""


def serve_everyone(_request: PageRequest) -> None:
    """For servers that refuse nobody."""


class PageServer:
    """Serves pages on the running event loop."""

    def __init__(self, pages: Pages, refuse: Refuse = serve_everyone) -> None:
        self._pages = pages
        self._refuse = refuse
        #: Connections that have not sent their request, and those that have, oldest first.
        self._asking: dict[asyncio.StreamWriter, None] = {}
        self._answering: dict[asyncio.StreamWriter, None] = {}
        self._server: asyncio.Server | None = None

    async def listen(self, address: str, wrap: Wrap | None = None) -> int:
        """Begin to serve at host:port. Returns the port. Raises OSError when the address cannot be used."""
        host, _, port = address.rpartition(":")
        try:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(lambda: self._protocol(wrap), host.strip("[]"), int(port))
        except OSError as cause:
            raise OSError(f"cannot listen on {address} for metrics: {cause.strerror or cause}") from cause
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def _protocol(self, wrap: Wrap | None) -> asyncio.BaseProtocol:
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(limit=HEAD_BYTES), self._serve)
        return protocol if wrap is None else wrap(protocol)

    async def serve(self, listener: socket.socket) -> None:
        """Begin to serve on a socket that listens."""
        self._server = await asyncio.start_server(self._serve, sock=listener, limit=HEAD_BYTES)

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
            page, method = await self._find(head, writer)
        writer.write(_encode(page, with_body=method != b"HEAD"))
        async with asyncio.timeout(WRITE_S):
            await writer.drain()

    async def _find(self, head: bytes, writer: asyncio.StreamWriter) -> tuple[Page, bytes]:
        request = _REQUEST.match(head)
        if request is None:
            return plain(HTTPStatus.BAD_REQUEST), b"GET"
        method, target = request.groups()
        path = target.partition(b"?")[0].decode()
        refusal = self._refuse(_page_request(path, head, writer))
        if refusal is not None:
            return refusal, method
        if method not in {b"GET", b"HEAD"}:
            return plain(HTTPStatus.METHOD_NOT_ALLOWED), method
        make = self._pages.get(path)
        return await make() if make else plain(HTTPStatus.NOT_FOUND), method


def _page_request(path: str, head: bytes, writer: asyncio.StreamWriter) -> PageRequest:
    name, tls = writer.get_extra_info("peername"), writer.get_extra_info("ssl_object")
    address = str(name[0]) if isinstance(name, tuple) else ""
    authorization = tuple(value.decode("latin-1") for value in _AUTHORIZATION.findall(head))
    return PageRequest(path, address, tls, authorization)


_MORE = {
    HTTPStatus.METHOD_NOT_ALLOWED: "Allow: GET, HEAD\r\n",
    HTTPStatus.UNAUTHORIZED: "WWW-Authenticate: Bearer\r\n",
}
"""Header fields that a status needs."""


def _encode(page: Page, *, with_body: bool) -> bytes:
    more = _MORE.get(page.status, "")
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\n"
        f"{more}X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (page.body if with_body else b"")
