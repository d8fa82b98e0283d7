"""A client of another language, grpc-go, over mutual TLS."""

import subprocess
from pathlib import Path

import pytest

from fila import TLS, Client
from fila.testing import ServerProcess
from tests.support.certificates import Authority, grpc_credentials, tls_config
from tests.support.go import compiler, missing

SOURCE = Path(__file__).parent / "go_client"


@pytest.fixture(scope="module")
def go_client(tmp_path_factory):
    """Builds the program; its modules come from the module proxy."""
    go = compiler()
    program = tmp_path_factory.mktemp("go") / "client"
    built = subprocess.run([go, "build", "-o", program, "."], cwd=SOURCE, capture_output=True, text=True, check=False)
    if built.returncode:
        missing(f"the Go client cannot be built here: {built.stderr.strip().splitlines()[-1]}")
    return lambda *args: subprocess.run(
        [program, *args], capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()


@pytest.mark.timeout(300)
def test_a_go_client_is_known_by_its_certificate(go_client, tmp_path):
    authority = Authority(tmp_path)
    pair, mine, root = authority.server(), authority.client("gopher", uri="spiffe://acme/gopher"), authority.client()
    with ServerProcess(
        config=tls_config(pair, authority.ca, "required"), credentials=grpc_credentials(authority, root)
    ) as server:
        addr = f"localhost:{server.port}"
        tls = TLS(ca=authority.ca, cert=root.cert, key=root.key)
        assert go_client(addr, authority.ca, mine.cert, mine.key, "whoami") == "OK"  # no keys: nobody in particular
        with Client(addr, tls=tls) as client:
            token = client.auth.create_key("root", ["admin"]).token
        assert go_client(addr, authority.ca, mine.cert, mine.key, "whoami") == "Unauthenticated"
        with Client(addr, tls=tls, api_key=token) as client:
            client.auth.add_certificate_rule("gopher", "uri", "spiffe://acme/*", roles=["viewer"])
        assert go_client(addr, authority.ca, mine.cert, mine.key, "whoami") == "OK gopher"
        assert go_client(addr, authority.ca, mine.cert, mine.key, "whoami", token) == "OK root"


@pytest.mark.timeout(300)
def test_a_go_client_with_and_without_its_certificate(go_client, tmp_path):
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    pair, mine = authority.server(), authority.client("gopher")
    with ServerProcess(
        config=tls_config(pair, authority.ca, "required"), credentials=grpc_credentials(authority, mine)
    ) as server:
        addr = f"localhost:{server.port}"
        assert go_client(addr, authority.ca, mine.cert, mine.key) == "OK SERVING"
        assert "certificate required" in go_client(addr, authority.ca, "", "")
        assert "unknown authority" in go_client(addr, stranger.ca, mine.cert, mine.key)
        theirs = stranger.client("intruder")
        assert go_client(addr, authority.ca, theirs.cert, theirs.key).startswith("Unavailable")
