"""How messages are shown."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from fila.cli import output, render


def message(**changes):
    fields = {
        "id": "0190-1",
        "queue": "orders",
        "headers": {},
        "payload": b"hello",
        "fairness_key": "acme",
        "weight": 2,
        "priority": 5,
        "attempt_count": 0,
        "enqueued_at": datetime(2026, 1, 2, tzinfo=UTC),
        "leased_at": datetime(2026, 1, 2, tzinfo=UTC),
    }
    return SimpleNamespace(**(fields | changes))


def test_a_message_is_a_line_about_it_and_its_payload():
    assert render.human(message()).splitlines() == ["0190-1  key acme  attempt 1  5 B", "  hello"]


def test_headers_have_a_line_of_their_own():
    lines = render.human(message(headers={"tenant": "acme", "b": "x=y"})).splitlines()
    assert lines[1] == "  b=x=y tenant=acme"


def test_every_line_of_a_payload_is_indented():
    """So that no payload can pass for the line about another message."""
    forged = b"a\n0190-2  key victim  attempt 1  5 B\nb"
    assert render.payload_lines(forged)[1] == "0190-2  key victim  attempt 1  5 B"
    assert all(line.startswith("  ") for line in render.human(message(payload=forged)).splitlines()[1:])


@given(st.binary(), st.dictionaries(st.text(), st.text()), st.text())
def test_no_message_acts_on_the_terminal(payload, headers, key):
    text = render.human(message(payload=payload, headers=headers, fairness_key=key))
    assert all(line.replace("\t", "").isprintable() for line in text.split("\n"))


def test_binary_is_summarised_in_hex():
    assert render.payload_lines(b"\xff\x00" * 100) == ["(binary) " + "ff 00 " * 12 + "..."]


def test_an_empty_payload_is_said_to_be_empty():
    assert render.payload_lines(b"") == ["(empty)"]


@given(st.text())
def test_json_carries_text_exactly(text):
    assert json.loads(output.to_json(render.as_json(message(payload=text.encode()))))["payload"] == text


def test_json_carries_bytes_as_base64():
    shown = render.as_json(message(payload=b"\xff\x00"))
    assert shown["payload_base64"] == "/wA="
    assert "payload" not in shown
