"""TLS with real servers: the SDK on asyncio and blocking, what each failed check says, and renewal under load."""

import asyncio
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from pathlib import Path

import pytest

from fila import TLS, AsyncClient, Client, FilaError, PermissionDeniedError, TLSError
from fila.jobs import QueueSettings, create_queue
from fila.testing import ServerProcess
from tests.support.certificates import DAY, Authority, grpc_credentials

METRICS = '[telemetry]\nprometheus_listen = "127.0.0.1:0"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder):
    return Authority(folder)


@pytest.fixture(scope="module")
def stranger(folder):
    """A CA that nobody here trusts."""
    return Authority(folder, "stranger")


def tls_server(authority, pair, *, client_ca="", client_auth="none", min_version="1.2", more=METRICS):
    config = f"""[tls]
cert = "{pair.cert}"
key = "{pair.key}"
client_ca = "{client_ca}"
client_auth = "{client_auth}"
min_version = "{min_version}"
{more}"""
    shown = authority.client("probe") if client_auth == "required" else None
    return ServerProcess(config=config, credentials=grpc_credentials(authority, shown))


@pytest.fixture(scope="module")
def server(authority):
    with tls_server(authority, authority.server()) as process:
        yield process


@pytest.fixture(scope="module")
def mutual(authority):
    """A server that requires client certificates."""
    pair = authority.server("mutual")
    with tls_server(authority, pair, client_ca=authority.ca, client_auth="required") as process:
        yield process


@pytest.fixture(scope="module")
def plain():
    with ServerProcess() as process:
        yield process


def local(server):
    return f"localhost:{server.port}"


def use(client, queue):
    """Each way that a blocking client has to the broker."""
    client.create_queue(queue)
    client.enqueue(queue, {"a": "b"}, b"one")
    client.enqueue_many(queue, [bytes(100_000)] * 20)
    with client.consume(queue) as messages:
        first = next(messages)
        assert first.payload == b"one"
        first.ack()
        client.ack_many([next(messages) for _ in range(20)])


def blocking(addr, tls):
    with Client(addr, tls=tls, timeout=10) as client:
        client.enqueue("q", None, b"x")


def by_loop(addr, tls):
    with Client(addr, tls=tls, timeout=10) as client:
        client.list_queues()


def by_stream(addr, tls):
    with Client(addr, tls=tls, timeout=10) as client:
        client.enqueue_many("q", [b"x"])


def consuming(addr, tls):
    with Client(addr, tls=tls, timeout=10) as client, client.consume("q") as messages:
        next(messages)


def on_asyncio(addr, tls):
    async def run():
        async with AsyncClient(addr, tls=tls, timeout=10) as client:
            await client.enqueue("q", None, b"x")

    asyncio.run(run())


WAYS = pytest.mark.parametrize("way", [blocking, by_loop, by_stream, consuming, on_asyncio])


def refusal(way, addr, tls, kind=TLSError):
    """What a client says, at once: a check that fails is not tried again until the timeout."""
    began = time.monotonic()
    with pytest.raises(FilaError) as caught:
        way(addr, tls)
    assert time.monotonic() - began < 5
    error = caught.value
    failed = getattr(error, "failed", None)
    error = next(iter(failed.values())) if failed else error
    assert isinstance(error, kind), repr(error)
    return str(error)


class TestServed:
    def test_a_client_that_trusts_the_ca(self, server, authority):
        with Client(local(server), tls=TLS(ca=authority.ca)) as client:
            use(client, "trusted")

    def test_by_address_and_by_another_name(self, server, authority):
        with Client(server.addr, tls=TLS(ca=authority.ca)) as client:
            use(client, "by-address")
        with Client(server.addr, tls=TLS(ca=authority.ca, server_name="localhost")) as client:
            use(client, "by-name")

    def test_a_client_with_a_certificate(self, mutual, authority):
        with Client(local(mutual), tls=TLS(authority.ca, *authority.client("billing"))) as client:
            use(client, "mutual")

    def test_on_asyncio(self, mutual, authority):
        async def run():
            async with AsyncClient(local(mutual), tls=TLS(authority.ca, *authority.client("reports"))) as client:
                await client.create_queue("aio")
                await client.enqueue_many("aio", [bytes(50_000)] * 50)
                received = 0
                async for message in client.consume("aio"):
                    await message.ack()
                    received += 1
                    if received == 50:
                        break

        asyncio.run(run())

    def test_the_environment_turns_it_on(self, server, authority, monkeypatch):
        monkeypatch.setenv("FILA_TLS_CA", authority.ca)
        with Client(local(server)) as client:
            use(client, "by-environment")
        monkeypatch.setenv("FILA_TLS", "false")
        assert "TLS connections only" in refusal(blocking, local(server), None, PermissionDeniedError)

    def test_many_threads_share_a_client(self, server, authority):
        with Client(local(server), tls=TLS(ca=authority.ca)) as client:
            client.create_queue("threads")
            work = [
                threading.Thread(target=lambda: [client.enqueue("threads", None, bytes(5_000)) for _ in range(50)])
                for _ in range(8)
            ]
            for each in work:
                each.start()
            for each in work:
                each.join()
            assert {queue.name: queue.depth for queue in client.list_queues()}["threads"] == 400


