"""`fila consume`."""

import json
import threading

import pytest

from fila.cli.consume import take, until_silent
from fila.client.errors import AckManyError, MessageNotFoundError
from tests.unit.cli.conftest import received


def test_what_is_printed_is_acked(fila, client):
    client.batches = [[received("1"), received("2")], [received("3")]]
    result = fila("consume", "orders")
    assert result.stdout.count("hello") == 3
    assert client.acked == ["1", "2", "3"]
    assert client.closed


def test_no_ack_acks_nothing(fila, client):
    client.batches = [[received("1")]]
    fila("consume", "orders", "--no-ack")
    assert client.acked == []


def test_a_count_ends_it_and_the_rest_is_neither_printed_nor_acked(fila, client):
    client.batches = [[received("1"), received("2")]] * 5
    result = fila("consume", "orders", "--count", "3", "--json")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["1", "2", "1"]
    assert client.acked == ["1", "2", "1"]


@pytest.mark.parametrize(
    "args,credit",
    [((), 100), (("-n", "5"), 1), (("-n", "5", "--no-ack"), 5), (("-n", "5", "--max-in-flight", "3"), 3)],
)
def test_no_more_is_taken_than_will_be_used(fila, client, args, credit):
    fila("consume", "orders", *args)
    assert ("consume_batches", "orders", credit) in client.calls


def test_messages_that_could_not_be_written_are_not_acked(fila, client, monkeypatch):
    client.batches = [[received("1")]]
    monkeypatch.setattr("fila.cli.consume._write", lambda *_: (_ for _ in ()).throw(BrokenPipeError()))
    monkeypatch.setattr("fila.cli.main._abandon_stdout", lambda: None)
    assert fila("consume", "orders").exit_code == 0
    assert client.acked == []


def test_an_ack_that_came_too_late_is_a_warning(fila, client, monkeypatch):
    client.batches = [[received("1")], [received("2")]]
    error = AckManyError({"1": MessageNotFoundError("its lease has ended")})
    monkeypatch.setattr(client, "ack_many", lambda _: (_ for _ in ()).throw(error))
    result = fila("consume", "orders")
    assert result.exit_code == 0
    assert result.stdout.count("hello") == 2
    assert (
        result.stderr.splitlines()[0] == "Warning: 1 message not acked and may be delivered again: its lease has ended"
    )


def test_silence_ends_the_wait():
    never = threading.Event()

    def items():
        yield from (1, 2)
        never.wait(30)

    assert list(until_silent(items(), 0.5)) == [1, 2]


def test_a_failure_while_waiting_is_raised():
    def items():
        yield 1
        raise ValueError("broken")

    found = []
    with pytest.raises(ValueError, match="broken"):
        found.extend(until_silent(items(), 5))


def test_taking_keeps_batches_and_cuts_the_last():
    assert list(take([[1, 2], [3, 4], [5]], 3)) == [[1, 2], [3]]
    assert list(take([[1, 2], [3]], None)) == [[1, 2], [3]]
    assert list(take([[1, 2], [3]], 2)) == [[1, 2]]
