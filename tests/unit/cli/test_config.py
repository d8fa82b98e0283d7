"""`fila config` and `fila throttle`."""

import json

import pytest


def test_an_entry_is_set_shown_listed_and_removed(fila):
    assert fila("config", "set", "tier", "gold").stdout == "tier = gold\n"
    assert fila("config", "get", "tier").stdout == "gold\n"
    assert fila("config", "list").stdout.split() == ["KEY", "VALUE", "tier", "gold"]
    assert fila("config", "unset", "tier", "--yes").stdout == "tier removed\n"
    assert fila("config", "unset", "tier", "--yes").stdout == "tier was not set\n"


def test_an_entry_that_is_not_set_is_an_error(fila):
    result = fila("config", "get", "tier")
    assert result.exit_code == 1
    assert result.stderr == 'Error: config key "tier" is not set\n'


def test_json_everywhere(fila):
    assert json.loads(fila("config", "set", "a", "1", "--json").stdout) == {"key": "a", "value": "1"}
    assert json.loads(fila("config", "get", "a", "--json").stdout) == {"key": "a", "value": "1"}
    assert json.loads(fila("config", "list", "--json").stdout) == [{"key": "a", "value": "1"}]
    assert json.loads(fila("config", "unset", "a", "--yes", "--json").stdout) == {"key": "a", "existed": True}


def test_a_list_counts_on_stderr(fila):
    fila("config", "set", "a.x", "1")
    fila("config", "set", "b", "1")
    assert fila("config", "list").stderr == "2 entries\n"
    assert fila("config", "list", "a.").stderr == "1 entry\n"


@pytest.mark.parametrize(
    "options, value",
    [
        (["--rate", "50"], "rate=50"),
        (["--rate", "0.5", "--burst", "20"], "rate=0.5,burst=20"),
        (["--max-in-flight", "5", "--rate", "10"], "rate=10,max_in_flight=5"),
    ],
)
def test_a_limit_is_a_config_entry(fila, client, options, value):
    assert fila("throttle", "set", "provider:aws", *options).stdout == f"provider:aws: {value}\n"
    assert client.config == {"throttle.provider:aws": value}


def test_a_limit_of_nothing_is_wrong_usage(fila, client):
    assert fila("throttle", "set", "k").exit_code == 2
    assert client.config == {}


def test_limits_are_listed_and_taken_away(fila, client):
    client.config = {"throttle.a": "rate=1,burst=2", "throttle.b": "max_in_flight=3", "other": "x"}
    client.config["throttle.c"] = "0.5,100.0"
    lines = [line.split() for line in fila("throttle", "list").stdout.splitlines()]
    assert lines == [["KEY", "RATE", "BURST", "MAX", "IN", "FLIGHT"], ["a", "1", "2"], ["b", "3"], ["c", "0.5", "100"]]
    assert json.loads(fila("throttle", "list", "b", "--json").stdout) == [{"key": "b", "max_in_flight": 3}]
    assert json.loads(fila("throttle", "list", "c", "--json").stdout) == [{"key": "c", "rate": 0.5, "burst": 100}]
    assert fila("throttle", "unset", "a", "--yes").stdout == "a is no longer limited\n"
    assert fila("throttle", "unset", "a", "--yes").stdout == "a was not limited\n"


def test_a_part_that_only_a_later_broker_knows_is_listed(fila, client):
    client.config = {"throttle.a": "rate=5,per=minute", "throttle.b": "rate=nan"}
    lines = [line.split() for line in fila("throttle", "list").stdout.splitlines()]
    assert lines == [["KEY", "RATE", "BURST", "MAX", "IN", "FLIGHT", "OTHERS"], ["a", "5", "per=minute"], ["b", "nan"]]
    assert json.loads(fila("throttle", "list", "a", "--json").stdout) == [
        {"key": "a", "rate": 5, "others": "per=minute"}
    ]


def test_no_limits_are_no_table(fila):
    result = fila("throttle", "list")
    assert result.stdout == ""
    assert "No limits" in result.stderr
