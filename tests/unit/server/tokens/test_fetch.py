"""Fetching keys: within bounds of time, size and redirects, and never in plaintext from another machine."""

import time

import pytest

from fila.server.tokens import fetch as module
from fila.server.tokens.fetch import FetchFailed, fetch
from tests.support.provider import JwksServer


@pytest.fixture
def server():
    with JwksServer().serving() as server:
        yield server


def redirect(*targets):
    """Answers with one redirect after the other."""
    left = list(targets)

    def answer(handler):
        handler.send_response(302)
        handler.send_header("Location", left.pop(0))
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def test_a_document(server):
    server.document = b"keys"
    assert fetch(server.url, 10) == b"keys"


def test_one_that_is_too_large_is_refused(server):
    server.document = bytes(11)
    with pytest.raises(FetchFailed, match="larger than 10 bytes"):
        fetch(server.url, 10)


@pytest.mark.parametrize("code", [204, 404, 500])
def test_another_answer_than_200_is_refused(server, code):
    def answer(handler):
        handler.send_response(code)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    server.answer = answer
    with pytest.raises(FetchFailed, match=f"the answer is {code}"):
        fetch(server.url, 10)


@pytest.mark.parametrize(
    "target",
    ["http://login.example/jwks", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://127.0.0.1.example/", "//x"],
)
def test_a_redirect_to_plaintext_elsewhere_is_refused(server, target):
    server.answer = redirect(target)
    with pytest.raises(FetchFailed, match=r"redirects to an address without https|the answer is 302"):
        fetch(server.url, 10)


def test_there_are_not_too_many_redirects(server):
    server.answer = redirect(*[server.url + str(number) for number in range(20)])
    with pytest.raises(FetchFailed):
        fetch(server.url, 10)
    assert server.asked == module.MAX_REDIRECTS + 1


@pytest.mark.parametrize(
    "url", ["http://login.example/jwks", "ftp://127.0.0.1/", "file:///x", "127.0.0.1", "https://", ""]
)
def test_an_address_that_is_not_safe_is_not_asked(url):
    with pytest.raises(FetchFailed, match="https"):
        fetch(url, 10)


def test_an_answer_that_comes_drop_by_drop_ends_in_time(server, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT_S", 0.3)

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        try:
            for _ in range(100):
                handler.wfile.write(b"x")
                time.sleep(0.05)
        except OSError:
            pass

    server.answer = answer
    with pytest.raises(FetchFailed, match=r"longer than 0\.3 s"):
        fetch(server.url, 1000)


def test_a_server_that_says_nothing_is_given_up(server, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT_S", 0.2)
    server.answer = lambda _: time.sleep(0.6)
    with pytest.raises(FetchFailed):
        fetch(server.url, 10)


def test_nobody_there(server):
    with JwksServer().serving() as gone:
        url = gone.url
    with pytest.raises(FetchFailed):
        fetch(url, 10)