class TestRefusedByTheClient:
    @WAYS
    def test_an_unknown_ca(self, way, server, stranger):
        assert "is not signed by a trusted CA" in refusal(way, local(server), TLS(ca=stranger.ca))

    @WAYS
    def test_the_cas_of_the_system_do_not_know_it_either(self, way, server):
        assert "is not signed by a trusted CA" in refusal(way, local(server), tls=True)

    @WAYS
    def test_another_host_name(self, way, server, authority):
        text = refusal(way, local(server), TLS(ca=authority.ca, server_name="broker.example"))
        assert "the certificate of 'broker.example' is for another host name" in text

    @pytest.mark.parametrize(
        "validity,reason",
        [({"begins": -2 * DAY, "ends": -DAY}, "has expired"), ({"begins": DAY, "ends": 2 * DAY}, "is not valid yet")],
    )
    def test_a_certificate_of_another_time(self, folder, validity, reason):
        authority = Authority(folder, reason.replace(" ", "-"))
        pair = authority.server(f"server-{reason[-3:]}", **validity)
        server = tls_server(authority, pair)
        try:
            server.launch()
            wait_until(lambda: "listening" in server.log)
            for way in (blocking, by_loop, on_asyncio):
                assert f"'localhost' {reason}" in refusal(way, local(server), TLS(ca=authority.ca))
            assert reason in server.log
        finally:
            server.close()

    @WAYS
    def test_a_server_that_does_not_speak_tls(self, way, plain, authority):
        assert "does not speak TLS" in refusal(way, plain.addr, TLS(ca=authority.ca))

    def test_files_that_cannot_be_used_are_refused_at_once(self, authority, folder):
        pair, other = authority.client("a"), authority.client("b")
        for tls, text in (
            (TLS(ca="/nowhere"), "TLS: cannot read /nowhere: No such file or directory"),
            (TLS(authority.ca, pair.cert, other.key), f"TLS: the key {other.key} does not belong to the certificate"),
            (TLS(ca=pair.key), "has no CA certificate in PEM"),
        ):
            with pytest.raises(FilaError, match=re.escape(text)):
                Client("localhost:1", tls=tls)


class TestRefusedByTheServer:
    @WAYS
    def test_no_certificate(self, way, mutual, authority):
        assert "requires a client certificate" in refusal(way, local(mutual), TLS(ca=authority.ca))

    @WAYS
    def test_a_certificate_of_another_ca(self, way, mutual, authority, stranger):
        text = refusal(way, local(mutual), TLS(authority.ca, *stranger.client("intruder")))
        assert "the peer does not trust the CA of our certificate" in text

    def test_a_certificate_of_another_time(self, mutual, authority):
        expired = authority.client("expired", begins=-2 * DAY, ends=-DAY)
        early = authority.client("early", begins=DAY, ends=2 * DAY)
        for way in (blocking, by_loop, on_asyncio):
            text = refusal(way, local(mutual), TLS(authority.ca, *expired))
            assert "our certificate has expired, says the peer" in text
            refusal(way, local(mutual), TLS(authority.ca, *early))  # TLS has no word for it
        wait_until(lambda: "is not valid yet" in mutual.log)

    @WAYS
    def test_plaintext(self, way, server):
        text = refusal(way, local(server), tls=False, kind=PermissionDeniedError)
        assert "this port accepts TLS connections only" in text

    @pytest.mark.parametrize("version", ["TLSv1_1", "TLSv1"])
    def test_an_old_version(self, server, authority, version):
        with pytest.raises(ssl.SSLError) as caught:
            hello(server.port, authority, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion[version])
        assert caught.value.reason in {"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"}

    def test_1_2_where_1_3_is_the_least(self, authority):
        with tls_server(authority, authority.server("newest"), min_version="1.3") as server:
            assert hello(server.port, authority) == "TLSv1.3"
            with pytest.raises(ssl.SSLError):
                hello(server.port, authority, maximum_version=ssl.TLSVersion.TLSv1_2)

    def test_the_log_says_why(self, mutual, authority, stranger):
        refusal(by_loop, local(mutual), TLS(ca=authority.ca))
        refusal(by_loop, local(mutual), TLS(authority.ca, *stranger.client("intruder")))
        wait_until(lambda: "the client has shown no certificate" in mutual.log)
        wait_until(lambda: "is not signed by a trusted CA" in mutual.log)


