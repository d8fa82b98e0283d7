"""Stores that older code has made are migrated at a start, also by one that is killed in the middle, and lose nothing;
newer ones are refused.

The stores are in tests/fixtures/stores, with what has to be in them; `make.py` there made them with code out of git:
the first and the last commit that wrote each format that is still read.
"""

import json
import subprocess
import sys

import grpc
import pytest

from fila import Client, StagedPart
from fila.storage import codec, keys
from fila.storage.base import Batch, Family
from fila.storage.format import FORMAT, FORMAT_FILE, OLDEST_FORMAT
from fila.storage.migration import STEPS
from fila.storage.rocks import RocksStorage
from fila.testing import ServerProcess
from fila.v1 import service_pb2
from tests.e2e.support import take
from tests.e2e.test_backup import store_command
from tests.fixtures.stores.make import HERE, PRODUCERS

STORES = sorted(file.stem for file in HERE.glob("format-*.json"))
OLD = [name for name in STORES if not name.startswith(f"format-{FORMAT}")]


def unpack(name, folder):
    """The folder of a server with this store, and what has to be in it."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["tar", "-x", "-f", HERE / f"{name}.tar.gz", "-C", folder], check=True)
    return json.loads((HERE / f"{name}.json").read_text())


def produce_again(server):
    """Every producer sends its first batch again, as after a lost answer. Returns the ids that it is told."""
    ids = []
    with grpc.insecure_channel(server.addr) as channel:
        call = channel.unary_unary(
            "/fila.v1.FilaService/EnqueueBatch",
            service_pb2.EnqueueBatchRequest.SerializeToString,
            service_pb2.EnqueueBatchResponse.FromString,
        )
        for number in range(PRODUCERS):
            messages = [
                service_pb2.EnqueueRequest(queue="produced", payload=f"{number}/{i}".encode()) for i in range(3)
            ]
            request = service_pb2.EnqueueBatchRequest(messages=messages, producer_id=f"p{number}", sequence=1)
            ids += [result.message_id for result in call(request, timeout=30).results]
    return ids


def verify(server, expected):
    """All that the older server had confirmed is there, and in the state in which it was."""
    assert produce_again(server) == expected["produced"], "a batch was enqueued twice"
    with Client(server.addr, timeout=30) as client:
        there = {queue.name: queue for queue in client.list_queues()}
        orders = there["orders"]
        assert orders.in_flight == len(expected["held"])
        assert orders.delayed == len(expected["failed"]) + 1
        assert orders.depth + orders.in_flight == len(expected["orders"]) + 1
        ready = orders.depth - orders.delayed
        assert {message.id for message in take(client, "orders", ready)} == set(expected["orders"]) - {
            *expected["held"],
            *expected["failed"],
        }
        peeked = {message.id: message for message in client.peek("orders", limit=100).messages}
        assert peeked[expected["failed"][0]].attempts[-1].error == "try again"
        assert expected["delayed"] in peeked
        assert sorted(message.id for message in take(client, "orders.dlq", len(expected["dead"]))) == sorted(
            expected["dead"]
        )
        assert there["paused"].paused
        again = client.enqueue("paused", {"provider": "acme"}, b"keyed", dedup_key="once")
        assert str(again) == expected["keyed"]
        assert client.get_config("throttle.provider:acme") == "rate=5,burst=10"
        claim = client.group("claimed", "readers").claim(0)
        assert {"messages": claim.messages, "lease_id": claim.lease_id} == expected["claim"]
        assert client.transaction("writer", 0).commit([]) is False, "a transaction was forgotten"
        assert client.transaction("writer", 1).commit([StagedPart(*expected["open_part"])]) is True
        assert len({message.id for message in take(client, "staged", 17)}) == 17
        assert sorted(message.id for message in take(client, "produced", PRODUCERS * 3)) == sorted(expected["produced"])


def test_there_is_a_store_of_every_format_that_is_read():
    assert {int(name.split("-")[1]) for name in STORES} == set(range(OLDEST_FORMAT, FORMAT + 1))
    assert set(STEPS) == set(range(OLDEST_FORMAT, FORMAT))


@pytest.mark.parametrize("name", STORES)
def test_a_store_of_older_code_is_whole_before_and_after_a_start(name, tmp_path):
    expected = unpack(name, tmp_path)
    assert "is whole" in store_command("check", "--data-dir", tmp_path / "data")
    with ServerProcess(tmp_path) as server:
        assert ("the store is being migrated" in server.log) == (name in OLD)
        assert (server.data_dir / FORMAT_FILE).read_text() == f"{FORMAT}\n"
        verify(server, expected)
        server.stop()
        before = len(server.log)
        server.start()
        assert "migrated" not in server.log[before:]
    assert "is whole" in store_command("check", "--data-dir", tmp_path / "data")


def test_a_backup_of_an_older_format_is_restored_and_migrated(tmp_path):
    expected = unpack(OLD[0], tmp_path / "old")
    store_command("backup", "--data-dir", tmp_path / "old" / "data", "--to", tmp_path / "backup")
    store_command("restore", "--from", tmp_path / "backup", "--data-dir", tmp_path / "new" / "data")
    with ServerProcess(tmp_path / "new") as server:
        assert "the store is being migrated" in server.log
        verify(server, expected)


KILLED = """
import os, signal, sys
from pathlib import Path
from fila.storage import migration
from fila.storage.rocks import RocksStorage
migration.AT_ONCE = 4
calls = iter(range(1000))
def progress(*_):
    if next(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
RocksStorage(Path(sys.argv[1]), on_migration=progress)
"""


@pytest.mark.parametrize("name", OLD)
def test_a_migration_that_is_killed_goes_on_at_the_next_start(name, tmp_path):
    """Killed at its begin, after one write, after two, after all of them and before the format was noted."""
    expected = unpack(name, tmp_path)
    for at in (0, 1, 2, 4):
        done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "data", str(at)], timeout=60, check=False)
        assert done.returncode == -9
        assert (tmp_path / "data" / FORMAT_FILE).read_text() != f"{FORMAT}\n"
    with ServerProcess(tmp_path) as server:
        verify(server, expected)
    assert "is whole" in store_command("check", "--data-dir", tmp_path / "data")


def test_a_server_that_is_killed_in_the_middle_of_a_long_migration(tmp_path):
    """The real program, with so many producers that it is killed while it is at it. Its log says how far it is."""
    expected = unpack("format-4-last", tmp_path)
    store = RocksStorage(tmp_path / "data")  # migrates what is there; what follows is as format 4 wrote it
    _, value = next(store.scan(Family.DEDUP, keys.PRODUCER_MARK))
    heard_at = codec.read_produced(value).heard_at
    for first in range(0, 60_000, 5_000):
        batch = Batch()
        for number in range(first, first + 5_000):
            old = bytes([codec.VERSION]) + heard_at.to_bytes(8, "big")
            batch.put(Family.DEDUP, keys.producer_batch(f"q{number:06}", 1), old)
        store.write(batch)
    store.close()
    (tmp_path / "data" / FORMAT_FILE).write_text("4\n")
    server = ServerProcess(tmp_path)
    try:
        process = server.launch()
        while "entries" not in server.log.partition("the store is being migrated")[2]:
            assert process.poll() is None, server.log
        process.kill()
        process.wait(30)
        assert (tmp_path / "data" / FORMAT_FILE).read_text() == "4\n"
        server.start()
        verify(server, expected)
    finally:
        server.close()


@pytest.mark.parametrize("number, words", [(3, "too old to be migrated"), (FORMAT + 1, "a later version")])
def test_what_cannot_be_read_is_refused_in_words(tmp_path, number, words):
    with ServerProcess(tmp_path) as server:
        server.stop()
        (server.data_dir / FORMAT_FILE).write_text(f"{number}\n")
        assert server.launch().wait(30) == 1
        assert words in server.log
        assert (server.data_dir / FORMAT_FILE).read_text() == f"{number}\n"
        (server.data_dir / FORMAT_FILE).write_text(f"{FORMAT}\n")
        server.start()
