"""`fila dlq`."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fila.cli.letters import age
from fila.client import DeadLetter, FailedAttempt, PeekedMessage

DIED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ATTEMPTS = (FailedAttempt(1, DIED, "expired", ""), FailedAttempt(2, DIED, "nacked", "upstream\x1b[31m\nsecond line"))
LETTER = PeekedMessage(
    id="id-1",
    queue="orders.dlq",
    headers={"tenant": "acme"},
    payload=b"hello",
    payload_size=5,
    fairness_key="acme",
    weight=3,
    priority=5,
    cost=1,
    throttle_keys=("api:x",),
    attempt_count=2,
    enqueued_at=DIED,
    state="ready",
    until=None,
    attempts=ATTEMPTS,
    dead_letter=DeadLetter("orders", DIED, "max_attempts", ATTEMPTS),
)


class TestPeek:
    def test_is_an_aligned_table(self, fila, client):
        client.letters = [LETTER, replace(LETTER, id="id-22", attempts=(), state="leased")]
        result = fila("dlq", "peek", "orders.dlq")
        lines = result.stdout.splitlines()
        assert lines[0].split() == ["ID", "AGE", "STATE", "KEY", "ATTEMPTS", "LAST", "ERROR", "SIZE", "PAYLOAD"]
        assert "id-1 " in lines[1]
        assert r"upstream\x1b[31m\nsecond line" in lines[1]
        assert lines[2].split()[-3:] == ["5", "B", "hello"]
        assert result.stderr == ""

    def test_hands_the_filters_over(self, fila, client):
        options = ["-H", "region=eu", "-H", "kind", "--key", "acme", "--error", "boom", "--older-than", "90s"]
        more = ["--newer-than", "2h", "--id", "a", "--id", "b", "--state", "leased", "--newest", "-n", "5"]
        fila("dlq", "peek", "orders.dlq", *options, *more, "--cursor", "00ff")
        (_, queue, given) = client.calls[0]
        assert queue == "orders.dlq"
        assert given == {
            "limit": 5,
            "newest": True,
            "payload_bytes": 400,
            "cursor": "00ff",
            "headers": {"region": "eu", "kind": None},
            "fairness_key": "acme",
            "error": "boom",
            "min_age_ms": 90_000,
            "max_age_ms": 7_200_000,
            "message_ids": ("a", "b"),
            "states": ("leased",),
        }

    def test_says_how_to_go_on(self, fila, client):
        client.letters, client.cursor = [LETTER], "00ff"
        assert fila("dlq", "peek", "orders.dlq").stderr == "More messages follow. Continue with --cursor 00ff\n"

    def test_of_nothing_is_no_table(self, fila):
        result = fila("dlq", "peek", "orders.dlq")
        assert (result.stdout, result.stderr) == ("", "No messages match.\n")

    def test_in_json_is_a_line_for_each_with_all_of_it(self, fila, client):
        client.letters = [LETTER, replace(LETTER, payload=b"\xff", dead_letter=None, until=DIED)]
        first, second = map(json.loads, fila("dlq", "peek", "orders.dlq", "--json").stdout.splitlines())
        assert client.calls[0][2]["payload_bytes"] > 4 << 20
        assert (first["payload"], first["dead_letter"]["reason"]) == ("hello", "max_attempts")
        assert [one["error"] for one in first["attempts"]] == ["", "upstream\x1b[31m\nsecond line"]
        assert (second["payload_base64"], second["dead_letter"]) == ("/w==", None)
        assert second["until"] == DIED.isoformat()

    @pytest.mark.parametrize(
        "payload, shown",
        [
            (b"x" * 400, "x" * 37 + "..."),
            ("ü".encode() * 200, "ü" * 37 + "..."),
            (b"a" + "ü".encode() * 300, "a" + "ü" * 36 + "..."),
            (b"\xff" * 400, "(binary) "),
        ],
    )
    def test_shows_how_a_long_payload_begins(self, fila, client, payload, shown):
        client.letters = [replace(LETTER, payload=payload[:400], payload_size=len(payload))]
        assert shown in fila("dlq", "peek", "orders.dlq").stdout

    @pytest.mark.parametrize("wrong", ["", "5", "m", "1x", "-1s", "1.5.5h", "٣s", "9999999999s"])
    def test_a_time_needs_a_unit(self, fila, client, wrong):
        result = fila("dlq", "peek", "orders.dlq", "--older-than", wrong)
        assert (result.exit_code, client.calls) == (2, [])
        assert "is not a time such as" in result.stderr


class TestShow:
    def test_shows_all_there_is(self, fila, client):
        client.letters = [LETTER]
        shown = fila("dlq", "show", "orders.dlq", "id-1").stdout
        assert client.calls[0][2]["message_ids"] == ["id-1"]
        for part in (
            "Message id-1",
            "acme (weight 3)",
            "api:x",
            "max_attempts",
            "expired",
            "nacked",
            "hello",
            "tenant",
        ):
            assert part in shown
        assert "\n       upstream\\x1b[31m\n       second line\n" in shown

    def test_of_none_is_an_error(self, fila):
        result = fila("dlq", "show", "orders.dlq", "id-9")
        assert result.exit_code == 1
        assert result.stderr == 'Error: message "id-9" in queue "orders.dlq" does not exist\n'


class TestRedrive:
    @pytest.mark.parametrize("command", [("dlq", "redrive"), ("redrive",)])
    def test_says_how_many_and_where(self, fila, client, command):
        result = fila(*command, "orders.dlq", "--count", "50", "--rate", "2.5", "--key", "acme")
        assert result.stdout == 'Moved 42 messages from "orders.dlq" to "orders"\n'
        assert client.calls == [
            ("redrive", "orders.dlq", {"count": 50, "rate": 2.5, "fairness_key": "acme", "dry_run": False})
        ]

    def test_only_says_what_it_would_do(self, fila, client):
        assert fila("dlq", "redrive", "orders.dlq", "--dry-run").stdout.startswith("Would move 42 messages from")
        assert client.calls == [("redrive", "orders.dlq", {"dry_run": True})]

    def test_answers_in_json(self, fila):
        shown = json.loads(fila("dlq", "redrive", "orders.dlq", "--json", "--yes").stdout)
        assert shown == {"queue": "orders.dlq", "source": "orders", "redriven": 42, "dry_run": False}


class TestPurge:
    def test_in_a_pipe_needs_a_yes(self, fila, client):
        result = fila("dlq", "purge", "orders.dlq")
        assert result.exit_code == 2
        assert "Add --yes" in result.stderr
        assert client.calls == [("purge", "orders.dlq", {"dry_run": True, "any_queue": False})]

    def test_with_yes_does_not_ask(self, fila, client):
        assert fila("dlq", "purge", "orders.dlq", "--yes").stdout == 'Removed 42 messages from "orders.dlq"\n'
        assert client.calls == [("purge", "orders.dlq", {"dry_run": False, "any_queue": False})]

    def test_of_any_queue_is_said_aloud(self, fila, client):
        fila("dlq", "purge", "orders", "--force-any", "--dry-run", "--older-than", "30d")
        assert client.calls == [("purge", "orders", {"dry_run": True, "any_queue": True, "min_age_ms": 2_592_000_000})]

    def test_answers_in_json(self, fila):
        shown = json.loads(fila("dlq", "purge", "orders.dlq", "--json", "--dry-run").stdout)
        assert shown == {"queue": "orders.dlq", "purged": 42, "dry_run": True}


@pytest.mark.parametrize("seconds, words", [(5, "5 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (9e5, "10 d")])
def test_ages_are_told_in_the_largest_unit(seconds, words):
    assert age(datetime.now(UTC) - timedelta(seconds=seconds + 0.5)) == words
