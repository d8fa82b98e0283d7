"""Certificates and tokens as identities end to end: server processes, the SDK, the command line, the HTTP port."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from fila import TLS, AsyncClient, Client, FilaError, PermissionDeniedError
from fila.testing import ServerProcess
from tests.support.certificates import Authority, grpc_credentials, tls_config
from tests.support.network import neighbour
from tests.support.provider import AUDIENCE, ISSUER, Signer, jwks, jwks_server

pytestmark = pytest.mark.timeout(90)

ONE, TWO = Signer("one"), Signer("two", "RS256")


def fila(server, *args, code=0, **env):
    """Run the command line. Returns what it prints; stderr with a failure."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    given |= {"FILA_ADDR": f"localhost:{server.port}"} | env
    command = [sys.executable, "-m", "fila.cli.main", *args]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


def shown(authority, name, **options):
    """The variables of a client with a certificate."""
    pair = authority.client(name, **options)
    return {"FILA_TLS_CA": authority.ca, "FILA_TLS_CERT": pair.cert, "FILA_TLS_KEY": pair.key}


@pytest.fixture(scope="module")
def mutual(authority):
    """A server that requires client certificates."""
    pair, root = authority.server(), authority.client("root")
    with ServerProcess(
        config=tls_config(pair, authority.ca, "required"), credentials=grpc_credentials(authority, root)
    ) as server:
        yield server


@pytest.fixture(scope="module")
def admin(mutual, authority):
    """The variables of an administrator with a certificate and a key."""
    mine = shown(authority, "root")
    return mine | {"FILA_API_KEY": fila(mutual, "auth", "init", **mine).strip()}


class TestCertificates:
    def test_the_command_line_maps_certificates(self, mutual, authority, admin):
        mine = shown(authority, "shop", uri="spiffe://acme/shop")
        assert "no rule knows the client certificate" in fila(mutual, "auth", "whoami", code=1, **mine)
        add = ("auth", "certificate", "add", "shop", "--uri", "spiffe://acme/*", "--role", "producer:shop.**", "--json")
        rule = json.loads(fila(mutual, *add, **admin))["rule"]
        me = json.loads(fila(mutual, "auth", "whoami", "--json", **mine))
        assert (me["principal"], me["recognised_by"], me["credential"]) == ("shop", "certificate", rule)
        assert "uri:spiffe://acme/shop" in me["certificate_names"]
        assert f"certificate rule {rule}" in fila(mutual, "auth", "whoami", **mine)
        assert "spiffe://acme/*" in fila(mutual, "auth", "certificate", "list", **admin)
        assert "lacks the permission" in fila(mutual, "queue", "create", "x", code=1, **mine)
        assert json.loads(fila(mutual, "auth", "whoami", "--json", **mine, FILA_API_KEY=admin["FILA_API_KEY"]))[
            "recognised_by"
        ] == "key"  # fmt: skip
        fila(mutual, "auth", "certificate", "remove", rule, "--yes", **admin)
        assert "no rule knows" in fila(mutual, "auth", "whoami", code=1, **mine)
        assert "does not exist" in fila(mutual, "auth", "certificate", "remove", rule, "--yes", code=1, **admin)
        assert "Name one of" in fila(mutual, "auth", "certificate", "add", "shop", code=2, **admin)

    def test_a_consumer_whose_rule_is_removed_ends(self, mutual, authority, admin):
        pair = authority.client("worker")
        addr, key = f"localhost:{mutual.port}", admin["FILA_API_KEY"]
        tls = TLS(ca=authority.ca, cert=pair.cert, key=pair.key)
        with Client(addr, tls=tls, api_key=key) as root, Client(addr, tls=tls) as worker:
            root.create_queue("work")
            rule = root.auth.add_certificate_rule("worker", "dn", "CN=worker", roles=["consumer:work"])
            root.enqueue("work", payload=b"x")
            with worker.consume("work") as messages:
                next(messages).ack()
                root.auth.remove_certificate_rule(rule.id)
                with pytest.raises(PermissionDeniedError, match="no rule knows"):
                    next(messages)


ASK = """
import json, ssl, sys, urllib.request, urllib.error

def get(cert, key, token):
    context = ssl.create_default_context(cafile=sys.argv[2])
    context.check_hostname = False
    if cert:
        context.load_cert_chain(cert, key)
    headers = {"Authorization": "Bearer " + token} if token else {}
    try:
        request = urllib.request.Request(sys.argv[1], headers=headers)
        with urllib.request.urlopen(request, timeout=5, context=context) as got:
            return got.status
    except urllib.error.HTTPError as error:
        return error.code

print(json.dumps([get(*one) for one in json.loads(sys.argv[3])]))
"""


