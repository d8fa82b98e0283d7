"""API keys end to end: a server process, the SDK and the command line, and what the log tells of it."""

import json
import threading
import time

import pytest

from fila import (
    AsyncClient,
    Client,
    EnqueueManyError,
    FilaError,
    InvalidArgumentError,
    PermissionDeniedError,
)
from fila.testing import ServerProcess

from .support import fila

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def server():
    with ServerProcess(config='[log]\nlevel = "debug"\n') as server:
        yield server


@pytest.fixture
def admin(server):
    return fila(server, "auth", "init").strip()


def test_without_keys_everything_works_as_before(server):
    with Client(server.addr) as client:
        client.create_queue("q")
        client.enqueue("q", payload=b"x")
        assert client.auth.who_am_i().principal == ""


def test_from_the_first_key_on_nothing_works_without_one(server, admin):
    with Client(server.addr) as client:
        with pytest.raises(PermissionDeniedError, match="needs an API key"):
            client.list_queues()
        with pytest.raises(PermissionDeniedError, match="needs an API key"):
            client.enqueue("q", payload=b"x")
    with Client(server.addr, api_key=admin) as client:
        client.create_queue("q")
        client.enqueue("q", payload=b"x")
        for message in client.consume("q"):
            message.ack()
            break
        assert client.auth.who_am_i().principal == "admin"
    assert "There are keys already" in fila(server, "auth", "init", key=admin, code=1)
    assert "needs an API key" in fila(server, "auth", "init", code=1)


def test_a_key_may_do_what_its_role_says(server, admin):
    with Client(server.addr, api_key=admin) as client:
        client.create_queue("orders.new")
        client.create_queue("mail")
        made = client.auth.create_key("shop", ["producer:orders.**"], ttl_ms=60_000)
    assert made.token not in repr(made)
    with Client(server.addr, api_key=made.token) as shop:
        shop.enqueue("orders.new", payload=b"x")
        with pytest.raises(PermissionDeniedError, match='"shop" lacks the permission enqueue on queue "mail"'):
            shop.enqueue("mail", payload=b"x")
        with pytest.raises(EnqueueManyError) as refused:
            shop.enqueue_many("mail", [b"a", b"b"])
        assert {type(error) for error in refused.value.failed.values()} == {PermissionDeniedError}
        with pytest.raises(PermissionDeniedError, match="consume"):
            next(iter(shop.consume("orders.new")))
        assert shop.list_queues() == []


async def _ask(addr, key):
    async with AsyncClient(addr, api_key=key) as client:
        return (await client.auth.who_am_i()).roles


def test_the_async_client_has_keys_too(server, admin):
    import asyncio

    assert asyncio.run(_ask(server.addr, admin)) == ("admin",)


def test_the_command_line_manages_keys(server, admin, tmp_path):
    token = fila(server, "auth", "key", "create", "billing", "--role", "producer:billing.**", key=admin).strip()
    file = tmp_path / "billing.key"
    file.write_text(token + "\n")
    file.chmod(0o600)
    me = json.loads(fila(server, "auth", "whoami", "--json", "--api-key-file", str(file)))
    assert (me["principal"], me["roles"]) == ("billing", ["producer:billing.**"])
    assert json.loads(fila(server, "auth", "whoami", "--json", env={"FILA_API_KEY_FILE": str(file)})) == me
    assert "lacks the permission" in fila(server, "queue", "create", "x", "--api-key-file", str(file), code=1)
    keys = json.loads(fila(server, "auth", "key", "list", "--json", key=admin))
    assert [key["principal"] for key in keys] == ["admin", "billing"]
    assert token not in json.dumps(keys)
    new = fila(server, "auth", "key", "rotate", me["key_id"], "--overlap", "1h", key=admin).strip()
    assert new != token
    fila(server, "auth", "key", "revoke", me["key_id"], "--yes", key=admin)
    assert "not valid" in fila(server, "auth", "whoami", "--api-key-file", str(file), code=1)
    fila(server, "auth", "role", "set", "tuner", "configure=throttle:billing.*", key=admin)
    fila(server, "auth", "principal", "set", "billing", "--role", "tuner", key=admin)
    fila(server, "throttle", "set", "billing.api", "--rate", "5", key=new)
    assert "lacks the permission" in fila(server, "throttle", "set", "other", "--rate", "5", key=new, code=1)
    assert "has the role" in fila(server, "auth", "role", "delete", "tuner", "--yes", key=admin, code=1)
    assert "1 key revoked" in fila(server, "auth", "principal", "delete", "billing", "--yes", key=admin)
    fila(server, "auth", "role", "delete", "tuner", "--yes", key=admin)
    assert "tuner" not in fila(server, "auth", "role", "list", key=admin)


