"""The server is killed with SIGKILL: what it confirmed before holds afterwards."""

import asyncio
import random
import threading
import time

import pytest

from fila import Client, MessageNotFoundError
from fila.testing import ServerProcess
from tests.e2e import many_kills
from tests.e2e.load import Load
from tests.e2e.support import CLOCKS_S, Inbox, contents, eventually, payloads, take


@pytest.mark.parametrize(
    "durability, kills, producers",
    [("wal", 4, 3), ("fsync", 2, 1)],
)
def test_nothing_confirmed_is_lost_or_undone_by_kills_under_load(tmp_path, durability, kills, producers):
    """Every confirmed enqueue is delivered, under one id, in the order of its key; nothing acked comes back."""

    async def scenario(server):
        load = Load(server.addr, "orders", producers=producers)
        async with load.running():
            for _ in range(kills):
                await load.progress()
                server.kill()
                await asyncio.to_thread(server.start)
            await load.progress()
        return load

    with ServerProcess(tmp_path, env={"FILA_STORAGE__DURABILITY": durability}) as server:
        with Client(server.addr) as client:
            client.create_queue("orders", fairness_header="tenant", visibility_timeout_ms=2000)
        load = asyncio.run(scenario(server))
        print(server.log)
    assert len(load.ids) >= 200 * (kills + 1)
    load.check()


@pytest.mark.parametrize("journal", [False, True])
def test_kills_with_every_feature_on(tmp_path, journal):
    """As `python -m tests.e2e.many_kills`, which kills a thousand times."""
    assert many_kills.kill_often(tmp_path, 4, journal, random.Random(7)) >= 200


def test_everything_is_as_it_was_after_a_crash(server):
    """Queues with their settings, waiting messages, attempts, delays and dedup keys survive kill -9."""
    with Client(server.addr, timeout=30) as client:
        client.create_queue("empty", visibility_timeout_ms=1234, quantum=7, dedup_window_ms=99_000)
        client.create_queue("orders", fairness_header="tenant", weight_header="share")
        client.create_queue("gone")
        client.delete_queue("gone")
        for number in range(20):
            headers = {"tenant": f"tenant-{number % 2}", "share": "3", "note": "ü"}
            client.enqueue("orders", headers, b"%d" % number, priority=number % 3)
        client.enqueue("orders", {"tenant": "later"}, b"later", delay_ms=3_600_000)
        retried = client.enqueue("orders", {"tenant": "retried"}, b"retried", dedup_key="once")
        with Inbox(client, "orders", max_in_flight=22) as inbox:
            for message in inbox.wait(21):
                if message.id == retried:
                    message.nack("no luck", delay_ms=0)
        eventually(lambda: contents(client, "orders") == (22, 0, 1), "everything is back")
        before = {queue.name: client.queue_stats(queue.name) for queue in client.list_queues()}

        server.kill()
        server.start()

        assert [queue.name for queue in client.list_queues()] == list(before)
        for name, stats in before.items():
            again = client.queue_stats(name)
            assert (again.config, again.created_at) == (stats.config, stats.created_at)
            assert (again.summary.depth, again.summary.delayed) == (stats.summary.depth, stats.summary.delayed)
        assert client.enqueue("orders", {}, b"retried again", dedup_key="once") == retried
        messages = {message.payload: message for message in take(client, "orders", 21)}
        assert sorted(messages) == sorted([b"retried", *(b"%d" % number for number in range(20))])
        for number in range(20):
            message = messages[b"%d" % number]
            assert message.headers == {"tenant": f"tenant-{number % 2}", "share": "3", "note": "ü"}
            assert (message.fairness_key, message.weight) == (f"tenant-{number % 2}", 3)
            assert (message.priority, message.attempt_count) == (number % 3, 1)
        assert messages[b"retried"].id == retried
        assert messages[b"retried"].attempt_count >= 1
        assert contents(client, "orders") == (1, 0, 1)


def test_order_inside_a_key_survives_a_crash(server):
    """What waits is delivered in the same order as without the crash: by priority, then first in, first out."""
    with Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        sent = [(priority, number) for number in range(200) for priority in (9, 1)]
        for priority, number in sent[:200]:
            client.enqueue("orders", None, b"%d-%d" % (priority, number), priority=priority)
        server.kill()
        server.start()
        for priority, number in sent[200:]:
            client.enqueue("orders", None, b"%d-%d" % (priority, number), priority=priority)
        assert payloads(take(client, "orders", 400)) == [b"%d-%d" % each for each in sorted(sent)]


def test_a_lease_survives_a_crash(server):
    """A message leased before the kill is not delivered before its timeout, and its holder can still ack it."""
    timeout_s = 6
    holder = Client(server.addr)
    with Client(server.addr, timeout=30) as client:
        client.create_queue("orders", visibility_timeout_ms=timeout_s * 1000)
        client.enqueue_many("orders", [b"kept", b"forgotten"])
        leased_at = time.monotonic()
        kept, forgotten = Inbox(holder, "orders", max_in_flight=2).wait(2)
        server.kill()
        holder.close()  # while nobody is there to notice
        server.start()
        client.enqueue("orders", None, b"new")
        with Inbox(client, "orders") as inbox:
            assert inbox.wait(1)[0].payload == b"new"
            client.ack("orders", kept.id, kept.lease_id)
            back = inbox.wait(2)[1]
            assert (back.id, back.attempt_count) == (forgotten.id, 1)
            assert back.lease_id != forgotten.lease_id
            assert inbox.arrived_at[1] - leased_at >= timeout_s - CLOCKS_S
            back.ack()
            inbox.messages[0].ack()
        assert contents(client, "orders") == (0, 0, 0)


def test_an_ack_that_was_never_carried_out_is_not_confirmed(server):
    """If the server was killed before it saw the ack, and the lease ended meanwhile, the holder is told."""
    with Client(server.addr, timeout=60) as client:
        client.create_queue("orders", visibility_timeout_ms=1000)
        client.enqueue("orders", None, b"job")
        outcome = []
        inbox = Inbox(client, "orders", max_in_flight=1)
        [message] = inbox.wait(1)
        server.kill()
        expires_at = time.monotonic() + 1

        def ack():
            try:
                message.ack()
                outcome.append("confirmed")
            except MessageNotFoundError:
                outcome.append("refused")

        asking = threading.Thread(target=ack)
        asking.start()
        eventually(lambda: time.monotonic() > expires_at, "the lease is over")
        server.start()
        asking.join(60)
        again = inbox.wait(2)[1]
        inbox.close()
        assert (again.id, again.attempt_count) == (message.id, 1)
        assert outcome == ["refused"]


def test_ids_go_on_increasing_after_a_crash(server):
    """The id of a later message is larger, also across a restart."""
    with Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        ids = client.enqueue_many("orders", [b""] * 50)
        server.kill()
        server.start()
        ids += client.enqueue_many("orders", [b""] * 50)
        assert ids == sorted(set(ids))
