"""The fetcher against a real HTTP server with every fault, and against raw sockets that no server would send."""

import contextlib
import gzip
import socket
import threading
import time
from dataclasses import replace

import httpx
import pytest

from fila.reconcile.config import Config
from fila.reconcile.domain.models import Post, Reason
from fila.reconcile.platforms import Fetchers, HttpFetcher, Platform
from fila.reconcile.simulator import Faults, truth
from fila.reconcile.simulator.server import TOKEN
from fila.settings import SettingsError

NOW = 1_700_000_000_000


def ask(simulator, platform, post_id="p-1", *, times=1, token=TOKEN, **settings):
    fetcher = HttpFetcher(Platform(platform, f"{simulator.url}/{platform}", token=token, internal=True, **settings))
    try:
        return [fetcher.fetch(Post(platform, post_id, "ada"), NOW) for _ in range(times)][-1]
    finally:
        fetcher.close()


def test_figures_are_those_of_the_platform(simulator, platform):
    seen = ask(simulator, platform).observation
    assert tuple(seen) == truth(platform, "p-1")
    assert seen.observed_at_ms == NOW


@pytest.mark.parametrize("post_id", ["a/b", "a?b=c", "a%2Fb", "übung", "a b", "../control/x", "#"])
def test_a_post_is_asked_for_by_its_own_name_whatever_is_in_it(simulator, platform, post_id):
    """An odd name finds its own post or none, never another place of the platform."""
    found = ask(simulator, platform, post_id)
    assert found.failure is Reason.ABSENT or tuple(found.observation) == truth(platform, post_id)


@pytest.mark.parametrize("post_id", [".", ".."])
def test_a_name_that_means_another_place_is_not_asked_for(simulator, platform, post_id):
    assert ask(simulator, platform, post_id).failure is Reason.ABSENT
    assert not simulator.answers(platform)


@pytest.mark.parametrize(
    "faults, reason",
    [
        (Faults(down=True), Reason.UNREACHABLE),
        (Faults(locked=True), Reason.AUTH_FAILED),
        (Faults(absent_bp=10_000), Reason.ABSENT),
        (Faults(error_bp=10_000), Reason.UNREACHABLE),
        (Faults(garbage_bp=10_000), Reason.UNREACHABLE),
    ],
)
def test_each_fault_has_its_reason(simulator, platform, faults, reason):
    simulator.set(platform, faults)
    assert ask(simulator, platform).failure is reason


def test_a_wrong_credential_is_told_apart(simulator, platform):
    assert ask(simulator, platform, token="old").failure is Reason.AUTH_FAILED


def test_a_rate_limit_says_when_to_come_back(simulator, platform):
    simulator.set(platform, Faults(per_second=1, retry_after_seconds=7))
    answers = (ask(simulator, platform, times=2) for _ in range(100))
    refused = next(answer for answer in answers if answer.failure)  # the first of a second is not
    assert (refused.failure, refused.retry_after_ms) == (Reason.RATE_LIMITED, 7_000)


def test_a_partial_answer_keeps_what_is_there(simulator, platform):
    simulator.set(platform, Faults(partial_bp=10_000))
    views, clicks, _ = truth(platform, "p-1")
    assert tuple(ask(simulator, platform).observation) == (views, clicks, None)


def test_an_answer_that_takes_too_long_is_no_answer(simulator, platform):
    simulator.set(platform, Faults(delay_ms=2_000))
    assert ask(simulator, platform, timeout_ms=50).failure is Reason.UNREACHABLE


def test_asking_again_may_help(simulator, platform):
    simulator.set(platform, Faults(error_bp=5_000))
    assert {ask(simulator, platform).failure for _ in range(20)} == {None, Reason.UNREACHABLE}


@pytest.mark.parametrize("figure", [-1, 10**12 + 1, True, "12", 1.5, [], {}])
def test_a_figure_that_is_no_count_is_no_figure(simulator, platform, figure):
    simulator.set_post(platform, "p-1", views=figure, clicks=5, conversions=1)
    assert tuple(ask(simulator, platform).observation) == (None, 5, 1)


@pytest.mark.parametrize(
    "said, expected",
    [
        (NOW - 5, NOW - 5),
        (NOW + 5, NOW),
        (-5, 0),
        ("2023-11-14T22:13:19Z", NOW - 1_000),
        ("2023-11-14T22:13:19", NOW - 1_000),
        ("2999-01-01", NOW),
        ("yesterday", NOW),
        (None, NOW),
    ],
)
def test_figures_are_of_their_own_time_and_never_of_the_future(simulator, platform, said, expected):
    simulator.set_post(platform, "p-1", views=1, observed_at=said)
    assert ask(simulator, platform).observation.observed_at_ms == expected