def old_version(server, authority, stranger):
    with pytest.raises(ssl.SSLError):
        old = ssl.TLSVersion.TLSv1_1
        hello(server.port, authority, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=old)


def cut_off(server, authority, stranger):
    """Half of what a client begins with, then nothing."""
    outgoing = ssl.MemoryBIO()
    state = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        state.do_handshake()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as peer:
        peer.sendall(outgoing.read()[:100])


REFUSED = {
    "an unknown CA": lambda server, authority, stranger: refusal(by_loop, local(server), TLS(ca=stranger.ca)),
    "another host name": lambda server, authority, stranger: refusal(
        by_loop, local(server), TLS(ca=authority.ca, server_name="broker.example")
    ),
    "no certificate": lambda server, authority, stranger: refusal(by_loop, local(server), TLS(ca=authority.ca)),
    "a certificate of another CA": lambda server, authority, stranger: refusal(
        by_loop, local(server), TLS(authority.ca, *stranger.client("intruder"))
    ),
    "an expired certificate": lambda server, authority, stranger: refusal(
        by_loop, local(server), TLS(authority.ca, *authority.client("expired", begins=-2 * DAY, ends=-DAY))
    ),
    "a certificate that is not valid yet": lambda server, authority, stranger: refusal(
        by_loop, local(server), TLS(authority.ca, *authority.client("early", begins=DAY, ends=2 * DAY))
    ),
    "plaintext": lambda server, authority, stranger: refusal(by_loop, local(server), False, PermissionDeniedError),
    "an old version": old_version,
    "a handshake that was cut off": cut_off,
}


def test_others_do_not_notice_who_is_refused(mutual, authority, stranger):
    """Calls on an open connection and on new ones go on, beside everything that is refused."""
    tls = TLS(authority.ca, *authority.client("neighbour"))
    done, failures, calls = threading.Event(), [], []

    def work():
        try:
            with Client(local(mutual), tls=tls) as kept:
                kept.create_queue("beside")
                while not done.is_set():
                    kept.enqueue("beside", None, b"x")
                    with Client(local(mutual), tls=tls) as fresh:
                        calls.append(fresh.enqueue("beside", None, b"x"))
        except FilaError as error:
            failures.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for refuse in REFUSED.values():
            before = len(calls)
            refuse(mutual, authority, stranger)
            wait_until(lambda before=before: len(calls) > before or failures)
    finally:
        done.set()
        worker.join(30)
    assert failures == []


def hello(port, authority, **versions):
    context = ssl.create_default_context(cafile=authority.ca)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # old versions are what this is about
        for name, value in versions.items():
            setattr(context, name, value)
    plain = socket.create_connection(("127.0.0.1", port), timeout=10)
    with plain, context.wrap_socket(plain, server_hostname="localhost") as secure:
        return secure.version()


class TestOtherClients:
    def test_the_command(self, mutual, authority):
        pair = authority.client("operator")
        options = ["--addr", local(mutual), "--tls-ca", authority.ca, "--tls-cert", pair.cert, "--tls-key", pair.key]
        assert fila("queue", "create", "by-command", *options).returncode == 0
        environ = {"FILA_TLS_CA": authority.ca, "FILA_TLS_CERT": pair.cert, "FILA_TLS_KEY": pair.key}
        assert "by-command" in fila("queue", "list", "--addr", local(mutual), env=environ).stdout
        refused = fila("queue", "list", "--addr", local(mutual), "--tls-ca", authority.ca)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "the server requires a client certificate" in refused.stderr
        plain = fila("queue", "list", "--addr", local(mutual))
        assert plain.stderr == "Error: this port accepts TLS connections only\n"

    def test_jobs(self, mutual, authority, monkeypatch):
        pair = authority.client("worker")
        for name, value in (("CA", authority.ca), ("CERT", pair.cert), ("KEY", pair.key)):
            monkeypatch.setenv(f"FILA_TLS_{name}", value)
        queue = create_queue(QueueSettings.at(f"filas://{local(mutual)}/jobs"))
        try:
            queue.enqueue({"n": 1})
            queue.ack(queue.dequeue(10))
        finally:
            queue.close()

    def test_the_connector_for_spark(self, mutual, authority):
        options = pytest.importorskip("fila.spark.options")
        from fila.spark.connections import client_of

        pair = authority.client("executor")
        given = {
            "addr": local(mutual),
            "queue": "q",
            "tlsCa": authority.ca,
            "tlsCert": pair.cert,
            "tlsKey": pair.key,
        }
        assert client_of(options.queue_read(given, ("seq",)).broker).list_queues() is not None


def fila(*args, env=None):
    command = [sys.executable, "-m", "fila.cli.main", *args]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=clean | (env or {}), check=False)


