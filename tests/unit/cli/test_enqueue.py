"""`fila enqueue`."""

import io
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.cli.enqueue import arriving_lines
from fila.client.errors import EnqueueManyError, LimitExceededError


def test_one_message_from_the_command_line(fila, client):
    result = fila(
        "enqueue", "orders", "hello", "-H", "tenant=acme", "-H", "note=a=b", "--delay", "50", "--priority", "0"
    )
    assert result.stdout == "id-1\n"
    options = {"delay_ms": 50, "priority": 0, "dedup_key": None}
    assert client.calls == [("enqueue", "orders", {"tenant": "acme", "note": "a=b"}, b"hello", options)]


@pytest.mark.parametrize("args", [(), ("-",), ("--file", "-")])
def test_the_payload_may_come_from_stdin_byte_for_byte(fila, client, args):
    fila("enqueue", "orders", *args, input=b"\xff\x00\n")
    assert client.calls[0][3] == b"\xff\x00\n"


def test_the_payload_may_come_from_a_file(fila, client, tmp_path):
    (tmp_path / "payload").write_bytes(b"\x00binary")
    fila("enqueue", "orders", "--file", str(tmp_path / "payload"))
    assert client.calls[0][3] == b"\x00binary"


def test_every_line_is_a_message(fila, client):
    result = fila("enqueue", "orders", "--lines", "-H", "a=b", input=b"one\ntwo\r\n\nlast")
    assert len(result.stdout.splitlines()) == 4
    sent = [message for _, _, messages in client.calls for message in messages]
    assert sent == [(line, {"a": "b"}) for line in (b"one", b"two", b"", b"last")]


def test_long_input_is_sent_in_chunks(fila, client):
    result = fila("enqueue", "orders", "--lines", "--quiet", input=(b"x" * 99 + b"\n") * 2500)
    assert len(client.calls) > 2
    assert sum(len(call[2]) for call in client.calls) == 2500
    assert result.stdout == 'Enqueued 2,500 messages to "orders"\n'


def test_a_slow_writer_is_not_waited_for():
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as source, os.fdopen(theirs, "wb", buffering=0) as writer:
        lines = arriving_lines(source)
        writer.write(b"one\ntwo\nthr")
        assert next(lines) == [b"one", b"two"]
        writer.write(b"ee\n")
        assert next(lines) == [b"three"]


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line)), st.booleans())
def test_no_line_is_lost_or_torn(lines, ended):
    text = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    found = [line for chunk in arriving_lines(io.BytesIO(text)) for line in chunk]
    assert found == text.removesuffix(b"\n").split(b"\n") if text else found == []


def test_a_refused_line_is_named_and_what_was_accepted_is_printed(fila, client):
    client.error = EnqueueManyError(["id-1", LimitExceededError("payload exceeds 10 bytes"), "id-3"])
    result = fila("enqueue", "orders", "--lines", input=b"a\nb\nc\n")
    assert result.exit_code == 1
    assert result.stdout.split() == ["id-1", "id-3"]
    assert result.stderr == "Error: line 2: payload exceeds 10 bytes\n"


def test_ids_in_json_are_an_object_per_line(fila):
    lines = fila("enqueue", "orders", "--lines", "--json", input=b"a\nb\n").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [{"id": "id-1"}, {"id": "id-2"}]


@pytest.mark.parametrize(
    "args",
    [
        ("x", "-H", "novalue"),
        ("x", "-H", "=v"),
        ("x", "--delay", "-1"),
        ("x", "--priority", "256"),
        ("x", "--lines"),
        ("x", "--file", "-"),
        ("--lines", "--dedup-key", "k"),
        ("--file", "no/such/file"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_reaches_no_broker(fila, args):
    assert fila("enqueue", "orders", *args).exit_code == 2
    assert fila.connections == []
