"""The audit end to end: a server process, the SDK and the command line, also after `kill -9`."""

import asyncio
import json
import os
import threading
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from fila import AsyncClient, Client, FilaError, InvalidArgumentError, PermissionDeniedError
from fila.storage.base import Family
from fila.storage.rocks import RocksStorage
from fila.testing import ServerProcess

from .support import eventually, fila

pytestmark = pytest.mark.timeout(120)

SCRIPT = "function on_enqueue(m) return {} end -- script-secret"


@pytest.fixture
def server(tmp_path):
    """The journal is off, as it is by default."""
    with ServerProcess(tmp_path) as process:
        yield process
        print(process.log)


def die(client, queue, number):
    """Have messages die."""
    for _ in range(number):
        client.enqueue(queue, payload=b"payload-secret")
    for done, message in enumerate(client.consume(queue, max_in_flight=1), 1):
        message.reject("error-secret")
        if done == number:
            return


def change_everything(client):
    """One change of each kind. Returns the key that was made."""
    client.create_queue("orders", max_attempts=1)
    client.update_queue("orders", script=SCRIPT, quantum=9)
    client.pause_queue("orders")
    client.resume_queue("orders")
    client.set_config("throttle.aws", "rate=5")
    client.set_config("throttle.aws", "rate=7")
    client.set_config("app.token", "config-secret")
    client.delete_config("app.token")
    die(client, "orders", 3)
    client.redrive("orders.dlq", count=1)
    client.redrive("orders.dlq")
    client.purge("orders", any_queue=True)
    client.group("orders", "readers").drop()
    client.auth.set_role("tuner", ["configure=throttle:*"])
    client.auth.set_principal("shop", ["tuner"])
    made = client.auth.create_key("shop")
    client.auth.rotate_key(made.info.id)
    client.auth.revoke_key(made.info.id)
    client.auth.delete_principal("shop")
    client.auth.delete_role("tuner")
    client.delete_queue("orders", force=True)
    return made


def told(entry):
    return {change.name: (change.before, change.after) for change in entry.changes}


def test_every_kind_of_change_is_told_with_who_where_old_and_new(server):
    with Client(server.addr) as client:
        client.create_queue("before-keys")
        root = client.auth.create_key("root", ["admin"])
    with Client(server.addr, api_key=root.token) as client:
        made = change_everything(client)
        entries = list(client.read_audit())
        (first,) = (entry for entry in entries if entry.resource == "before-keys")
        assert (first.principal, first.key_id, first.action) == ("", "", "CreateQueue")
        mine = [entry for entry in entries if entry.principal]
        assert {entry.principal for entry in mine} == {"root"}
        assert {entry.key_id for entry in mine} == {root.info.id}
        assert all(entry.peer.startswith("127.0.0.1:") for entry in mine)
        assert all(abs(entry.at - datetime.now(UTC)) < timedelta(minutes=5) for entry in mine)
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        by_action = {}
        for entry in mine:
            by_action.setdefault(entry.action, []).append(entry)
        assert told(by_action["UpdateQueue"][0])["quantum"] == ("4", "9")
        assert told(by_action["PauseQueue"][0]) == {"paused": ("false", "true")}
        assert told(by_action["ResumeQueue"][0]) == {"paused": ("true", "false")}
        limits = [told(entry) for entry in by_action["SetConfig"][:2]]
        assert limits == [{"limit": (None, "rate=5")}, {"limit": ("rate=5", "rate=7")}]
        before, after = told(by_action["DeleteConfig"][0])["value"]
        assert (before.startswith("hmac-sha256:"), after) == (True, None)
        assert told(by_action["DropGroup"][0]) == {"group": ("readers", None)}
        assert told(by_action["SetRole"][0]) == {"grants": (None, "configure=throttle:*")}
        assert told(by_action["SetPrincipal"][0]) == {"roles": (None, "tuner")}
        assert [entry.resource for entry in by_action["RevokeKey"]] == [made.info.id]
        assert told(by_action["DeleteQueue"][0])["quantum"] == ("9", None)
        (purge,) = (entry for entry in by_action["Purge"] if entry.stage == "end")
        assert (purge.count, purge.outcome, purge.resource) == (3, "ok", "orders")
        (begin,) = (entry for entry in by_action["Purge"] if entry.stage == "begin")
        assert purge.began_seq == begin.seq
        assert told(begin)["any_queue"] == (None, "true")
        redrives = [(entry.stage, entry.count, told(entry).get("count")) for entry in by_action["Redrive"]]
        assert redrives == [("begin", 0, (None, "1")), ("end", 1, None), ("begin", 0, None), ("end", 2, None)]


