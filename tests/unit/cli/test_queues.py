"""`fila queue`."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

from fila import HookStats
from tests.unit.cli.conftest import stats, summary


def test_create_hands_over_what_was_given_and_says_so(fila, client):
    result = fila("queue", "create", "orders", "--visibility-timeout", "1000", "--fairness-header", "tenant")
    assert result.stdout == 'Created queue "orders"\n'
    _, name, settings = client.calls[0]
    assert name == "orders"
    assert {key: value for key, value in settings.items() if value is not None} == {
        "visibility_timeout_ms": 1000,
        "fairness_header": "tenant",
    }


def test_create_answers_in_json(fila):
    result = fila("queue", "create", "orders", "--json")
    assert json.loads(result.stdout) == {"queue": "orders", "created": True}


def test_list_is_an_aligned_table(fila, client):
    client.queues = [summary("a"), summary("orders.eu", depth=0)]
    lines = fila("queue", "list").stdout.splitlines()
    assert lines[0].split() == ["NAME", "DEPTH", "IN", "FLIGHT", "DELAYED", "KEYS", "CONSUMERS", "STATE"]
    assert lines[1].split() == ["a", "12,000", "2", "0", "1", "1", "running"]
    assert len({len(line) for line in lines}) == 1


def test_list_in_json_is_an_array(fila, client):
    client.queues = [summary("a")]
    [queue] = json.loads(fila("queue", "list", "--json").stdout)
    assert queue["name"] == "a"
    assert queue["depth"] == 12000


def test_an_empty_list_is_no_table(fila):
    result = fila("queue", "list")
    assert result.stdout == ""
    assert "There are no queues" in result.stderr


def test_inspect_shows_figures_settings_counters_and_keys(fila):
    shown = fila("queue", "inspect", "orders").stdout
    parts = ["12,000", "11,990", "12.5", "1 (1 with credit)", "30 s", "tenant", "5 min", "enqueued", "12,007"]
    parts += [
        "provider:aws",
        "rate=5",
        "0.2",
        "acme",
        "-2",
        "50.0%",
        "75.0%",
        "parked",
        "round 7",
        "1.5 s",
        "250 ms",
        "3 deliveries sampled",
    ]
    for part in ('Queue "orders"', *parts):
        assert part in shown


def test_inspect_says_when_there_are_more_keys(fila, client):
    result = fila("queue", "inspect", "orders", "--keys", "1")
    assert client.calls == [("queue_stats", "orders", 1, {"sort": "pending", "offset": 0, "key_prefix": ""})]
    assert result.stderr == "Showing 1 of 40 keys. Use --keys N and --offset N for others.\n"


def test_inspect_in_json_has_everything(fila):
    shown = json.loads(fila("queue", "inspect", "orders", "--json").stdout)
    assert shown["config"]["visibility_timeout_ms"] == 30_000
    assert shown["counters"]["enqueued"] == 12007
    assert shown["keys"][0]["fairness_key"] == "acme"
    assert shown["keys"][0]["entitlement"] == 0.75
    assert shown["throttles"][0]["parked_keys"] == 1
    assert shown["groups"] == [
        {"group": "nightly", "epoch": 3, "floor": 7, "last": 8, "open_claims": 1, "held": 500}
        | {"expires_at": "2026-01-02T03:04:07+00:00"}
    ]
    assert shown["consumer_list"] == [{"number": 4, "in_flight": 2, "max_in_flight": 100, "credit": 98}]


def test_delete_in_a_pipe_needs_a_yes(fila, client):
    """Nobody can be asked there, and what is gone is gone."""
    result = fila("queue", "delete", "orders")
    assert result.exit_code == 2
    assert "Add --yes" in result.stderr
    assert "delete_queue" not in [name for name, *_ in client.calls]


def test_delete_with_yes_does_not_ask(fila):
    result = fila("queue", "delete", "orders", "--yes")
    assert result.exit_code == 0
    assert result.stdout == 'Deleted queue "orders" (3 messages)\n'


def test_stats_of_a_queue_are_those_of_inspect(fila):
    shown = [fila(*command).stdout for command in (("stats", "orders"), ("queue", "inspect", "orders"))]
    first, second = (re.sub(r"[\d,.]+ s\b", "an age", text) for text in shown)
    assert first == second
    assert fila("stats", "orders", "--json").stdout == fila("queue", "inspect", "orders", "--json").stdout


def test_a_queue_that_is_there_may_stay(fila, client):
    assert fila("queue", "create", "orders", "--if-not-exists").stdout == 'Queue exists already: "orders"\n'
    shown = json.loads(fila("queue", "create", "orders", "--if-not-exists", "--quantum", "3", "--json").stdout)
    assert shown == {"queue": "orders", "created": False}
    assert client.calls[-1] == ("ensure_queue", "orders", {"quantum": 3})


def test_each_hook_may_come_from_a_file_of_its_own(fila, client, tmp_path):
    place, retry = tmp_path / "place.lua", tmp_path / "retry.lua"
    place.write_text("-- place")
    retry.write_text("-- retry")
    fila("queue", "create", "orders", "--on-enqueue", str(place), "--on-failure", str(retry))
    assert client.calls == [("create_queue", "orders", {"on_enqueue": "-- place", "on_failure": "-- retry"})]
    both = fila("queue", "create", "orders", "--script", str(place), "--on-failure", str(retry))
    assert both.exit_code == 2
    assert "Give --script, or --on-enqueue and --on-failure, not both." in both.stderr


def test_an_option_that_does_not_exist_is_answered_with_the_one_that_was_meant(fila):
    result = fila("queue", "create", "orders", "--fairnes-header", "tenant")
    assert result.exit_code == 2
    assert "--fairness-header" in result.stderr


def test_delete_by_force_is_asked_for_by_name(fila, client):
    fila("queue", "delete", "orders", "--force", "--yes")
    assert client.calls == [("delete_queue", "orders", True)]


def test_update_hands_over_only_what_was_given(fila, client, tmp_path):
    script = tmp_path / "policy.lua"
    script.write_text("function on_enqueue() end")
    result = fila("queue", "update", "orders", "--max-attempts", "5", "--retry-backoff", "2", "--script", str(script))
    assert client.calls == [
        ("update_queue", "orders", {"max_attempts": 5, "retry_backoff": 2.0, "script": "function on_enqueue() end"})
    ]
    assert result.stdout.startswith('Updated queue "orders"\n')
    assert "1 line of Lua, 10 ms and 1,024 KiB a call" in result.stdout


def test_update_takes_a_script_and_headers_away(fila, client):
    fila("queue", "update", "orders", "--no-script", "--throttle-header", "")
    assert client.calls == [("update_queue", "orders", {"throttle_headers": [], "script": ""})]


def test_update_of_nothing_is_wrong_usage(fila, client):
    result = fila("queue", "update", "orders")
    assert result.exit_code == 2
    assert "Give at least one setting to change." in result.stderr
    assert client.calls == []


def test_update_in_json_is_the_settings(fila):
    shown = json.loads(fila("queue", "update", "orders", "--retry-delay", "100", "--json").stdout)
    assert shown["retry_delay_ms"] == 100
    assert shown["throttle_headers"] == []


def test_pause_and_resume_say_so(fila, client):
    assert fila("queue", "pause", "orders").stdout == 'Paused queue "orders"\n'
    assert json.loads(fila("queue", "resume", "orders", "--json").stdout) == {"queue": "orders", "paused": False}
    assert client.calls == [("pause_queue", "orders"), ("resume_queue", "orders")]


def test_a_paused_queue_is_seen_in_the_list(fila, client):
    client.queues = [summary("a", paused=True)]
    assert fila("queue", "list").stdout.splitlines()[1].split()[-1] == "paused"
    assert json.loads(fila("queue", "list", "--json").stdout)[0]["paused"] is True


def test_inspect_tells_how_the_hooks_are_doing(fila, client, monkeypatch):
    failures = {"error": 3, "timeout": 0, "memory": 0, "bad_return": 1}
    until = datetime(2026, 1, 2, 3, 4, 8, tzinfo=UTC)
    hook = HookStats("on_enqueue", 40, failures, 1, 12, until, "script:2: boom", until, 0.04)
    told = replace(stats("orders"), hooks=(hook,), waiting_for_hooks=7, script_error="", forgotten_delivered=0)
    monkeypatch.setattr(client, "queue_stats", lambda *_, **__: told)
    shown = fila("queue", "inspect", "orders").stdout
    for part in ("Hooks", "on_enqueue", "bypassed until", "1 bad_return, 3 error", "script:2: boom", "7 messages wait"):
        assert part in shown
    (as_json,) = json.loads(fila("queue", "inspect", "orders", "--json").stdout)["hooks"]
    assert as_json == {
        "hook": "on_enqueue",
        "calls": 40,
        "failures": failures,
        "breaker_opened": 1,
        "bypassed": 12,
        "bypassed_until": until.isoformat(),
        "last_error": "script:2: boom",
        "last_error_at": until.isoformat(),
        "seconds": 0.04,
    }


def test_inspect_tells_of_a_script_that_cannot_be_used_and_of_keys_that_are_forgotten(fila, client, monkeypatch):
    told = replace(stats("orders"), script_error="it is no Lua", forgotten_delivered=2)
    monkeypatch.setattr(client, "queue_stats", lambda *_, **__: told)
    shown = fila("queue", "inspect", "orders").stdout
    assert "The script cannot be loaded, so messages take the defaults: it is no Lua" in shown
    assert "2 deliveries (28.6%) belong to keys that the broker no longer remembers" in shown
