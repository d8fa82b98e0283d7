"""Limits of queues and principals, on a real server: at the border, with many at once, over crashes."""

import json
import threading
from contextlib import ExitStack, suppress

import pytest

from fila import Client, EnqueueManyError, FilaError, LimitExceededError, OutgoingMessage, QueueFullError
from fila.testing import ServerProcess
from tests.e2e.support import eventually, take
from tests.e2e.test_keys import fila

pytestmark = pytest.mark.timeout(120)

ROLES = ["producer", "consumer", "operator"]


@pytest.fixture
def server():
    with ServerProcess() as server:
        yield server


@pytest.fixture
def client(server):
    with Client(server.addr, timeout=30) as client:
        yield client


def held(client, queue):
    stats = client.queue_stats(queue)
    assert stats.capacity.messages == stats.summary.depth + stats.summary.in_flight
    return stats.capacity


class TestQueues:
    def test_n_messages_are_taken_and_the_next_one_is_refused_until_one_is_settled(self, client):
        client.create_queue("q", max_depth=3)
        for _ in range(3):
            client.enqueue("q", payload=b"x")
        with pytest.raises(QueueFullError, match='queue "q" is full: it holds 3 messages, max_depth=3'):
            client.enqueue("q", payload=b"x")
        take(client, "q", 1)  # which acks it
        eventually(lambda: held(client, "q").messages == 2, "one is settled")
        with pytest.raises(EnqueueManyError) as refused:
            client.enqueue_many("q", [OutgoingMessage(b"x")] * 3)
        assert list(refused.value.failed) == [1, 2]
        assert all(isinstance(error, QueueFullError) for error in refused.value.failed.values())
        assert client.queue_stats("q").counters.refused == 3

    def test_many_at_once_get_exactly_as_many_in_as_there_is_room_for(self, server, client):
        client.create_queue("q", max_depth=100, max_bytes=1_000_000)
        accepted = []

        def send():
            with Client(server.addr, timeout=30) as mine:
                for _ in range(40):
                    with suppress(QueueFullError):
                        accepted.append(mine.enqueue("q", payload=b"x" * 100))

        threads = [threading.Thread(target=send) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(accepted) == len(set(accepted)) == 100
        assert held(client, "q").messages == 100

    def test_a_crash_in_the_middle_of_a_flood_loses_nothing_and_counts_right(self, server, client):
        """What was confirmed is in the queue or among its dead letters, once, and the queue is within its limit."""
        client.create_queue("q", max_depth=50, max_bytes=100_000, overflow="drop-oldest")
        confirmed, stopping = set(), threading.Event()

        def flood():
            with Client(server.addr, timeout=30) as mine:
                while not stopping.is_set():
                    with suppress(FilaError):
                        confirmed.update(mine.enqueue_many("q", [OutgoingMessage(b"x" * 50)] * 20))

        thread = threading.Thread(target=flood)
        thread.start()
        for goal in (200, 400, 600):
            eventually(lambda goal=goal: len(confirmed) >= goal, f"{goal} messages are confirmed")
            server.kill()
            server.start()
        stopping.set()
        thread.join()
        client.enqueue("q", payload=b"last")
        eventually(lambda: held(client, "q").messages == 50, "the queue is within its limit")
        assert held(client, "q").bytes <= 100_000
        waiting = [message.id for message in client.peek("q", limit=1000).messages]
        dead, cursor = [], ""
        while True:
            page = client.peek("q.dlq", limit=1000, cursor=cursor)
            dead += [message.id for message in page.messages]
            cursor = page.cursor
            if not cursor:
                break
        assert len(waiting) == len(set(waiting)) == 50
        assert confirmed <= {*waiting, *dead}
        assert set(waiting).isdisjoint(dead)
        reasons = {letter.dead_letter.reason for letter in client.peek("q.dlq", limit=10).messages}
        assert reasons == {"max_depth"}

    def test_the_command_line_sets_and_shows_them(self, server, client):
        fila(server, "queue", "create", "q", "--max-depth", "10", "--max-bytes", "1000", "--overflow", "drop-oldest")
        client.enqueue("q", payload=b"x" * 898)
        assert "10 messages and 1,000 bytes, then drop-oldest" in fila(server, "queue", "inspect", "q")
        assert "max depth used       10%: 1 of 10 messages" in fila(server, "queue", "inspect", "q")
        shown = json.loads(fila(server, "queue", "inspect", "q", "--json"))
        assert shown["capacity"]["max_bytes"] == 1000
        assert shown["capacity"]["used"] == shown["capacity"]["bytes"] / 1000 > 0.89
        fila(server, "queue", "update", "q", "--max-depth", "0")
        assert client.queue_stats("q").config.max_depth == 0
        assert "overflow" in fila(server, "queue", "create", "r", "--overflow", "explode", code=2)


@pytest.fixture
def admin(server):
    with Client(server.addr) as first:
        token = first.auth.create_key("admin", ["admin"]).token
    with Client(server.addr, api_key=token, timeout=30) as admin:
        yield admin


def key_of(admin, name, **limits):
    admin.auth.set_principal(name, ROLES, limits=limits)
    return admin.auth.create_key(name).token


class TestPrincipals:
    def test_as_many_connections_as_it_may_over_all_of_its_keys(self, server, admin):
        keys = [key_of(admin, "team", connections=2), admin.auth.create_key("team").token]
        other = key_of(admin, "other")
        with ExitStack() as stack:
            first, second, third, theirs = (
                stack.enter_context(Client(server.addr, api_key=key, timeout=30)) for key in [*keys, keys[0], other]
            )
            first.list_queues()
            second.list_queues()
            with pytest.raises(LimitExceededError, match='"team" exceeds its limit connections=2'):
                third.list_queues()
            theirs.list_queues()
            first.list_queues()
            first.close()
            eventually(lambda: works(third.list_queues), "the place of the first is free")
            admin.auth.set_principal("team", ROLES, limits={"connections": 3})
            with Client(server.addr, api_key=keys[1], timeout=30) as fourth:
                fourth.list_queues()

    def test_as_many_queues_as_it_may(self, server, admin):
        key, other = key_of(admin, "team", queues=2), key_of(admin, "other")
        with Client(server.addr, api_key=key, timeout=30) as team:
            team.create_queue("one")
            team.create_queue("two")
            with pytest.raises(LimitExceededError, match='"team" owns 2 queues, its limit is queues=2'):
                team.create_queue("three")
            with Client(server.addr, api_key=other, timeout=30) as theirs:
                theirs.create_queue("theirs")
            server.restart()
            with pytest.raises(LimitExceededError):
                team.create_queue("three")
            assert team.queue_stats("one").capacity.owner == "team"
            team.delete_queue("one")
            team.create_queue("three")
            admin.auth.set_principal("team", ROLES, limits={"queues": 3})
            team.create_queue("four")

    def test_what_its_queues_may_hold(self, server, admin):
        key = key_of(admin, "team", queue_max_depth=2, queue_max_bytes=1000)
        with Client(server.addr, api_key=key, timeout=30) as team:
            team.create_queue("q", max_depth=1_000_000)
            admin.create_queue("free")
            admin.enqueue("q", payload=b"x")  # whoever sends it
            team.enqueue("q", payload=b"x")
            with pytest.raises(QueueFullError, match='queue_max_depth of its owner "team"=2'):
                team.enqueue("q", payload=b"x")
            server.kill()
            server.start()
            with pytest.raises(QueueFullError):
                team.enqueue("q", payload=b"x")
            admin.auth.set_principal("team", ROLES, limits={"queue_max_bytes": 1000})
            with pytest.raises(QueueFullError, match='queue_max_bytes of its owner "team"=1000'):
                team.enqueue("q", payload=b"x" * 999)
            team.enqueue("q", payload=b"x")
            for _ in range(5):
                team.enqueue("free", payload=b"x" * 1000)


def works(call):
    try:
        call()
    except FilaError:
        return False
    return True