def test_nothing_secret_and_no_payload_is_in_it(server):
    with Client(server.addr) as client:
        root = client.auth.create_key("root", ["admin"])
    with Client(server.addr, api_key=root.token) as client:
        made = change_everything(client)
        filtered = {"headers": {"x": "header-secret"}, "error": "error-secret"}
        client.create_queue("q")
        client.purge("q", any_queue=True, **filtered)
    exported = fila(server, "audit", "export", "-", key=root.token)
    secrets = ["payload-secret", "error-secret", "config-secret", "script-secret", "header-secret"]
    secrets += [token.rpartition("_")[2] for token in (root.token, made.token)]
    assert "headers" in exported
    server.stop()
    for where in (exported, server.log):
        assert [secret for secret in secrets if secret in where] == []


def test_a_kill_right_after_an_answer_loses_no_entry(server):
    with Client(server.addr, timeout=30) as client:
        for turn in range(3):
            for number in range(10):
                client.set_config(f"key-{turn}-{number}", "x")
            client.create_queue(f"queue-{turn}")
            server.kill()
            server.start()
            names = [entry.resource for entry in client.read_audit()]
            assert names[-11:] == [f"key-{turn}-{number}" for number in range(10)] + [f"queue-{turn}"]
            assert len(names) == 11 * (turn + 1)


def test_a_kill_at_any_time_leaves_no_change_without_its_entry_and_no_entry_without_its_change(server):
    stop = threading.Event()

    def change():
        with Client(server.addr, timeout=30) as client:
            for number in count():
                if stop.is_set():
                    return
                try:
                    client.create_queue(f"q{os.urandom(4).hex()}")
                    client.set_config(f"k{number}-{os.urandom(4).hex()}", "x")
                except FilaError:
                    continue

    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with Client(server.addr, timeout=30) as client:
            for _ in range(3):
                seen = len(list(client.read_audit()))
                eventually(lambda seen=seen: len(list(client.read_audit())) > seen + 20, "some changes")
                server.kill()
                server.start()
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    with Client(server.addr, timeout=30) as client:
        changes = [entry for entry in client.read_audit() if entry.outcome == "ok"]
        queues = {queue.name for queue in client.list_queues() if not queue.name.endswith(".dlq")}
        assert {entry.resource for entry in changes if entry.action == "CreateQueue"} == queues
        assert {entry.resource for entry in changes if entry.action == "SetConfig"} == set(client.list_config())
        assert [entry.seq for entry in client.read_audit()] == list(range(1, changes[-1].seq + 1))


def test_a_purge_that_is_killed_is_told_with_the_exact_count(server):
    total = 20_000
    with Client(server.addr, timeout=30) as client:
        client.create_queue("q")
        client.enqueue_many("q", [b"x"] * total)

        def purge():
            with pytest.raises(FilaError):
                client.purge("q", any_queue=True, rate=2_000)

        failed = threading.Thread(target=purge)
        failed.start()
        eventually(lambda: client.queue_stats("q").summary.depth < total, "some are gone")
        server.kill()
        server.start()
        failed.join(60)

        def ended():
            return [entry for entry in client.read_audit(action="Purge") if entry.stage == "end"]

        (end, *more) = eventually(ended, "the interrupted purge is told")
        gone = total - client.queue_stats("q").summary.depth
        assert 0 < gone < total
        assert (end.outcome, end.count) == ("interrupted", gone)
        assert more == []


