"""A full disk is no trap: producers are refused, consumers are served, nothing is lost, and room comes back."""

import json
import os
import signal
import subprocess
from contextlib import suppress

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fila import Client, OverloadedError
from fila.testing import ServerProcess
from tests.e2e.support import Inbox, contents, eventually

MIB = 1 << 20
PAYLOAD = bytes(64 * 1024)


def mounted(command, folder):
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")


@pytest.fixture(params=["tmpfs", "ext4"])
def small_disk(request, tmp_path):
    """A file system of 64 MiB where the server keeps its data."""
    folder = tmp_path / "data"
    folder.mkdir()
    if request.param == "tmpfs":
        mounted(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs"], folder)
    else:
        image = tmp_path / "image"
        with image.open("wb") as out:
            out.truncate(64 * MIB)
        made = ["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(image)]
        if subprocess.run(made, capture_output=True, check=False).returncode:
            pytest.skip("mkfs.ext4 is not here")
        mounted(["mount", "-o", "loop", str(image)], folder)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(client, ids):
    """Enqueue until the broker says that there is no room."""
    for _ in range(2000):
        try:
            ids.append(client.enqueue("orders", None, b"%8d" % len(ids) + PAYLOAD))
        except OverloadedError as error:
            return str(error)
    raise AssertionError("the disk did not become full")


def send_many(client):
    """Fill the disk with more than a hundred messages. Room comes back in steps, so it may take some tries."""
    ids = []
    eventually(lambda: fill(client, ids) and len(ids) > 100, "a hundred messages are taken")
    return ids


def fill_disk(folder, server):
    """Another program takes every byte that is left, faster than the server can look."""
    os.kill(server.pid, signal.SIGSTOP)
    with suppress(OSError), (folder / "hog").open("wb", buffering=0) as out:
        for size in (MIB, 4096, 1):
            with suppress(OSError):
                while out.write(bytes(size)) == size:
                    pass
    assert os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize < 4096
    os.kill(server.pid, signal.SIGCONT)


def drain(client, ids):
    """Everything that was confirmed comes, once and in order."""
    with Inbox(client, "orders", on_message=lambda message: message.ack()) as inbox:
        messages = inbox.wait(len(ids))
        assert [(message.id, message.attempt_count) for message in messages] == [(each, 0) for each in ids]
    assert [message.payload for message in messages] == [b"%8d" % number + PAYLOAD for number in range(len(ids))]
    eventually(lambda: contents(client, "orders") == (0, 0, 0), "all are acked")


def takes_messages(client):
    """Whether producers are served; what they sent is removed again."""
    try:
        client.enqueue("orders", None, b"probe")
    except OverloadedError:
        return False
    client.purge("orders", any_queue=True)
    return True


def producers_are_served(server):
    with grpc.insecure_channel(server.addr) as channel:
        request = health_pb2.HealthCheckRequest
        check = health_pb2_grpc.HealthStub(channel).Check
        assert check(request(), timeout=30).status == health_pb2.HealthCheckResponse.SERVING
        answer = check(request(service="fila.producers"), timeout=30).status
        return answer == health_pb2.HealthCheckResponse.SERVING


def test_a_full_disk_refuses_producers_and_serves_everybody_else(tmp_path, small_disk):
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        assert producers_are_served(server)
        ids = []
        said = fill(client, ids)
        assert said.startswith("the store is full: ")
        assert "enqueueing works again at " in said
        assert len(ids) > 100
        with pytest.raises(OverloadedError, match="the store is full"):
            client.create_queue("another")
        eventually(lambda: not producers_are_served(server), "the health of producers says so")
        assert contents(client, "orders") == (len(ids), 0, 0)
        drain(client, ids)
        eventually(lambda: takes_messages(client), "producers are taken again")
        eventually(lambda: producers_are_served(server), "and their health says so")
        again = send_many(client)
        drain(client, again)
        lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
        events = [line["event"] for line in lines if "producers are" in line["event"]]
        assert events[:2] == ["producers are refused", "disk space is available again: producers are accepted"]


@pytest.mark.parametrize("buffer_bytes", [64 * MIB, MIB], ids=["in the log", "in files"])
def test_fill_kill_start_drain_and_go_on(tmp_path, small_disk, buffer_bytes):
    """Nothing that was confirmed is lost, however often, whether messages are in RocksDB's log or in its files."""
    config = f"[storage]\nwrite_buffer_bytes = {buffer_bytes}\n"
    with ServerProcess(tmp_path, config=config) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        for _ in range(3):
            ids = []
            fill(client, ids)
            for _ in range(2):
                server.kill()
                server.start()
            assert contents(client, "orders") == (len(ids), 0, 0)
            drain(client, ids)
            eventually(lambda: takes_messages(client), "producers are taken again")


def test_a_server_that_is_killed_on_a_disk_without_a_byte_left_starts_and_drains(tmp_path, small_disk):
    """Another program has filled the disk to the last byte: the reserve serves consumers, and the start."""
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        ids = [client.enqueue("orders", None, b"%8d" % number + PAYLOAD) for number in range(100)]
        assert (small_disk / "FILA_RESERVE").exists()
        fill_disk(small_disk, server)
        server.kill()
        server.start()
        assert contents(client, "orders") == (100, 0, 0)
        # One that was connected before the kill cannot know what became of its first batch, and goes on trying.
        with Client(server.addr) as other, pytest.raises(OverloadedError, match="the store is full"):
            other.enqueue("orders", None, PAYLOAD)
        drain(client, ids)
        (small_disk / "hog").unlink()
        eventually(lambda: takes_messages(client), "producers are taken again")
        eventually((small_disk / "FILA_RESERVE").exists, "the reserve is taken again")


def test_consumers_are_served_when_another_program_fills_the_disk_under_them(tmp_path, small_disk):
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders", visibility_timeout_ms=600_000)
        ids = [client.enqueue("orders", None, b"%8d" % number + PAYLOAD) for number in range(50)]
        with Inbox(client, "orders", max_in_flight=1) as inbox:
            [held] = inbox.wait(1)
            fill_disk(small_disk, server)
            held.ack()
            second = inbox.wait(2)[1]
            assert (second.id, second.attempt_count) == (ids[1], 0)
            second.nack()
        eventually(lambda: not takes_messages(client), "producers are refused")


def test_a_purge_makes_room_on_a_full_disk(tmp_path, small_disk):
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        for _ in range(3):
            send_many(client)
            client.purge("orders", any_queue=True)
            assert contents(client, "orders") == (0, 0, 0)
            eventually(lambda: takes_messages(client), "producers are taken again")


def test_deleting_a_queue_makes_room_on_a_full_disk(tmp_path, small_disk):
    with ServerProcess(tmp_path) as server, Client(server.addr, timeout=30) as client:
        for _ in range(3):
            client.create_queue("orders")
            send_many(client)
            client.delete_queue("orders", force=True)
            eventually(lambda: _can_create(client), "queues can be made again")
            client.delete_queue("probe")


def _can_create(client):
    try:
        client.create_queue("probe")
    except OverloadedError:
        return False
    return True
