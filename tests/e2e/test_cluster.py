"""A broker that three members keep in a log on PostgreSQL: whatever becomes of a member, nothing is lost or doubled."""

import asyncio
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from fila import Client
from fila.server.first_key import create_admin_key
from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.e2e.members import NAMES, cluster, under_load
from tests.e2e.support import eventually, take

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def members(tmp_path):
    with cluster(tmp_path) as started:
        yield started


def test_an_owner_that_is_killed_is_followed_at_once_and_nothing_is_lost_or_doubled(members):
    """Twice, with the first one back as a standby."""

    async def scenario(load, first):
        members.servers[first].kill()
        second = await asyncio.to_thread(members.owner, besides=[first])
        await load.progress()
        members.servers[first].launch()
        await asyncio.to_thread(members.until_logged, first, "listening", 2)
        await load.progress()
        members.servers[second].kill()
        await asyncio.to_thread(members.owner, besides=[second])

    under_load(members, scenario)


def test_an_owner_that_was_stopped_and_goes_on_hands_nothing_out_and_confirms_nothing(members):
    async def scenario(load, first):
        members.pause(first)
        second = await asyncio.to_thread(members.owner, besides=[first])
        await load.progress()
        members.go_on(first)
        await asyncio.to_thread(members.until_logged, first, "listening", 2)
        await load.progress()
        assert await asyncio.to_thread(members.owner) == second
        assert "this member does not own the shard any more" in members.events(first)

    under_load(members, scenario)


def test_an_owner_that_is_told_to_stop_hands_over(members):
    async def scenario(_, first):
        assert await asyncio.to_thread(members.servers[first].stop) == 0
        assert "handed over" in members.events(first)

    under_load(members, scenario)


@pytest.mark.parametrize("writes", [False, True], ids=["idle", "writing"])
def test_an_owner_that_is_told_to_stop_while_the_engine_is_away_ends(tmp_path, writes):
    with cluster(tmp_path, "[server]\nshutdown_grace_ms = 1000") as members:
        first = members.start()
        with Client(members.servers[first].addr, timeout=60) as client, ThreadPoolExecutor() as threads:
            client.create_queue("q")
            members.engine.pause()
            time.sleep(1)  # it looks at the log
            sending = [threads.submit(client.enqueue, "q", {}, b"in flight") for _ in range(writes)]
            time.sleep(0.5)
            assert members.servers[first].stop() == 0
            members.engine.resume()
            members.owner(besides=[first])
            members.servers[first].launch()
            assert all(each.result() for each in sending)


def test_an_engine_that_stands_still_costs_time_and_nothing_else(members):
    """Longer than leases last: who extends them keeps them."""

    async def scenario(load, first):
        members.engine.pause()
        await asyncio.sleep(7)
        members.engine.resume()
        await load.progress()
        assert await asyncio.to_thread(members.owner) == first

    under_load(members, scenario)


def test_a_log_that_has_become_long_is_cut_off_and_who_is_too_far_behind_begins_with_a_snapshot(members):
    """After 256 MiB of log, of which nothing waits any more: a member that slept, and one that has lost its store."""
    owner = members.start()
    first, second = [name for name in NAMES if name != owner]
    with Client(members.addr, timeout=60) as client:
        client.create_queue("q")
        members.pause(second)
        for number in range(17):
            client.enqueue_many("q", [bytes([number]) * (1 << 20)] * 16)
            take(client, "q", 16)
        eventually(lambda: int(members.engine.sql("SELECT min(position) FROM orders")) > 0, "the log is cut off", 120)
        members.go_on(second)
        members.until_logged(second, "this member is too far behind, and begins with a snapshot")
        members.until_logged(second, "listening", 2)
        members.servers[first].kill()
        shutil.rmtree(members.servers[first].data_dir)
        members.servers[first].launch()
        members.until_logged(first, "listening", 2)
        client.enqueue("q", {}, b"after it")
    members.check_copies()


def test_members_that_do_not_hear_each_other_leave_an_owner_alone(tmp_path):
    """They see in the log that it lives, also when nothing is asked of it. When it is gone, another takes over."""
    with cluster(tmp_path, deaf=True) as members:
        first = members.start()
        time.sleep(9)  # three times as long as an owner may be silent
        assert sum(members.events(name).count("this member owns the shard") for name in NAMES) == 1
        assert members.owns(first)
        members.servers[first].kill()
        members.owner(besides=[first])


def test_every_member_takes_every_call(members):
    owner = members.start()
    with Client(members.servers[owner].addr) as client:
        client.create_queue("q")
    for name in NAMES:
        server = members.servers[name]
        with grpc.insecure_channel(server.addr) as channel:
            hot, admin = service_pb2_grpc.FilaServiceStub(channel), admin_pb2_grpc.FilaAdminStub(channel)
            message = service_pb2.EnqueueRequest(queue="q", payload=name.encode())
            answer, call = hot.Enqueue.with_call(message, timeout=20)
            assert answer.message_id
            told = dict(call.trailing_metadata()).get("fila-owner")
            assert told == (None if name == owner else members.servers[owner].addr)
            assert [each.name for each in admin.ListQueues(admin_pb2.ListQueuesRequest(), timeout=20).queues]
            cluster_map = hot.GetClusterMap(service_pb2.GetClusterMapRequest(), timeout=20).map
            assert [member.id for member in cluster_map.members] == list(NAMES)
            assert cluster_map.members[cluster_map.owners[0]].address == members.servers[owner].addr
            assert members.health(name) == 1
        with Client(server.addr) as client:
            assert [bytes(message.payload) for message in take(client, "q", 1)] == [name.encode()]


def test_messages_keep_their_ids_over_a_takeover(members):
    """An ack of a lease of before is good at the new owner."""
    first = members.start()
    with Client(members.addr, timeout=60) as client:
        client.create_queue("q")
        message_id = client.enqueue("q", {}, b"hello")
        consumer = iter(client.consume("q"))
        message = next(consumer)
        members.servers[first].kill()
        members.owner(besides=[first])
        assert message.id == message_id
        message.ack()
        eventually(lambda: client.queue_stats("q").counters.acked == 1, "the ack counts")


@pytest.mark.parametrize(
    "config, reason",
    [
        ("[server]\nworkers = 2", "server.workers above 1 does not work together with [cluster] yet"),
        ('[storage]\nstore = "memory"', 'storage.store = "memory" does not work together with [cluster] yet'),
    ],
)
def test_what_does_not_work_in_a_cluster_is_refused(tmp_path, config, reason):
    with cluster(tmp_path, config) as members:
        server = members.servers["a"]
        assert server.launch().wait(30) == 2
        assert reason in server.log


def test_a_store_that_is_not_the_clusters_is_refused(members):
    """And that of a cluster by a server without one: what it writes would not be in the log."""
    server = members.servers["a"]
    config = (server.workdir / "fila.toml").read_text()
    (server.workdir / "fila.toml").write_text("")
    server.start()
    server.stop()
    (server.workdir / "fila.toml").write_text(config)
    assert server.launch().wait(30) == 1
    assert "holds the store of a server without a cluster" in server.log
    other = members.servers["b"]
    other.launch()
    members.owner()
    other.stop()
    (other.workdir / "fila.toml").write_text("")
    assert other.launch().wait(30) == 1
    assert "belongs to the cluster 'orders'" in other.log
    with pytest.raises(OSError, match="belongs to the cluster 'orders'"):
        create_admin_key(other.data_dir)
