"""The small HTTP server: it answers what it knows and nothing hurts it."""

import asyncio
from http import HTTPStatus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.metrics import http
from fila.metrics.http import Page, PageServer, plain, refused


async def hello():
    return Page(b"hello\n")


async def large():
    return Page(bytes(32 << 20))


async def slow():
    await asyncio.sleep(0.3)
    return Page(b"slow\n")


async def ask(port, sent, *, end=True):
    """Send bytes, return all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        if end:
            writer.write_eof()
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def talk(conversation):
    """Run a conversation with a server."""

    async def run():
        pages = PageServer({"/hello": hello, "/large": large, "/slow": slow})
        port = await pages.listen("127.0.0.1:0")
        try:
            return await conversation(port)
        finally:
            await pages.close()

    return asyncio.run(run())


def request(line, headers=b"Host: x\r\n"):
    return talk(lambda port: ask(port, line + b"\r\n" + headers + b"\r\n"))


def status(answer):
    return int(answer.split(b" ", 2)[1])


def test_a_page_comes_with_its_length_and_the_connection_closes():
    answer = request(b"GET /hello HTTP/1.1")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 6" in head
    assert b"Connection: close" in head
    assert body == b"hello\n"


def test_a_query_does_not_matter():
    assert status(request(b"GET /hello?a=b HTTP/1.1")) == 200


def test_head_has_no_body_but_its_length():
    answer = request(b"HEAD /hello HTTP/1.1")
    assert b"Content-Length: 6" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "line, expected",
    [
        (b"GET / HTTP/1.1", HTTPStatus.NOT_FOUND),
        (b"GET /hello/../../etc/passwd HTTP/1.1", HTTPStatus.NOT_FOUND),
        (b"GET /%68ello HTTP/1.1", HTTPStatus.NOT_FOUND),
        (b"POST /hello HTTP/1.1", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"DELETE /hello HTTP/1.1", HTTPStatus.METHOD_NOT_ALLOWED),
        (b"GET /hello HTTP/2.0", HTTPStatus.BAD_REQUEST),
        (b"GET /hello", HTTPStatus.BAD_REQUEST),
        (b"GET http://elsewhere/hello HTTP/1.1", HTTPStatus.BAD_REQUEST),
        (b"get /hello HTTP/1.1", HTTPStatus.BAD_REQUEST),
        (b"\x16\x03\x01\x02\x00", HTTPStatus.BAD_REQUEST),
    ],
)
def test_what_is_not_served_is_refused(line, expected):
    assert status(request(line)) == expected


def test_a_head_that_is_too_long_is_refused():
    assert status(request(b"GET /hello HTTP/1.1", b"X: " + b"x" * http.HEAD_BYTES + b"\r\n")) == 431


def test_a_client_that_says_nothing_is_left(monkeypatch):
    monkeypatch.setattr(http, "READ_S", 0.05)
    assert talk(lambda port: ask(port, b"GET /hel", end=False)) == b""


@pytest.mark.parametrize("said", [b"", b"GET /hel", b"GET /large HTTP/1.1\r\n\r\n"])
def test_connections_that_stay_idle_or_do_not_read_never_shut_out_a_probe(monkeypatch, said):
    """One more than allowed takes the place of the oldest, which is closed."""
    monkeypatch.setattr(http, "CONNECTIONS", 3)

    async def crowd(port):
        holders = []
        for _ in range(8):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(said)
            writer.transport.pause_reading() if said.endswith(b"\r\n\r\n") else None
            holders.append((reader, writer))
            await asyncio.sleep(0.02)
        answers = [await ask(port, b"GET /hello HTTP/1.1\r\n\r\n") for _ in range(5)]
        for _, writer in holders:
            writer.transport.abort()
        return answers

    assert {status(answer) for answer in talk(crowd)} == {200}


def test_a_request_under_way_outlives_any_number_of_silent_connections(monkeypatch):
    monkeypatch.setattr(http, "CONNECTIONS", 2)

    async def crowd(port):
        asking = asyncio.create_task(ask(port, b"GET /slow HTTP/1.1\r\n\r\n"))
        await asyncio.sleep(0.05)
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
        answer = await asking
        for _, writer in silent:
            writer.close()
        return answer

    assert status(talk(crowd)) == 200


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=200) | st.sampled_from([b"GET ", b"/hello", b" HTTP/1.1", b"\r\n\r\n"]), max_size=8))
def test_whatever_comes_it_serves_on(parts):
    async def noise(port):
        await ask(port, b"".join(parts))
        return await ask(port, b"GET /hello HTTP/1.1\r\n\r\n")

    assert status(talk(noise)) == 200


def test_an_address_that_is_taken_is_an_error_with_the_address():
    async def second(port):
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port} for metrics"):
            await PageServer({}).listen(f"127.0.0.1:{port}")

    talk(second)


def test_a_status_is_its_own_page():
    assert plain(HTTPStatus.SERVICE_UNAVAILABLE) == Page(b"service unavailable\n", HTTPStatus.SERVICE_UNAVAILABLE)


def test_a_peer_that_is_refused_gets_403_and_the_reason_for_every_path():
    async def run():
        pages = PageServer({"/hello": hello}, lambda request: refused(f"not for {request.address}"))
        port = await pages.listen("127.0.0.1:0")
        try:
            return [await ask(port, b"GET %s HTTP/1.1\r\n\r\n" % path) for path in (b"/hello", b"/nothing")]
        finally:
            await pages.close()

    for answer in asyncio.run(run()):
        assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert answer.endswith(b"\r\n\r\nnot for 127.0.0.1\n")


def test_unauthorized_names_the_scheme_and_authorization_headers_reach_whoever_decides():
    seen = []

    def refuse(request):
        seen.append(request.authorization)
        return refused("who are you?", HTTPStatus.UNAUTHORIZED)

    async def run():
        pages = PageServer({"/hello": hello}, refuse)
        port = await pages.listen("127.0.0.1:0")
        try:
            for fields in (b"", b"AUTHORIZATION:Bearer a \r\nauthorization: b\r\n", b"x-authorization: c\r\n"):
                answer = await ask(port, b"GET /hello HTTP/1.1\r\n" + fields + b"\r\n")
                assert b"WWW-Authenticate: Bearer\r\n" in answer
        finally:
            await pages.close()

    asyncio.run(run())
    assert seen == [(), ("Bearer a", "b"), ()]
