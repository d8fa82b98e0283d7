"""`fila top`."""

import json
from dataclasses import replace

import pytest

from fila import CapacityStats
from tests.unit.cli.conftest import stats, summary


@pytest.fixture
def busy(client, monkeypatch):
    """A broker on which 100 messages are delivered between two looks."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    clock = iter(range(100))
    monkeypatch.setattr("fila.cli.top.time.monotonic", lambda: float(next(clock)))
    looks = iter(range(100))

    def queue_stats(name, max_keys=20, **_):
        seen = stats(name)
        number = next(looks)
        keys = tuple(replace(key, delivered=key.delivered + 100 * number) for key in seen.keys)
        return replace(seen, keys=keys, counters=replace(seen.counters, delivered=7 + 100 * number))

    monkeypatch.setattr(client, "queue_stats", queue_stats)
    client.queues = [summary("orders"), summary("idle", depth=0, in_flight=0)]
    return client


def test_one_queue_shows_rates_shares_limits_waits_and_consumers(fila, busy):
    shown = fila("top", "orders", "--once").stdout
    for part in ("out 100/s", "depth 12,000", "acme", "100% of 75%", "throttled", "provider:aws", "rate=5"):
        assert part in shown
    assert "half up to 1.0 s, 99 % up to 2.0 s: throttle 83%, no consumer 17%" in shown
    assert "#4 2/100" in shown


@pytest.mark.parametrize("held, told", [(80, False), (95, True)])
def test_a_queue_says_how_full_it_is_and_warns_when_it_nearly_is(fila, client, monkeypatch, held, told):
    limited = replace(
        stats("orders"), script_error="", capacity=CapacityStats(messages=held, bytes=10, max_depth=100, max_bytes=1000)
    )
    monkeypatch.setattr(client, "queue_stats", lambda *_, **__: limited)
    shown = fila("top", "orders", "--once").stdout
    assert f"% full {held}" in shown
    assert (f"The queue is {held}% full." in shown) is told


def test_all_queues_are_shown_the_fullest_first(fila, busy):
    lines = fila("top", "--once").stdout.splitlines()
    assert lines[1].split()[:3] == ["QUEUE", "DEPTH", "RUNNABLE"]
    assert lines[2].startswith("orders")
    assert lines[3].startswith("idle")


def test_what_does_not_fit_is_counted(fila, busy):
    assert "1 more queue: " in fila("top", "--once", "--keys", "1").stdout


def test_a_look_in_json_has_rates(fila, busy):
    shown = json.loads(fila("top", "orders", "--once", "--json").stdout)
    (queue,) = shown["queues"]
    assert queue["name"] == "orders"
    assert queue["per_second"]["delivered"] == 100


def test_a_live_view_needs_a_terminal(fila, busy):
    result = fila("top")
    assert result.exit_code == 2
    assert "--once or --json" in result.stderr


def test_names_cannot_command_the_terminal(fila, busy):
    busy.queues = [summary("evil\x1b[2J")]
    assert "\x1b[2J" not in fila("top", "--once").stdout