class TestReading:
    @pytest.fixture
    def admin(self, server):
        with Client(server.addr) as client:
            root = client.auth.create_key("root", ["admin"])
        with Client(server.addr, api_key=root.token) as client:
            for name in ("orders.new", "orders.old", "mail"):
                client.create_queue(name)
            client.auth.create_key("ops", ["operator"])
            client.set_config("throttle.aws", "rate=5")
            client.pause_queue("mail")
        return root.token

    def read(self, server, token, **options):
        with Client(server.addr, api_key=token) as client:
            return [(entry.action, entry.resource) for entry in client.read_audit(**options)]

    def test_filters(self, server, admin):
        orders = [("CreateQueue", "orders.new"), ("CreateQueue", "orders.old")]
        assert self.read(server, admin, resource="orders.*") == orders
        assert self.read(server, admin, resource="queue:orders.**") == orders
        assert self.read(server, admin, resource="throttle:**") == [("SetConfig", "aws")]
        assert len(self.read(server, admin, resource="queue:")) == 4
        assert self.read(server, admin, queue="mail") == [("CreateQueue", "mail"), ("PauseQueue", "mail")]
        assert self.read(server, admin, action="Pause*") == [("PauseQueue", "mail")]
        assert self.read(server, admin, who="nobody") == []
        assert len(self.read(server, admin, who="root")) == len(self.read(server, admin, who="root-*")) == 7
        assert self.read(server, admin, last=1) == [("PauseQueue", "mail")]
        assert self.read(server, admin, last=1, action="CreateQueue") == [("CreateQueue", "mail")]
        assert self.read(server, admin, last=99) == self.read(server, admin)
        now = datetime.now(UTC)
        assert self.read(server, admin, since=now + timedelta(hours=1)) == []
        assert self.read(server, admin, until=now - timedelta(hours=1)) == []
        assert len(self.read(server, admin, since=now - timedelta(hours=1), until=now + timedelta(hours=1))) == 9
        assert len(self.read(server, admin, from_seq=8)) == 2

    def test_refused_calls_are_told_and_can_be_chosen(self, server, admin):
        with Client(server.addr, api_key=admin) as client:
            eve = client.auth.create_key("eve", ["producer"])
        with Client(server.addr, api_key=eve.token) as stranger:
            for _ in range(50):
                with pytest.raises(PermissionDeniedError):
                    stranger.purge("mail", any_queue=True)
        with Client(server.addr, api_key=admin) as client:
            (entry,) = client.read_audit(refused=True)
            assert (entry.principal, entry.key_id, entry.peer) == ("eve", eve.info.id, "127.0.0.1")
            assert (entry.action, entry.resource, entry.outcome) == ("Purge", "mail", "PERMISSION_DENIED")

    def test_needs_the_permission_audit(self, server, admin):
        with Client(server.addr, api_key=admin) as client:
            eye = client.auth.create_key("eye", ["viewer"])
            client.auth.set_role("watcher", ["audit=mail"])
            mail = client.auth.create_key("mail", ["watcher"])
            ops = client.auth.create_key("ops")
        with pytest.raises(PermissionDeniedError, match='"eye" lacks the permission audit on the server'):
            self.read(server, eye.token)
        with pytest.raises(PermissionDeniedError, match="audit on the server"):
            self.read(server, mail.token)
        with pytest.raises(PermissionDeniedError, match="audit on queue"):
            self.read(server, mail.token, queue="orders.new")
        assert self.read(server, mail.token, queue="mail") == [("CreateQueue", "mail"), ("PauseQueue", "mail")]
        assert ("PauseQueue", "mail") in self.read(server, ops.token)
        assert "lacks the permission" in fila(server, "audit", "tail", key=eye.token, code=1)

    def test_the_async_client_reads_it_too_and_follows(self, server, admin):
        async def follow():
            found = []
            async with AsyncClient(server.addr, api_key=admin) as client:
                async for entry in client.read_audit(last=1, follow=True):
                    found.append((entry.action, entry.resource))
                    if len(found) == 1:
                        await client.resume_queue("mail")
                    else:
                        break
            return found

        assert asyncio.run(follow()) == [("PauseQueue", "mail"), ("ResumeQueue", "mail")]

    def test_a_follower_goes_on_over_a_restart(self, server, admin):
        found = []

        def follow():
            with Client(server.addr, api_key=admin) as client:
                for entry in client.read_audit(last=1, follow=True):
                    found.append(entry.resource)
                    if entry.resource == "late":
                        return

        follower = threading.Thread(target=follow)
        follower.start()
        eventually(lambda: found == ["mail"], "the last entry")
        server.kill()
        server.start()
        with Client(server.addr, api_key=admin) as client:
            client.create_queue("late")
        follower.join(60)
        assert found == ["mail", "late"]

    @pytest.mark.parametrize("wrong", [{"who": "a**b"}, {"action": "x" * 301}, {"from_seq": 1, "last": 1}, {"x": 1}])
    def test_what_cannot_be_asked_is_refused(self, server, admin, wrong):
        with pytest.raises(InvalidArgumentError):
            self.read(server, admin, **wrong)

    def test_the_command_line(self, server, admin, tmp_path):
        shown = fila(server, "audit", "tail", "--last", "2", key=admin)
        lines = shown.splitlines()
        assert lines[0].split()[3:] == ["SetConfig", "throttle:aws"]
        assert lines[1].split()[:2] == ["by", "root"]
        assert lines[2].strip() == "limit: rate=5"
        assert lines[5].strip() == "paused: false -> true"
        file = tmp_path / "audit.jsonl"
        assert "Wrote 4 entries" in fila(server, "audit", "export", str(file), "--resource", "queue:**", key=admin)
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        assert [row["resource"] for row in rows] == ["orders.new", "orders.old", "mail", "mail"]
        assert rows[-1]["changes"] == {"paused": {"before": "false", "after": "true"}}
        assert (rows[-1]["principal"], rows[-1]["outcome"]) == ("root", "ok")
        one = json.loads(fila(server, "audit", "tail", "--last", "1", "--since", "1h", "--json", key=admin))
        assert one == rows[-1]
        assert fila(server, "audit", "tail", "--until", "1h", key=admin) == ""
        assert "neither a time" in fila(server, "audit", "tail", "--since", "yesterday", key=admin, code=2)