def test_the_http_port_knows_certificates_and_tokens(tmp_path):
    """Asked from another machine: a certificate without a rule was enough before keys existed, and is not after."""
    authority = Authority(tmp_path)
    pair, eye, blind = authority.server(), authority.client("eye"), authority.client("blind")
    (tmp_path / "jwks.json").write_bytes(jwks(ONE))
    tls = tls_config(pair, authority.ca, "optional")
    provider = f"""[telemetry]
prometheus_listen = "0.0.0.0:0"
[jwt]
issuer = "{ISSUER}"
audience = "{AUDIENCE}"
jwks_file = "{tmp_path}/jwks.json"
roles_claim = "groups"
roles = ["watchers=viewer", "root=admin"]
"""
    credentials = grpc_credentials(authority)
    with ServerProcess(config=tls + provider, credentials=credentials, listen_host="0.0.0.0") as server:
        root = ONE.token(sub="root", groups=["root"])
        with Client(f"localhost:{server.port}", tls=TLS(ca=authority.ca), api_key=root) as client:
            client.auth.create_key("root", ["admin"])
            client.auth.add_certificate_rule("eye", "cn", "eye", roles=["viewer"])
        entries = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
        port = next(entry["port"] for entry in entries if entry["event"] == "serving metrics")
        asked = [
            (eye.cert, eye.key, ""),
            (blind.cert, blind.key, ""),
            ("", "", ""),
            ("", "", ONE.token(groups=["watchers"])),
            ("", "", ONE.token()),
            ("", "", TWO.token(groups=["watchers"])),
            (eye.cert, eye.key, ONE.token()),  # what is sent decides alone
            (eye.cert, eye.key, "nonsense"),
        ]
        with neighbour() as other:
            url = f"https://{other.host}:{port}/metrics"
            assert json.loads(other.python(ASK, url, authority.ca, json.dumps(asked))) == [
                200, 401, 401, 200, 403, 401, 403, 401,
            ]  # fmt: skip


