"""grpcurl, a client that knows nothing of Fila but its reflection, over TLS and with a key."""

import base64
import json
import os
import subprocess

import pytest

from fila import TLS, Client
from fila.testing import ServerProcess
from tests.support.certificates import Authority, grpc_credentials
from tests.support.go import program

PACKAGE = "github.com/fullstorydev/grpcurl/cmd/grpcurl"
VERSION = "v1.9.3"

pytestmark = pytest.mark.timeout(960)  # the first run on a machine builds the program


class Curl:
    """grpcurl, trusting one CA, with the key that the variable KEY holds, so that none stands on a command line."""

    def __init__(self, path, addr, ca, key=None):
        self._addr = addr
        self._environ = os.environ | ({} if key is None else {"KEY": key})
        headers = [] if key is None else ["-expand-headers", "-H", "authorization: Bearer ${KEY}"]
        self._options = [path, "-cacert", ca, "-max-time", "60", *headers]

    def __call__(self, *names, **request):
        """What it prints, as lines, or as JSON for a call; the sentence on stderr if it fails."""
        done = self.open(*names, **request)
        printed, complaint = done.communicate(timeout=90)
        if done.returncode:
            return " ".join(complaint.split())
        return json.loads(printed) if request else printed.splitlines()

    def open(self, *names, **request):
        given = ["-d", json.dumps(request)] if request else []
        command = [*self._options, *given, self._addr, *names]
        return subprocess.Popen(
            command, env=self._environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )


@pytest.fixture(scope="module")
def grpcurl():
    return program(PACKAGE, VERSION)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def server(grpcurl, authority):
    pair = authority.server()
    config = f'[tls]\ncert = "{pair.cert}"\nkey = "{pair.key}"\n'
    with ServerProcess(config=config, credentials=grpc_credentials(authority)) as process:
        yield process


@pytest.fixture(scope="module")
def key(server, authority):
    trusted = TLS(ca=authority.ca)
    with Client(server.addr, tls=trusted) as client:
        client.create_queue("orders")
        admin = client.auth.create_key("root", ["admin"]).token
    with Client(server.addr, tls=trusted, api_key=admin) as client:
        return client.auth.create_key("shop", ["producer:orders", "consumer:orders"]).token


@pytest.fixture
def curl(grpcurl, server, authority, key):
    return Curl(grpcurl, f"localhost:{server.port}", authority.ca, key)


def test_reflection_lists_and_describes_the_services(curl):
    assert {"fila.v1.FilaService", "fila.v1.FilaAdmin", "fila.v1.FilaAuth"} <= set(curl("list"))
    assert "rpc Enqueue" in "\n".join(curl("describe", "fila.v1.FilaService"))


def test_messages_are_enqueued_delivered_and_acked(curl):
    sent = curl("fila.v1.FilaService/Enqueue", queue="orders", payload=base64.b64encode(b"hello").decode())
    delivery = curl.open("fila.v1.FilaService/Lease", queue="orders", max_in_flight=1)
    try:
        printed = ""
        while not printed.endswith("\n}\n"):
            line = delivery.stdout.readline()
            assert line, delivery.stderr.read()
            printed += line
        [message] = json.loads(printed)["messages"]
        assert (message["id"], base64.b64decode(message["payload"])) == (sent["message_id"], b"hello")
        lease = message["metadata"]["lease_id"]
        assert curl("fila.v1.FilaService/Ack", queue="orders", message_id=message["id"], lease_id=lease) == {}
    finally:
        delivery.kill()
        delivery.communicate()


def test_it_is_refused_without_its_key_and_beyond_its_rights(curl, grpcurl, server, authority):
    stranger = Curl(grpcurl, f"localhost:{server.port}", authority.ca)
    assert "Code: Unauthenticated Message: this server needs an API key" in stranger(
        "fila.v1.FilaService/Enqueue", queue="orders"
    )
    guesser = Curl(grpcurl, f"localhost:{server.port}", authority.ca, "fila_shop-aaaaaa_guessed")
    assert "Code: Unauthenticated Message: the API key is not valid" in guesser(
        "fila.v1.FilaService/Enqueue", queue="orders"
    )
    assert "Code: PermissionDenied" in curl("fila.v1.FilaService/Enqueue", queue="mail")


def test_it_refuses_a_server_of_another_ca(grpcurl, server, tmp_path, key):
    other = Authority(tmp_path, "stranger")
    complaint = Curl(grpcurl, f"localhost:{server.port}", other.ca, key)("list")
    assert "certificate signed by unknown authority" in complaint
