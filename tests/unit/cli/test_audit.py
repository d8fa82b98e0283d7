"""What `fila audit` prints."""

import json

from fila.cli.audit import as_json, text
from fila.client import AuditChange, AuditEntry


def entry(*changes, **values):
    plain = {
        "seq": 7, "at_ns": 1_700_000_000_000_000_000, "action": "UpdateQueue", "principal": "ops", "key_id": "ops-x",
        "peer": "10.0.0.1:9", "resource_kind": "queue", "resource": "q", "outcome": "ok", "stage": "", "count": 0,
        "times": 1, "began_seq": 0,
    }  # fmt: skip
    return AuditEntry(**plain | values, changes=tuple(AuditChange(*change) for change in changes))


def test_an_entry_is_what_who_and_a_line_for_each_value():
    shown = text(entry(("quantum", "4", "8"), ("paused", None, "true"), ("script", "x", None), ("roles", "a", "")))
    assert shown.splitlines() == [
        "       7 2023-11-14 22:13:20 UpdateQueue queue:q",
        "          by ops (key ops-x) from 10.0.0.1:9",
        "          quantum: 4 -> 8",
        "          paused: true",
        "          script: was x",
        '          roles: a -> ""',
    ]


def test_long_values_stand_on_two_lines():
    assert text(entry(("script", "a" * 60, "b" * 60))).splitlines()[2:] == [
        f"          script: {'a' * 60}",
        f"            -> {'b' * 60}",
    ]


def test_a_digest_is_shortened_in_text_and_whole_in_json():
    digest = f"sha256:{'0123456789abcdef' * 4}, 37 bytes"
    changed = entry(("script", "", digest))
    assert text(changed).splitlines()[2] == '          script: "" -> sha256:0123456789abcdef..., 37 bytes'
    assert as_json(changed)["changes"]["script"]["after"] == digest


def test_a_refusal_and_a_sweep_say_how_they_ended():
    refused = text(entry(outcome="PERMISSION_DENIED", times=1_234, principal="", key_id=""))
    assert refused.splitlines()[0].endswith("queue:q PERMISSION_DENIED 1,234 times")
    assert "by a caller without a key from 10.0.0.1:9" in refused
    assert text(entry(action="Purge", stage="end")).splitlines()[0].endswith("Purge end queue:q 0 messages")


def test_a_certificate_or_a_token_stands_in_the_place_of_a_key():
    assert "by ops (token:idp/42) from" in text(entry(key_id="token:idp/42"))
    assert "by ops from" in text(entry(key_id=""))


def test_what_a_caller_named_cannot_move_the_cursor():
    shown = text(entry(("a\r", "\x1b[2J", "\x07"), resource="q\x1b[1m", peer="\r", principal="\x1b", action="X"))
    assert not set("\r\x1b\x07") & set(shown)


def test_json_leaves_out_what_does_not_apply_and_can_be_read():
    told = json.loads(json.dumps(as_json(entry(("quantum", "4", None), principal="", key_id=""))))
    assert told == {
        "seq": 7,
        "at_ns": 1_700_000_000_000_000_000,
        "at": "2023-11-14T22:13:20.000+00:00",
        "action": "UpdateQueue",
        "peer": "10.0.0.1:9",
        "resource_kind": "queue",
        "resource": "q",
        "outcome": "ok",
        "times": 1,
        "changes": {"quantum": {"before": "4", "after": None}},
    }