def provider_config(source, **more):
    given = {"issuer": ISSUER, "audience": AUDIENCE, "roles_claim": "groups", "leeway_ms": 0} | source | more
    lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
    roles = 'roles = ["root=admin", "workers=producer", "workers=consumer"]'
    return "\n".join(['[log]\nlevel = "debug"\n[jwt]', *lines, roles, ""])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that trusts both signers."""
    path = tmp_path_factory.mktemp("provider") / "jwks.json"
    path.write_bytes(jwks(ONE, TWO))
    with ServerProcess(config=provider_config({"jwks_file": str(path)})) as server:
        yield server


class TestTokens:
    def test_every_client_sends_a_token_where_it_sends_a_key(self, server, tmp_path):
        token = TWO.token(sub="ann@acme.example", groups=["root"])
        file = tmp_path / "token"
        file.write_text(token + "\n")
        file.chmod(0o600)

        async def ask():
            async with AsyncClient(server.addr, api_key=token) as client:
                return await client.auth.who_am_i()

        for options in ({"api_key": token}, {"api_key_file": file}):
            with Client(server.addr, **options) as client:
                me = client.auth.who_am_i()
                assert (me.principal, me.recognised_by, me.roles) == ("jwt:ann@acme.example", "token", ("admin",))
        assert asyncio.run(ask()) == me
        for env in ({"FILA_API_KEY": token}, {"FILA_API_KEY_FILE": str(file)}):
            assert json.loads(fila(server, "auth", "whoami", "--json", **env))["principal"] == me.principal
        assert "token signed by key two" in fila(server, "auth", "whoami", "--api-key-file", str(file))
        assert "needs an API key" in fila(server, "queue", "list", code=1)

    def test_nothing_of_a_token_is_logged(self, server):
        sent = [ONE.token(pad="zq7X-secret"), Signer("one").token(), ONE.token(ttl=-5), Signer("new").token(), "a.b.c"]
        for token in sent:
            with Client(server.addr, api_key=token) as client:
                with pytest.raises(FilaError) as refused:
                    client.enqueue("q", payload=b"x")
                assert token not in str(refused.value)
        parts = [part for token in sent for part in token.split(".") if len(part) > 8]
        assert [part for part in parts if part in server.log] == []
        assert "zq7X-secret" not in server.log

    def test_a_stream_goes_on_with_the_token_that_is_in_the_file_when_the_old_one_expires(self, server, tmp_path):
        with Client(server.addr, api_key=ONE.token(groups=["root"])) as root:
            root.create_queue("renewed")
            file = tmp_path / "token"
            file.write_text(ONE.token(ttl=2, groups=["workers"]))
            with Client(server.addr, api_key_file=file) as worker, worker.consume("renewed") as messages:
                root.enqueue("renewed", payload=b"before")
                next(messages).ack()
                (tmp_path / "next").write_text(ONE.token(ttl=60, groups=["workers"]))
                (tmp_path / "next").rename(file)
                time.sleep(2.5)  # the stream ends, and is opened again
                root.enqueue("renewed", payload=b"after")
                assert next(messages).payload == b"after"

    def test_a_stream_whose_token_expires_for_good_ends(self, server):
        with Client(server.addr, api_key=ONE.token(groups=["root"])) as root:
            root.create_queue("ended")
        with (
            Client(server.addr, api_key=ONE.token(ttl=1.5, groups=["workers"])) as worker,
            worker.consume("ended") as messages,
            pytest.raises(PermissionDeniedError, match="expired"),
        ):
            next(messages)


def exchange(path: Path, text):
    path.with_suffix(".next").write_text(text)
    path.with_suffix(".next").rename(path)


def test_keys_of_the_provider_rotate_under_load_and_no_call_fails(tmp_path):
    """New keys are published, tokens are signed by them at once, and old keys go, with the streams of their tokens.

    An old key goes when no call with a token of it is under way any more, however long that takes.
    """
    signers = [Signer(f"key{number}", "RS256" if number % 2 else "ES256") for number in range(4)]
    file = tmp_path / "token"
    with jwks_server(signers[0]) as provider:
        config = provider_config({"jwks_url": provider.url}, jwks_refresh_ms=1_000)
        with ServerProcess(config=config) as server:
            file.write_text(signers[0].token(ttl=30, sub="load", groups=["workers"]))
            with Client(server.addr, api_key=signers[0].token(groups=["root"])) as root:
                root.create_queue("load", visibility_timeout_ms=8_000)  # what an ended stream was not sent comes back
            sent, received, failed, done, rounds = [], set(), [], threading.Event(), []

            def produce():
                try:
                    with Client(server.addr, api_key_file=file, timeout=30) as client:
                        while not done.is_set():
                            if len(sent) - len(received) > 200:  # however slow the consumer is, it can catch up
                                time.sleep(0.001)
                                continue
                            sent.append(client.enqueue("load", payload=b"x"))
                            sent.extend(client.enqueue_many("load", [b"y"] * 5))
                            client.list_queues()
                            rounds.append(len(sent))
                except FilaError as error:
                    failed.append(error)

            def consume():
                try:
                    with Client(server.addr, api_key_file=file, timeout=30) as client:
                        for message in client.consume("load"):
                            message.ack()
                            received.add(message.id)
                            if done.is_set() and received.issuperset(sent):
                                return
                except FilaError as error:
                    failed.append(error)

            def eventually(condition):
                deadline = time.monotonic() + 60
                while not condition():
                    assert failed == []
                    assert time.monotonic() < deadline
                    time.sleep(0.02)

            def both_go_on():
                """All calls that began before are answered: a whole round of the producer, and one of its messages."""
                begun = len(rounds)
                eventually(lambda: len(rounds) >= begun + 2)
                known = rounds[begun]  # what came since then was sent in a round that began now or later
                eventually(lambda: not received.isdisjoint(sent[known:]))

            def is_refused(token):
                with Client(server.addr, api_key=token) as stale:
                    try:
                        stale.auth.who_am_i()
                    except PermissionDeniedError:
                        return True
                return False

            threads = [threading.Thread(target=produce), threading.Thread(target=consume, daemon=True)]
            for thread in threads:
                thread.start()
            for before, signer in pairwise(signers):
                both_go_on()
                provider.document = jwks(before, signer)
                exchange(file, signer.token(ttl=30, sub="load", groups=["workers"]))
                both_go_on()
                provider.document = jwks(signer)
                old = before.token()
                eventually(lambda old=old: is_refused(old))
            both_go_on()
            done.set()
            threads[0].join(60)
            with Client(server.addr, api_key=signers[-1].token(groups=["root"])) as root:
                root.enqueue("load", payload=b"last")  # wakes a consumer that has everything
            threads[1].join(60)
            assert failed == []
            assert len(sent) > 20
            assert set(sent) <= received