class TestTheHttpPort:
    def test_it_has_tls_too(self, server, authority):
        assert fetch(server, "/healthz", authority) == (200, "ok\n")
        assert fetch(server, "/metrics", authority)[0] == 200

    def test_plaintext_gets_a_sentence(self, server):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://localhost:{http_port(server)}/healthz", timeout=10)
        assert caught.value.code == 400
        assert caught.value.read() == b"this port accepts TLS connections only\n"

    def test_probes_need_no_certificate_and_metrics_do(self, mutual, authority):
        assert fetch(mutual, "/readyz", authority)[0] == 200
        status, body = fetch(mutual, "/metrics", authority)
        assert (status, body.startswith("a client certificate is required")) == (403, True)
        assert fetch(mutual, "/metrics", authority, authority.client("scraper"))[0] == 200


def fetch(server, path, authority, pair=None):
    context = ssl.create_default_context(cafile=authority.ca)
    if pair is not None:
        context.load_cert_chain(*pair)
    try:
        with urllib.request.urlopen(f"https://localhost:{http_port(server)}{path}", timeout=10, context=context) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def http_port(server):
    entries = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    return [entry["port"] for entry in entries if entry["event"] == "serving metrics"][-1]


class TestStartUp:
    @pytest.mark.parametrize(
        "tls,reason",
        [
            ('cert = "nowhere.pem"\nkey = "nowhere.key"', "cannot read nowhere.pem: No such file or directory"),
            ('cert = "nowhere.pem"', "expected cert and key together, or neither"),
            ('client_auth = "required"', "expected client_ca together with client_auth"),
            ('min_version = "1.1"', "tls.min_version"),
        ],
    )
    def test_settings_that_cannot_be_used_stop_it_with_one_line(self, tls, reason):
        server = ServerProcess(config=f"[tls]\n{tls}\n")
        try:
            assert server.launch().wait(30) == 2
            [line] = server.log.splitlines()
            assert line.startswith("Error: ")
            assert reason in line
        finally:
            server.close()

    def test_required_client_certificates_end_protected_mode(self, mutual, server):
        assert "protected mode" not in mutual.log
        assert "protected mode" in server.log


def wait_until(holds, timeout=15):
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class TestRenewal:
    def test_certificates_change_under_load_and_no_call_fails(self, authority):
        """New pairs of both sides, by time and by SIGHUP, a broken pair in between: nobody notices."""
        pair, mine = authority.server("renewed"), authority.renew_client("loader")
        with tls_server(authority, pair, client_ca=authority.ca, client_auth="required") as server:
            tls = TLS(authority.ca, *mine)
            done, failures, sent, received = threading.Event(), [], [], []

            def produce(fresh):
                try:
                    client = Client(local(server), tls=tls)
                    while not done.is_set():
                        if len(sent) - len(received) > 200:  # however slow the consumer is, it can catch up
                            time.sleep(0.001)
                            continue
                        sent.append(client.enqueue("load", None, b"x"))
                        if fresh:  # a connection for each message
                            client.close()
                            client = Client(local(server), tls=tls)
                    client.close()
                except FilaError as error:
                    failures.append(error)

            def consume():
                try:
                    with Client(local(server), tls=tls) as client, client.consume("load") as messages:
                        for message in messages:
                            message.ack()
                            received.append(message.id)
                            if done.is_set() and len(received) >= len(sent):
                                return
                except FilaError as error:
                    failures.append(error)

            with Client(local(server), tls=tls) as kept:
                kept.create_queue("load")
                workers = [threading.Thread(target=produce, args=(fresh,)) for fresh in (False, True)]
                workers.append(threading.Thread(target=consume, daemon=True))
                for worker in workers:
                    worker.start()
                seen = {current(server, authority)}
                for number in range(4):
                    if number == 2:
                        Path(pair.cert).write_text("broken")
                        os.kill(server.pid, signal.SIGHUP)
                        wait_until(lambda: "the old ones stay in use" in server.log)
                    authority.server("renewed")
                    authority.renew_client("loader")
                    if number % 2:
                        os.kill(server.pid, signal.SIGHUP)
                    wait_until(lambda: current(server, authority) not in seen)
                    seen.add(current(server, authority))
                    assert kept.list_queues()  # on the connection of the beginning
                done.set()
                for worker in workers[:2]:
                    worker.join(30)
                kept.enqueue("load", None, b"last")
                wait_until(lambda: len(received) >= len(sent))
            assert failures == []
            assert len(seen) == 5
            assert set(sent) <= set(received)


def current(server, authority):
    """The serial number of the certificate that new connections get."""
    context = ssl.create_default_context(cafile=authority.ca)
    context.load_cert_chain(*authority.client("looker"))
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    with plain, context.wrap_socket(plain, server_hostname="localhost") as secure:
        return secure.getpeercert()["serialNumber"]