def test_figures_are_found_where_the_settings_say(simulator, platform):
    simulator.set_post(platform, "p-1", data={"stats": {"plays": 7}}, clicks=1, conversions=0)
    table = {
        "base_url": f"{simulator.url}/{platform}",
        "token": TOKEN,
        "internal": True,
        "fields": {"views": "data.stats.plays"},
    }
    [read] = Config.from_mapping({"platforms": {platform: table}}).platforms
    fetcher = HttpFetcher(read)
    assert tuple(fetcher.fetch(Post(platform, "p-1", "ada"), NOW).observation) == (7, 1, 0)
    fetcher.close()


def test_a_platform_that_is_not_known_has_nothing_to_say():
    assert Fetchers({}).fetch(Post("x", "p-1", "ada"), NOW).failure is Reason.ABSENT


@contextlib.contextmanager
def raw_server(*chunks, pause_s=0.0, asked=None, done=None):
    """Sends these bytes to whoever connects, with pauses in between. Notes what it was asked, and when it said all."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection):
        heard = connection.recv(65_536)
        if asked is not None:
            asked.append(heard)
        for chunk in chunks:
            connection.sendall(chunk)
            time.sleep(pause_s)
        if done is not None:
            done.set()

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "chunks",
    [
        [b"SSH-2.0-OpenSSH\r\n"],
        [HEAD + b"Content-Length: 100\r\n\r\n{}"],
        [HEAD + b"\r\n" + b"[" * 50_000],
        [HEAD + b"\r\n" + b"[1]"],
        [HEAD + b"\r\n" + b" " * 200_000],
        [b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 302 Found\r\nLocation: http://xn--\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"],
        [HEAD + b"Content-Encoding: gzip\r\n\r\nno gzip"],
    ],
)
def test_whatever_comes_over_the_wire_nothing_is_raised(chunks):
    with raw_server(*chunks) as url:
        fetcher = HttpFetcher(Platform("x", url, internal=True))
        assert fetcher.fetch(Post("x", "p-1", "ada"), NOW).failure is Reason.UNREACHABLE
        fetcher.close()


FIGURES = b'{"views": 3, "clicks": 2, "conversions": 1}'
GOOD = HEAD + b"Content-Length: %d\r\n\r\n" % len(FIGURES) + FIGURES


@pytest.mark.parametrize(
    "scheme, start, piece",
    [
        ("http", HEAD + b"\r\n", b" "),
        ("http", HEAD + b"X: ", b"a"),
        ("http", b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        ("https", b"\x16\x03\x03\x40\x00", b"\x02"),
    ],
    ids=["body", "header", "informational", "handshake"],
)
def test_an_answer_that_trickles_in_is_given_up(scheme, start, piece):
    said_all = threading.Event()
    with raw_server(start, *[piece] * 600, pause_s=0.03, done=said_all) as url:
        fetcher = HttpFetcher(Platform("x", url.replace("http", scheme), timeout_ms=200, internal=True))
        assert fetcher.fetch(Post("x", "p-1", "ada"), NOW).failure is Reason.UNREACHABLE
        assert not said_all.is_set(), "the platform was listened to until its end"
        fetcher.close()


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "GZIP", "deflate", "x"])
def test_an_answer_that_is_packed_is_not_unpacked(encoding):
    """However little comes over the wire, unpacked it may be anything."""
    body = gzip.compress(gzip.compress(FIGURES)) if "," in encoding else gzip.compress(FIGURES)
    with raw_server(HEAD + b"Content-Encoding: %s\r\n\r\n" % encoding.encode() + body) as url:
        fetcher = HttpFetcher(Platform("x", url, internal=True))
        assert fetcher.fetch(Post("x", "p-1", "ada"), NOW).failure is Reason.UNREACHABLE
        fetcher.close()


def test_an_answer_that_says_it_is_not_packed_is_read():
    with raw_server(HEAD + b"Content-Encoding: Identity\r\n\r\n" + FIGURES) as url:
        fetcher = HttpFetcher(Platform("x", url, internal=True))
        assert tuple(fetcher.fetch(Post("x", "p-1", "ada"), NOW).observation) == (3, 2, 1)
        fetcher.close()


class TestQuestion:
    """What is sent."""

    def test_a_platform_is_told_who_asks_and_to_answer_unpacked(self):
        asked = []
        with raw_server(GOOD, asked=asked) as url:
            fetcher = HttpFetcher(Platform("x", f"{url}/api/", token="t-1", internal=True))
            assert tuple(fetcher.fetch(Post("x", "p/1", "ada"), NOW).observation) == (3, 2, 1)
            fetcher.close()
        first, *headers = asked[0].decode().split("\r\n")
        assert first == "GET /api/v1/posts/p%2F1/metrics HTTP/1.1"
        assert {"Accept-Encoding: identity", "Authorization: Bearer t-1", f"Host: {url[7:]}"} <= set(headers)

    def test_a_name_and_a_password_are_sent_as_such(self):
        asked = []
        with raw_server(GOOD, asked=asked) as url:
            fetcher = HttpFetcher(Platform("x", url, user="ada", token="b@c", internal=True))
            fetcher.fetch(Post("x", "p-1", "ada"), NOW)
            fetcher.close()
        assert b"Authorization: Basic YWRhOmJAYw==\r\n" in asked[0]

    def test_nothing_that_a_platform_sets_is_sent_back(self):
        asked = []
        answer = b"HTTP/1.1 404 Gone\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        with raw_server(answer, asked=asked) as url:
            fetcher = HttpFetcher(Platform("x", url, internal=True))
            for _ in range(2):
                assert fetcher.fetch(Post("x", "p-1", "ada"), NOW).failure is Reason.ABSENT
            fetcher.close()
        assert asked[0] == asked[1]
        assert b"cookie" not in asked[1].lower()


@pytest.mark.parametrize(
    "header, expected",
    [
        ("7", 7_000),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60_000),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0),
        ("soon", 0),
        ("-5", 0),
        ("99999999999999999999", 86_400_000),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_has_a_limit(header, expected):
    answer = f"HTTP/1.1 429 Slow\r\nRetry-After: {header}\r\nContent-Length: 0\r\n\r\n"
    with raw_server(answer.encode()) as url:
        fetcher = HttpFetcher(Platform("x", url, internal=True))
        assert fetcher.fetch(Post("x", "p-1", "ada"), NOW).retry_after_ms == expected
        fetcher.close()


@pytest.mark.parametrize(
    "table, complaint",
    [
        ([], "expected a section"),
        ({}, "base_url is missing"),
        ({"base_url": "ftp://x"}, "base_url: expected an http"),
        ({"base_url": "http://[::1"}, "base_url: expected an http"),
        ({"base_url": "https://ada:b@x"}, r"another base_url for platform x: it has a user name"),
        ({"base_url": "http://127.0.0.1"}, r"its host is a loopback address \(see internal = true\)"),
        ({"base_url": "http://x:8080"}, r"its port is not 80 or 443 \(see internal = true\)"),
        ({"base_url": "http://x", "user": "a:b"}, "user = 'a:b': expected"),
        ({"base_url": "http://x", "path": "/x"}, "path = '/x': expected"),
        ({"base_url": "http://x", "fields": {"likes": "x"}}, r"fields = .*: expected a table"),
        ({"base_url": "http://x", "timeout_ms": 0}, "timeout_ms = 0: expected"),
        ({"base_url": "http://x", "timeout_ms": 10**400}, "timeout_ms = 1.*: expected"),
        ({"base_url": "http://x", "max_answer_bytes": True}, "max_answer_bytes = True: expected"),
        ({"base_url": "http://x", "token": "a\nb"}, "token: expected"),
        ({"base_url": "http://x", "retries": 1}, "unknown key platforms.x.retries"),
    ],
)
def test_settings_that_cannot_work_are_refused(table, complaint):
    with pytest.raises(SettingsError, match=complaint):
        Config.from_mapping({"platforms": {"x": table}})


def test_a_token_does_not_show():
    assert "secret" not in repr(Platform("x", "http://x", token="secret"))


def test_a_name_of_a_loopback_address_is_not_asked(simulator, platform, caplog):
    port = simulator.url.rpartition(":")[2]
    settings = Platform(platform, f"http://localhost:{port}/{platform}", token=TOKEN, internal=True)
    allowed, refused = (
        HttpFetcher(settings),
        HttpFetcher(replace(settings, base_url="http://localhost", internal=False)),
    )
    assert allowed.fetch(Post(platform, "p-1", "ada"), NOW).failure is None
    assert refused.fetch(Post(platform, "p-1", "ada"), NOW).failure is Reason.UNREACHABLE
    assert "its name leads to an internal address" in caplog.text
    allowed.close()
    refused.close()


def test_a_redirect_is_not_followed():
    asked = []
    with raw_server(GOOD, asked=asked) as inside:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {inside}/\r\nContent-Length: 0\r\n\r\n"
        with raw_server(moved.encode()) as url:
            fetcher = HttpFetcher(Platform("x", url, internal=True))
            assert fetcher.fetch(Post("x", "p-1", "ada"), NOW).failure is Reason.UNREACHABLE
            fetcher.close()
    assert asked == []


class TestControl:
    def test_faults_and_figures_can_be_set_over_http(self, simulator, platform):
        control = f"{simulator.url}/control/{platform}"
        assert httpx.put(control, json={"absent_bp": 10_000}).status_code == 204
        assert ask(simulator, platform).failure is Reason.ABSENT
        shown = httpx.get(control).json()
        assert (shown["faults"]["absent_bp"], shown["answers"]) == (10_000, {"absent": 1})
        httpx.put(control, json={})
        httpx.put(f"{control}/posts/p-1", json={"views": 3, "clicks": 2, "conversions": 1})
        assert tuple(ask(simulator, platform).observation) == (3, 2, 1)

    @pytest.mark.parametrize("faults", [{"lag": 1}, {"down": 1}, {"absent_bp": 10_001}, {"delay_ms": "x"}, []])
    def test_faults_that_do_not_exist_are_refused(self, simulator, platform, faults):
        assert httpx.put(f"{simulator.url}/control/{platform}", json=faults).status_code == 422
