"""`fila queue`."""

import json

from tests.unit.cli.conftest import summary


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
    assert lines[0].split() == ["NAME", "DEPTH", "IN", "FLIGHT", "DELAYED", "KEYS", "CONSUMERS"]
    assert lines[1].split() == ["a", "12,000", "2", "0", "1", "1"]
    assert len({len(line) for line in lines}) == 1


def test_list_in_json_is_an_array(fila, client):
    client.queues = [summary("a")]
    [queue] = json.loads(fila("queue", "list", "--json").stdout)
    assert queue["name"] == "a"
    assert queue["depth"] == 12000


def test_an_empty_list_is_no_table(fila):
    result = fila("queue", "list")
    assert result.stdout == ""
    assert "No queues yet" in result.stderr


def test_inspect_shows_figures_settings_counters_and_keys(fila):
    shown = fila("queue", "inspect", "orders").stdout
    for part in ('Queue "orders"', "12,000", "30 s", "tenant", "5 min", "enqueued", "12,007", "acme", "-2", "round 7"):
        assert part in shown


def test_inspect_says_when_there_are_more_keys(fila, client):
    result = fila("queue", "inspect", "orders", "--keys", "1")
    assert client.calls == [("queue_stats", "orders", 1)]
    assert result.stderr == "1 of 40 keys; --keys N shows more\n"


def test_inspect_in_json_has_everything(fila):
    shown = json.loads(fila("queue", "inspect", "orders", "--json").stdout)
    assert shown["config"]["visibility_timeout_ms"] == 30_000
    assert shown["counters"]["enqueued"] == 12007
    assert shown["keys"][0] == {"fairness_key": "acme", "weight": 3, "pending": 12000, "delivered": 5, "deficit": -2}


def test_delete_in_a_pipe_does_not_ask(fila):
    result = fila("queue", "delete", "orders")
    assert result.exit_code == 0
    assert result.stdout == 'Deleted queue "orders" (3 messages)\n'
