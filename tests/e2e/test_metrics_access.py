"""Who may read /metrics: a real server, asked from this machine and from another."""

import json
import urllib.error
import urllib.request

import pytest

from fila import Client
from fila.testing import ServerProcess
from tests.support.network import neighbour

ASK = """
import json, sys, urllib.request, urllib.error

def get(path, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(sys.argv[1] + path, headers=headers), timeout=5) as got:
            return got.status, got.read().decode()[:200], ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers.get("WWW-Authenticate", "")

print(json.dumps([get(path, **headers) for path, headers in json.loads(sys.argv[2])]))
"""


@pytest.fixture(scope="module")
def other():
    with neighbour() as found:
        yield found


@pytest.fixture(scope="module")
def server():
    config = '[telemetry]\nprometheus_listen = "0.0.0.0:0"\n'
    with ServerProcess(config=config, listen_host="0.0.0.0") as process:
        yield process


@pytest.fixture(scope="module")
def keys(server):
    with Client(server.addr) as client:
        admin = client.auth.create_key("admin", ["admin"]).token
    with Client(server.addr, api_key=admin) as client:
        made = {"admin": admin}
        for name, role in (("prometheus", "viewer"), ("narrow", "viewer:orders.**"), ("shop", "producer")):
            made[name] = client.auth.create_key(name, [role]).token
        gone = client.auth.create_key("gone", ["viewer"])
        client.auth.revoke_key(gone.info.id)
        return made | {"gone": gone.token}


def http_port(server):
    entries = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    return next(entry["port"] for entry in entries if entry["event"] == "serving metrics")


def ask(other, server, *requests):
    url = f"http://{other.host}:{http_port(server)}"
    return [tuple(answer) for answer in json.loads(other.python(ASK, url, json.dumps(requests)))]


def bearer(token):
    return "/metrics", {"Authorization": f"Bearer {token}"}


def test_metrics_need_a_key_that_may_browse_everything(other, server, keys):
    for name in ("prometheus", "admin"):
        [(status, body, _)] = ask(other, server, bearer(keys[name]))
        assert (status, body.startswith("# HELP")) == (200, True)
    refused = ask(other, server, bearer(keys["narrow"]), bearer(keys["shop"]))
    assert [status for status, *_ in refused] == [403, 403]
    assert refused[0][1] == '"narrow" lacks the permission browse on queue "**"\n'


def test_no_key_a_wrong_one_and_another_scheme_are_answered_401_with_the_scheme(other, server, keys):
    requests = [
        ("/metrics", {}),
        bearer(keys["gone"]),
        bearer("fila_nobody_" + "x" * 43),
        ("/metrics", {"Authorization": f"Basic {keys['prometheus']}"}),
        ("/nothing", {}),
    ]
    answers = ask(other, server, *requests)
    assert [(status, scheme) for status, _, scheme in answers] == [(401, "Bearer")] * len(requests)
    assert "this server needs an API key" in answers[0][1]
    assert not any(keys["prometheus"] in body or keys["gone"] in body for _, body, _ in answers)


def test_probes_stay_open(other, server, keys):
    assert [status for status, *_ in ask(other, server, ("/healthz", {}), ("/readyz", {}))] == [200, 200]


def test_this_machine_needs_no_key(server, keys):
    with urllib.request.urlopen(f"http://127.0.0.1:{http_port(server)}/metrics", timeout=5) as got:
        assert got.status == 200


def test_no_key_is_logged(server, keys, other):
    ask(other, server, bearer(keys["prometheus"]), bearer(keys["gone"]))
    assert not any(token.rpartition("_")[2] in server.log for token in keys.values())
