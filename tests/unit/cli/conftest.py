"""A broker that lives in the test, in place of the SDK's client."""

import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from fila.cli.main import cli
from fila.cli.session import Session
from fila.client import (
    ConsumerStats,
    GroupStats,
    KeyStats,
    PeekPage,
    QueueConfig,
    QueueCounters,
    QueueInfo,
    QueueStats,
    SchedulerStats,
    ThrottleStats,
    WaitStats,
)


@dataclass
class FakeClient:
    """Answers like `fila.Client`, and remembers what it was asked."""

    calls: list = field(default_factory=list)
    queues: list = field(default_factory=list)
    batches: list = field(default_factory=list)
    acked: list = field(default_factory=list)
    config: dict = field(default_factory=dict)
    letters: list = field(default_factory=list)
    cursor: str = ""
    error: Exception | None = None
    closed: bool = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True

    def create_queue(self, name, **settings):
        self._call("create_queue", name, settings)

    def ensure_queue(self, name, **settings):
        self._call("ensure_queue", name, settings)
        return False

    def update_queue(self, name, **settings):
        self._call("update_queue", name, settings)
        return queue_config(**settings)

    def delete_queue(self, name, *, force):
        self._call("delete_queue", name, force)
        return 3

    def pause_queue(self, name):
        self._call("pause_queue", name)

    def resume_queue(self, name):
        self._call("resume_queue", name)

    def peek(self, queue, **options):
        self._call("peek", queue, options)
        return PeekPage(tuple(self.letters), self.cursor)

    def redrive(self, queue, **options):
        self._call("redrive", queue, options)
        return 42

    def purge(self, queue, **options):
        self._call("purge", queue, options)
        return 42

    def set_config(self, key, value):
        self._call("set_config", key, value)
        self.config[key] = value

    def get_config(self, key):
        self._call("get_config", key)
        return self.config.get(key)

    def list_config(self, prefix=""):
        self._call("list_config", prefix)
        return {key: value for key, value in sorted(self.config.items()) if key.startswith(prefix)}

    def delete_config(self, key):
        self._call("delete_config", key)
        return self.config.pop(key, None) is not None

    def list_queues(self):
        self._call("list_queues")
        return self.queues

    def queue_stats(self, name, max_keys=20, **order):
        self._call("queue_stats", name, max_keys, order)
        return stats(name)

    def enqueue(self, queue, headers, payload, **options):
        self._call("enqueue", queue, headers, payload, options)
        return "id-1"

    def enqueue_many(self, queue, messages):
        self._call("enqueue_many", queue, [(each.payload, each.headers) for each in messages])
        return [f"id-{number}" for number, _ in enumerate(messages, 1)]

    @property
    def auth(self):
        return SimpleNamespace(who_am_i=lambda: self._call("who_am_i"))

    def consume_batches(self, queue, *, max_in_flight):
        self._call("consume_batches", queue, max_in_flight)
        return iter(self.batches)

    def ack_many(self, messages):
        self.acked += [each.id for each in messages]

    def _call(self, *call):
        self.calls.append(call)
        if self.error:
            raise self.error


def summary(name="orders", **changes):
    fields = {"depth": 12000, "in_flight": 2, "delayed": 0, "active_keys": 1, "consumers": 1, "paused": False}
    return QueueInfo(**({"name": name, "dead_letter_queue": f"{name}.dlq"} | fields | changes))


def queue_config(**changes):
    defaults = QueueConfig(
        visibility_timeout_ms=30_000,
        fairness_header="tenant",
        weight_header="",
        quantum=10,
        dedup_window_ms=300_000,
        throttle_headers=(),
        cost_header="",
        max_attempts=0,
        retry_delay_ms=0,
        retry_backoff=1.0,
        retry_max_delay_ms=0,
        retry_jitter=0.0,
        script="",
        script_timeout_ms=10,
        script_memory_bytes=1 << 20,
    )
    return replace(defaults, **changes)


def stats(name):
    return QueueStats(
        summary=summary(name),
        config=queue_config(),
        created_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        scheduler=SchedulerStats(quantum=10, round=7, active_keys=40),
        runnable=11_990,
        oldest_at=datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC),
        deliveries_per_second=12.5,
        consumers=(ConsumerStats(number=4, in_flight=2, max_in_flight=100, credit=98),),
        groups=(GroupStats("nightly", 3, 7, 8, 1, 500, datetime(2026, 1, 2, 3, 4, 7, tzinfo=UTC)),),
        throttles=(
            ThrottleStats("provider:aws", "rate=5", tokens=0.25, in_flight=1, passed=7, held_up=3, parked_keys=1),
        ),
        keys=(
            KeyStats(
                fairness_key="acme",
                weight=3,
                pending=12000,
                delivered=5,
                deficit=-2,
                share=0.5,
                entitlement=0.75,
                oldest_at=None,
                parked=True,
                waits=None,
            ),
        ),
        total_keys=40,
        waits=WaitStats(
            sampled=3,
            mean_seconds=1.5,
            p50_seconds=1.0,
            p99_seconds=2.0,
            parts={"delay": 0.0, "retry": 0.0, "no_consumer": 0.25, "throttle": 1.25, "fair_share": 0.0},
            throttles={"provider:aws": 1.25},
        ),
        counters=QueueCounters(
            enqueued=12007,
            delivered=7,
            acked=5,
            nacked=0,
            expired=0,
            returned=0,
            dead_lettered=0,
            redriven=0,
            purged=0,
        ),
    )


def received(message_id, payload=b"hello"):
    return SimpleNamespace(
        id=message_id,
        queue="orders",
        headers={},
        payload=payload,
        fairness_key="default",
        weight=1,
        priority=5,
        attempt_count=0,
        enqueued_at=datetime(2026, 1, 2, tzinfo=UTC),
        leased_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


@pytest.fixture(autouse=True)
def _nobodys_machine(tmp_path, monkeypatch):
    """What the developer has set and kept for the command does not count here."""
    for name in list(os.environ):
        if name.startswith("FILA_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def client():
    return FakeClient()


@pytest.fixture
def fila(client):
    """Runs a command line against the fake broker."""
    connections = []

    def connect(addr, timeout):
        connections.append((addr, timeout))
        return client

    def run(*args, **options):
        return CliRunner().invoke(cli, args, obj=Session(make_client=connect), prog_name="fila", **options)

    run.connections = connections
    return run