def test_the_roles_of_producers_and_consumers_suffice_for_their_commands(server, admin):
    with Client(server.addr, api_key=admin) as client:
        client.create_queue("q")
        producer, consumer = (client.auth.create_key(role, [role]).token for role in ("producer", "consumer"))
    fila(server, "enqueue", "q", "hello", key=producer)
    assert "hello" in fila(server, "consume", "q", "--count", "1", key=consumer)
    assert "lacks the permission consume" in fila(server, "consume", "q", "--count", "1", key=producer, code=1)


def test_the_first_key_on_the_data_directory(server):
    assert "auth init" not in fila(server, "auth", "init", "--data-dir", str(server.data_dir), code=1)  # it is open
    server.stop()
    token = fila(server, "auth", "init", "--data-dir", str(server.data_dir)).strip()
    again = fila(server, "auth", "init", "--data-dir", str(server.data_dir)).strip()  # all admin keys were lost
    server.start()
    for key in (token, again):
        with Client(server.addr, api_key=key) as client:
            assert client.auth.who_am_i().principal == "admin"


def test_a_key_exchanged_under_load_loses_no_message_and_fails_no_call(server, admin, tmp_path):
    """Clients read the key from a file; the file is replaced, then the old key is revoked."""
    with Client(server.addr, api_key=admin) as client:
        client.create_queue("q")
        made = client.auth.create_key("worker", ["producer", "consumer"])
        file = tmp_path / "worker.key"
        file.write_text(made.token)
        sent, received, failed = [], set(), []
        enough, all_sent = threading.Event(), threading.Event()

        def produce():
            with Client(server.addr, api_key_file=file) as worker:
                while not enough.is_set():
                    if len(sent) - len(received) > 200:  # however slow the consumer is, it can catch up
                        time.sleep(0.001)
                        continue
                    try:
                        sent.append(worker.enqueue("q", payload=b"x"))
                        sent.extend(worker.enqueue_many("q", [b"y"] * 20))
                    except FilaError as error:
                        failed.append(error)

        def consume():
            with Client(server.addr, api_key_file=file) as worker:
                try:
                    for message in worker.consume("q"):
                        message.ack()
                        received.add(message.id)
                        if all_sent.is_set() and received.issuperset(sent):
                            return
                except FilaError as error:
                    failed.append(error)

        threads = [threading.Thread(target=produce), threading.Thread(target=consume)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        for _ in range(3):
            old = client.auth.list_keys("worker")[0].id
            new = client.auth.rotate_key(old, overlap_ms=60_000)
            (tmp_path / "next").write_text(new.token)
            (tmp_path / "next").rename(file)
            time.sleep(0.3)
            client.auth.revoke_key(old)
            time.sleep(0.5)
        enough.set()
        threads[0].join(60)
        all_sent.set()
        client.enqueue("q", payload=b"last")  # wakes a consumer that has everything
        threads[1].join(60)
        assert failed == []
        assert len(sent) > 20
        assert set(sent) <= received


def test_no_secret_is_stored_or_told(server, admin):
    secrets = [admin]
    with Client(server.addr, api_key=admin) as client:
        client.create_queue("q")
        made = client.auth.create_key("x", ["producer"])
        secrets += [made.token, client.auth.rotate_key(made.info.id).token]
        client.auth.revoke_key(made.info.id)
        for wrong in (made.token, admin + "0", "fila_admin_nonsense-secret", "not-a-key-secret"):
            with Client(server.addr, api_key=wrong) as stranger:
                with pytest.raises(PermissionDeniedError) as refused:
                    stranger.enqueue("q", payload=b"x")
                assert wrong not in str(refused.value)
    server.stop()
    parts = [*(token.rpartition("_")[2] for token in secrets), "nonsense-secret", "not-a-key-secret"]
    assert [part for part in parts if part in server.log] == []
    stored = b"".join(path.read_bytes() for path in server.data_dir.rglob("*") if path.is_file())
    assert [part for part in parts if part.encode() in stored] == []


@pytest.mark.parametrize("wrong", ["", " ", "two words", "line\nbreak", "ümlaut"])
def test_what_cannot_be_a_key_is_refused_by_the_client(wrong):
    with pytest.raises(InvalidArgumentError):
        Client("localhost:1", api_key=wrong)
