"""`fila enqueue`."""

import json

import pytest


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
    assert result.stdout.splitlines() == ["id-1", "id-2", "id-3", "id-4"]
    headers = {"a": "b"}
    expected = [(b"one", headers), (b"two", headers), (b"", headers), (b"last", headers)]
    assert client.calls == [("enqueue_many", "orders", expected)]


def test_long_input_is_sent_in_chunks(fila, client):
    result = fila("enqueue", "orders", "--lines", "--quiet", input=b"x\n" * 2500)
    assert [len(call[2]) for call in client.calls] == [1000, 1000, 500]
    assert result.stdout == 'Enqueued 2,500 messages to "orders"\n'


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