def test_a_key_on_the_data_directory_is_told(server):
    server.stop()
    token = fila(server, "auth", "init", "--data-dir", str(server.data_dir)).strip()
    again = fila(server, "auth", "init", "--data-dir", str(server.data_dir)).strip()
    server.start()
    with Client(server.addr, api_key=token) as client:
        entries = [(entry.action, entry.resource_kind, entry.peer) for entry in client.read_audit()]
        assert client.auth.who_am_i().principal == "admin"
    assert again != token
    assert entries == [("InitKey", kind, "data directory") for kind in ("key", "principal", "key")]


def test_what_is_kept_is_bounded_in_bytes_also_on_the_disk(tmp_path):
    limit = 1 << 20

    async def change(addr, count):
        async with AsyncClient(addr, timeout=60) as client:
            for start in range(0, count, 100):
                await asyncio.gather(*(client.set_config(f"{'k' * 280}{n}", "x") for n in range(start, start + 100)))

    with ServerProcess(tmp_path, config=f"[audit]\nmax_bytes = {limit}\n") as server:
        asyncio.run(change(server.addr, 4_000))
        server.kill()
        server.start()
        with Client(server.addr) as client:
            kept = [entry.seq for entry in client.read_audit()]
        assert kept == list(range(kept[0], 4_001))
        assert 1_000 < len(kept) < 4_000
        server.stop()
        store = RocksStorage(server.data_dir)
        size = sum(len(key) + len(value) for key, value in store.scan(Family.AUDIT))
        store.close()
    assert 0.95 * limit < size < 1.01 * limit
