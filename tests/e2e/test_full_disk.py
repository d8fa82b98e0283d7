"""A full disk: writes are refused, nothing is lost, and everything goes on when there is room again."""

import subprocess

import pytest

from fila import Client, LimitExceededError
from fila.testing import ServerProcess
from tests.e2e.support import Inbox, contents, eventually

MIB = 1 << 20
PAYLOAD = bytes(64 * 1024)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 48 MiB in memory where the server keeps its data."""
    folder = tmp_path / "data"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(client, ids):
    """Enqueue until the broker says that there is no room."""
    for _ in range(2000):
        try:
            ids.append(client.enqueue("orders", None, b"%8d" % len(ids) + PAYLOAD))
        except LimitExceededError as error:
            return str(error)
    raise AssertionError("the disk did not become full")


def test_a_full_disk_refuses_writes_and_recovers(tmp_path, small_disk):
    """Enqueues fail with "no room", reads go on, consumers wait; with room again all goes on without a restart."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(30 * MIB))
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        ids = []
        assert "no room" in fill(client, ids)
        assert len(ids) > 50
        with pytest.raises(LimitExceededError, match="no room"):
            client.enqueue("orders", None, PAYLOAD)
        with pytest.raises(LimitExceededError, match="no room"):
            client.create_queue("another")
        assert [queue.name for queue in client.list_queues()] == ["orders", "orders.dlq"]
        assert contents(client, "orders") == (len(ids), 0, 0)

        with Inbox(client, "orders", on_message=lambda message: message.ack()) as inbox:
            eventually(lambda: client.queue_stats("orders").summary.consumers == 1, "a consumer waits")
            ballast.unlink()
            ids.append(eventually(lambda: _enqueued(client, len(ids)), "there is room again"))
            messages = inbox.wait(len(ids))
        assert [(message.id, message.attempt_count) for message in messages] == [(each, 0) for each in ids]
        assert [message.payload for message in messages] == [b"%8d" % number + PAYLOAD for number in range(len(ids))]
        assert contents(client, "orders") == (0, 0, 0)


def test_nothing_confirmed_is_lost_when_a_server_with_a_full_disk_is_killed(tmp_path, small_disk):
    """What was refused is not there afterwards, what was confirmed is, and in order."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(30 * MIB))
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        ids = []
        fill(client, ids)
        server.kill()
        ballast.unlink()
        server.start()
        assert contents(client, "orders") == (len(ids), 0, 0)
        with Inbox(client, "orders", on_message=lambda message: message.ack()) as inbox:
            assert [message.id for message in inbox.wait(len(ids))] == ids


def test_what_consumers_hold_survives_a_full_disk(tmp_path, small_disk):
    """An ack that cannot be written is refused and leaves the lease; it succeeds when there is room again."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(30 * MIB))
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders", visibility_timeout_ms=600_000)
        ids = [client.enqueue("orders", None, b"%8d" % 0 + PAYLOAD)]
        with Inbox(client, "orders", max_in_flight=1) as inbox:
            [held] = inbox.wait(1)
            fill(client, ids)
            with pytest.raises(LimitExceededError, match="no room"):
                held.ack()
            assert contents(client, "orders") == (len(ids) - 1, 1, 0)
            ballast.unlink()
            eventually(lambda: _done(held.ack), "the ack is taken")
            second = inbox.wait(2)[1]
            assert (second.id, second.attempt_count) == (ids[1], 0)


def _enqueued(client, number):
    try:
        return client.enqueue("orders", None, b"%8d" % number + PAYLOAD)
    except LimitExceededError:
        return None


def _done(settle):
    try:
        settle()
    except LimitExceededError:
        return False
    return True
