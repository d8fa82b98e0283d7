"""What the console refuses, without a browser: forged forms, other hosts, large bodies, an unsafe address."""

import http.client
import re
import ssl
import subprocess
import sys
import time
from urllib.parse import urlencode, urlsplit

import pytest

from fila import Client
from fila.console.guard import POLICY
from fila.console.limits import MAX_BODY_BYTES
from fila.testing import ServerProcess
from fila.testing.console import ConsoleProcess
from tests.e2e.support import eventually
from tests.support.certificates import Authority, grpc_credentials

pytestmark = pytest.mark.timeout(90)


class Visitor:
    """A browser's requests, made by hand."""

    def __init__(self, url, *, enter=True):
        self.origin = url
        self.host = urlsplit(url).netloc
        self.cookie = ""
        if not enter:
            return
        found = self.send("GET", "/")
        self.cookie = found.headers["set-cookie"].partition(";")[0]
        found = re.search(r'name="csrf" value="([^"]+)"', self.send("GET", "/settings").text)
        self.token = found[1]

    def send(self, method, path, fields=None, *, body=None, **headers):
        connection = http.client.HTTPConnection(urlsplit(self.origin).hostname, urlsplit(self.origin).port, timeout=30)
        given = {"host": self.host, "cookie": self.cookie} | {k.replace("_", "-"): v for k, v in headers.items()}
        if fields is not None:
            body = urlencode(fields)
            given.setdefault("content-type", "application/x-www-form-urlencoded")
        connection.request(method, path, body, {name: value for name, value in given.items() if value is not None})
        answer = connection.getresponse()
        answer.text = answer.read().decode(errors="replace")
        connection.close()
        return answer

    def pause(self, **changes):
        fields = {"csrf": self.token, "back": "/", "name": "q"} | changes.pop("fields", {})
        return self.send("POST", "/queue/pause", fields, **{"origin": self.origin} | changes)


@pytest.fixture(scope="module")
def client(broker):
    with Client(broker.addr) as client:
        client.create_queue("q")
        yield client


@pytest.fixture(scope="module")
def visitor(console, client):
    return Visitor(console.url)


def paused(client):
    return client.queue_stats("q").summary.paused


def test_a_form_of_our_own_works(visitor, client):
    assert visitor.pause().status == 303
    assert paused(client)
    client.resume_queue("q")


@pytest.mark.parametrize(
    "forgery",
    [
        {"fields": {"csrf": ""}},
        {"fields": {"csrf": "another"}},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": None},
        {"sec_fetch_site": "cross-site"},
        {"content_type": "text/plain"},
        {"cookie": ""},
    ],
    ids=str,
)
def test_a_forged_form_changes_nothing(visitor, client, forgery):
    answer = visitor.pause(**forgery)
    assert answer.status in {303, 400, 403}
    assert not paused(client)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "", "localhost.evil.example"])
def test_another_host_is_refused_so_rebinding_a_name_gains_nothing(visitor, client, host):
    for answer in (visitor.send("GET", "/", host=host), visitor.pause(host=host, origin=f"http://{host}")):
        assert answer.status in {400, 421}
        assert "queue" not in answer.text
    assert not paused(client)


def test_every_answer_carries_the_strict_headers(visitor):
    for path in ("/", "/static/console.js", "/nowhere", "/sign-in", "/queue?name=nowhere"):
        headers = visitor.send("GET", path).headers
        assert headers["content-security-policy"] == POLICY
        assert "unsafe" not in POLICY
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_large_bodies_and_other_methods_are_refused(visitor):
    assert visitor.send("POST", "/queue/pause", body=b"x" * (MAX_BODY_BYTES + 1), origin=visitor.origin).status == 413
    assert visitor.send("PUT", "/queue/pause", fields={}, origin=visitor.origin).status == 405
    assert visitor.send("POST", "/", fields={}, origin=visitor.origin).status == 405


def test_after_signing_in_the_person_stays_on_the_console(visitor):
    for target in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        answer = visitor.pause(fields={"back": target, "name": "q"})
        assert answer.headers["location"] == "/"
        visitor.send("POST", "/queue/resume", {"csrf": visitor.token, "name": "q"}, origin=visitor.origin)


def test_a_page_that_has_not_changed_is_answered_with_304(visitor):
    first = visitor.send("GET", "/sign-in", fila_live="-")
    assert first.text.startswith("<main>")
    assert visitor.send("GET", "/sign-in", fila_live=first.headers["etag"]).status == 304


def run(*args):
    command = [sys.executable, "-m", "fila.cli.main", "console", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_does_not_listen_where_keys_would_travel_in_plaintext():
    done = run("--listen", "0.0.0.0:0")
    assert done.returncode == 1
    assert "--cert" in done.stderr
    assert "--insecure" in done.stderr
    assert run("--listen", "nonsense").returncode == 1
    assert "belong together" in run("--cert", "x.pem").stderr


def test_https_is_served_with_a_certificate_and_the_cookie_is_secure(broker, tmp_path):
    authority = Authority(tmp_path)
    pair = authority.server()
    with ConsoleProcess(broker.addr, args=("--cert", pair.cert, "--key", pair.key)) as console:
        parts = urlsplit(console.url)
        assert parts.scheme == "https"
        context = ssl.create_default_context(cafile=authority.ca)
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=context, timeout=30)
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status == 200
        assert "Secure" in answer.headers["set-cookie"]
        assert "max-age" in answer.headers["strict-transport-security"]


def test_a_broker_with_tls_is_shown_with_the_options_of_every_command(tmp_path):
    authority = Authority(tmp_path)
    pair = authority.server()
    config = f'[tls]\ncert = "{pair.cert}"\nkey = "{pair.key}"\n'
    (tmp_path / "broker").mkdir()
    with ServerProcess(tmp_path / "broker", config=config, credentials=grpc_credentials(authority)) as server:
        with ConsoleProcess(server.addr, args=("--tls-ca", authority.ca)) as console:
            assert "No queue yet" in Visitor(console.url).send("GET", "/").text
        with ConsoleProcess(server.addr) as console:
            visitor = Visitor(console.url, enter=False)
            answer = visitor.send("POST", "/sign-in", {"key": "fila_a_b"}, origin=visitor.origin)
            assert "TLS" in answer.text, "the broker says what is missing"


def test_behind_a_proxy_nobody_is_let_in_without_a_key(broker):
    with ConsoleProcess(broker.addr, args=("--host", "console.example")) as console:
        visitor = Visitor(console.url, enter=False)
        answer = visitor.send("GET", "/", host="console.example")
        assert (answer.status, answer.headers["location"]) == (303, "/sign-in?next=%2F")


def test_the_server_starts_the_console_and_takes_it_along_when_it_is_killed(tmp_path):
    with ServerProcess(tmp_path, args=("--console", "127.0.0.1:0")) as server:
        url = re.search(r" at (http://\S+?)/\n", wait_for(server, " at http://"))[1]
        assert status_of(url) == 200
        server.kill()
        with pytest.raises(OSError):
            for _ in range(200):
                status_of(url)


def wait_for(server, text):
    return eventually(lambda: server.log if text in server.log else "", f"the log has {text!r}")


def status_of(url):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.request("GET", "/sign-in")
    status = connection.getresponse().status
    connection.close()
    time.sleep(0.05)
    return status
