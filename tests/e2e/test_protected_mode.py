"""Protected mode with a real server, and a peer that is not of its machine."""

import json
import os
import urllib.request

import pytest

from fila import Client
from fila.server.protected_mode import REFUSAL
from fila.testing import ServerProcess
from tests.support.network import neighbour

CALLS = """
import json, sys, urllib.request, urllib.error
import grpc
from fila import Client, FilaError

host, port, http_port = sys.argv[1], sys.argv[2], sys.argv[3]
said = {}
with Client(f"{host}:{port}", timeout=5) as client:
    for name, call in {
        "create": lambda: client.create_queue("theirs"),
        "enqueue": lambda: client.enqueue("ours", None, b"x"),
        "many": lambda: client.enqueue_many("ours", [b"x", b"y"]),
        "consume": lambda: next(client.consume("ours")),
        "list": lambda: sorted(queue.name for queue in client.list_queues()),
    }.items():
        try:
            said[name] = f"ok: {call()}"
        except FilaError as error:
            said[name] = f"{type(error).__name__}: {error}"
with grpc.insecure_channel(f"{host}:{port}") as channel:
    for method in ("/grpc.health.v1.Health/Check", "/no.such/Method"):
        try:
            channel.unary_unary(method)(b"", timeout=5)
            said[method] = "ok"
        except grpc.RpcError as error:
            said[method] = f"{error.code().name}: {error.details()}"
for path in ("/metrics", "/healthz", "/nothing"):
    try:
        said[path] = urllib.request.urlopen(f"http://{host}:{http_port}{path}", timeout=5).status
    except urllib.error.HTTPError as error:
        said[path] = [error.code, error.read().decode()]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def other():
    with neighbour() as found:
        yield found


def serving(*args, env=None):
    """A server on all addresses, as its default is, with a port for metrics."""
    return ServerProcess(listen_host="0.0.0.0", args=args, env=env)


def http_port(server):
    entries = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    return next(entry["port"] for entry in entries if entry["event"] == "serving metrics")


METRICS = {"FILA_TELEMETRY__PROMETHEUS_LISTEN": "0.0.0.0:0"}


def ask(other, server, **env):
    said = other.python(CALLS, other.host, str(server.port), str(http_port(server)), env=os.environ | env)
    return json.loads(said)


def test_a_server_without_security_settings_serves_this_machine_only(other):
    with serving(env=METRICS) as server, Client(server.addr) as client:
        client.create_queue("ours")
        client.enqueue("ours", None, b"x")
        said = ask(other, server)
        assert said.pop("/metrics") == said.pop("/healthz") == said.pop("/nothing") == [403, REFUSAL + "\n"]
        assert said.pop("/grpc.health.v1.Health/Check") == f"UNAUTHENTICATED: {REFUSAL}"
        assert said.pop("/no.such/Method") == f"UNAUTHENTICATED: {REFUSAL}"
        assert all(REFUSAL in text for text in said.values()), said
        assert [(queue.name, queue.depth) for queue in client.list_queues()] == [("ours", 1), ("ours.dlq", 0)]
        url = f"http://127.0.0.1:{http_port(server)}/healthz"
        assert urllib.request.urlopen(url, timeout=5).status == 200
        assert "protected mode" in server.log


@pytest.mark.parametrize("args,env", [(("--insecure",), {}), ((), {"FILA_SERVER__INSECURE": "true"})])
def test_insecure_serves_everyone_and_warns_at_every_start(other, args, env):
    with serving(*args, env=METRICS | env) as server, Client(server.addr) as client:
        client.create_queue("ours")
        said = ask(other, server)
        assert said["/healthz"] == 200
        assert said["list"] == "ok: ['ours', 'ours.dlq', 'theirs', 'theirs.dlq']"
        assert said["enqueue"].startswith("ok")
        server.restart()
        assert server.log.count("insecure: whoever reaches the port") == 2


def test_the_first_key_opens_a_running_server_to_those_who_have_one(other):
    with serving(env=METRICS) as server, Client(server.addr) as client:
        client.create_queue("ours")
        assert REFUSAL in ask(other, server)["list"]
        token = client.auth.create_key("admin", ["admin"]).token
        assert ask(other, server, FILA_API_KEY=token)["enqueue"].startswith("ok")
        without = ask(other, server)
        assert without["list"].startswith("PermissionDeniedError")
        assert REFUSAL not in without["list"]
