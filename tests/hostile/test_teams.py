"""A team that sends as fast as it can to a queue that is full: it fills neither the disk nor the time of others."""

import threading
import time
from contextlib import suppress

import pytest

from fila import Client, EnqueueManyError, OutgoingMessage
from fila.core.capacity import OVER_BYTES
from tests.hostile.support import MIB, MOST_DELAY_MS, MOST_MEMORY

SECONDS = 3.0
QUEUE_BYTES = MIB
MOST_DISK = 32 * MIB
"""What the flood may leave in the store: the queue's own megabyte, its dead letters, and what RocksDB keeps of it"""
SENDERS = 4
LEAST_BATCHES, MOST_BATCHES = 12, 10_000
"""Of each sender: more than the queue and its dead letters take, on a slow machine too"""


@pytest.fixture
def flooder(server, monkeypatch):
    """The key of a team whose queues are limited. The canary has a key of another one."""
    with Client(server.addr) as first:
        admin = first.auth.create_key("admin", ["admin"]).token
    with Client(server.addr, api_key=admin) as client:
        limits = {"queue_max_bytes": QUEUE_BYTES, "queues": 1, "connections": SENDERS}
        client.auth.set_principal("flooder", ["operator", "producer"], limits=limits)
        monkeypatch.setenv("FILA_API_KEY", client.auth.create_key("canary", ["admin"]).token)
        return client.auth.create_key("flooder").token


def size_of(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("overflow", ["reject", "drop-oldest"])
def test_a_team_that_floods_its_queue_fills_neither_the_disk_nor_the_time_of_others(server, attack, flooder, overflow):
    sent = refused = 0

    def flood(until):
        nonlocal sent, refused
        with Client(server.addr, api_key=flooder, timeout=30) as client:
            for number in range(MOST_BATCHES):
                if number >= LEAST_BATCHES and time.monotonic() > until:
                    break
                batch = [OutgoingMessage(bytes(1000))] * 500
                sent += len(batch)
                try:
                    client.enqueue_many("flood", batch)
                except EnqueueManyError as error:
                    refused += len(error.failed)

    with Client(server.addr, api_key=flooder) as client:
        client.create_queue("flood", overflow=overflow)
    before = size_of(server.data_dir)
    with attack(f"a team's flood, {overflow}", f"{SENDERS} senders for {SECONDS:.0f} s") as run:
        until = time.monotonic() + SECONDS
        threads = [threading.Thread(target=flood, args=(until,)) for _ in range(SENDERS)]
        for thread in threads:
            thread.start()
        run.canary.await_calls(60)
        for thread in threads:
            thread.join()
    with suppress(FileNotFoundError):  # RocksDB removes a file now and then
        assert size_of(server.data_dir) - before < MOST_DISK
    assert refused > 0
    assert (sent - refused) * 1000 < 2 * QUEUE_BYTES + OVER_BYTES
    assert run.canary.health.failed == 0, run.canary.health.errors
    assert run.growth.most < MOST_MEMORY
    assert run.canary.health.p50_ms - run.alone.p50_ms < MOST_DELAY_MS
