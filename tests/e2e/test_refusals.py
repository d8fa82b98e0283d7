"""Bad input gets a clear error and changes nothing."""

import dataclasses

import pytest

from fila import (
    Client,
    EnqueueManyError,
    InvalidArgumentError,
    LimitExceededError,
    MessageNotFoundError,
    OutgoingMessage,
    QueueAlreadyExistsError,
    QueueNotFoundError,
)
from fila.testing import ServerProcess
from tests.e2e.support import Inbox, contents, payloads, take

UNKNOWN_ID = "01900000-0000-7000-8000-000000000000"


def lasting(stats):
    """What does not change by itself as time goes by."""
    return dataclasses.replace(stats, deliveries_per_second=0.0)


@pytest.fixture
def unchanged(client, queue):
    """A queue with one message waiting and one leased, which is exactly so after the test."""
    client.create_queue(queue)
    client.enqueue(queue, None, b"held")
    with Inbox(client, queue, max_in_flight=1, auto_extend=True) as inbox:
        [held] = inbox.wait(1)
        client.enqueue(queue, None, b"waiting")
        queues = {each.name for each in client.list_queues()}
        before = lasting(client.queue_stats(queue))
        yield held
        assert lasting(client.queue_stats(queue)) == before
        assert {each.name for each in client.list_queues()} == queues
        held.ack()
        inbox.wait(2)[1].ack()
    assert contents(client, queue) == (0, 0, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda client, name: client.enqueue(name),
        lambda client, name: client.ack(name, UNKNOWN_ID),
        lambda client, name: client.nack(name, UNKNOWN_ID),
        lambda client, name: client.extend(name, UNKNOWN_ID),
        lambda client, name: next(client.consume(name)),
        lambda client, name: client.queue_stats(name),
        lambda client, name: client.delete_queue(name),
    ],
    ids=["enqueue", "ack", "nack", "extend", "consume", "stats", "delete"],
)
def test_an_unknown_queue_is_named(client, unchanged, call):
    """Every call says which queue does not exist."""
    with pytest.raises(QueueNotFoundError, match='queue "nowhere" does not exist'):
        call(client, "nowhere")


@pytest.mark.parametrize(
    "name, reason",
    [
        ("", "must not be empty"),
        ("x" * 256, "must not exceed 255 bytes"),
        ("ü" * 128, "must not exceed 255 bytes"),
        ("a\x00b", "control characters"),
        ("line\nbreak", "control characters"),
        ("\x7f", "control characters"),
        (" padded ", "whitespace"),
    ],
)
def test_a_name_that_no_queue_may_have(client, unchanged, name, reason):
    """Empty, too long, or with characters that nobody can see."""
    with pytest.raises(InvalidArgumentError, match=reason):
        client.create_queue(name)


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, "a/b:c", "orders.eu-1", "Bücher €"])
def test_a_name_that_a_queue_may_have(client, name):
    """The limit itself is allowed, and so is everything that can be seen."""
    client.create_queue(name)
    client.enqueue(name, None, b"job")
    assert payloads(take(client, name, 1)) == [b"job"]
    assert client.delete_queue(name) == 0


def test_a_name_that_is_taken(client, queue, unchanged):
    """The queue that has the name keeps its settings and its messages."""
    with pytest.raises(QueueAlreadyExistsError, match="already exists"):
        client.create_queue(queue, visibility_timeout_ms=1)


@pytest.mark.parametrize(
    "setting, value",
    [
        ("visibility_timeout_ms", 0),
        ("visibility_timeout_ms", -1),
        ("quantum", 0),
        ("quantum", -1),
        ("dedup_window_ms", -1),
        ("fairness_header", "x" * 300),
        ("weight_header", "x" * 300),
    ],
)
def test_a_setting_that_no_queue_may_have(client, unchanged, setting, value):
    """The error names the setting, and there is no such queue afterwards."""
    with pytest.raises(InvalidArgumentError, match=setting):
        client.create_queue("never", **{setting: value})


MIB = 1 << 20


@pytest.mark.parametrize(
    "message, error, reason",
    [
        (OutgoingMessage(b"x" * (4 * MIB)), LimitExceededError, f"{4 * MIB - 262144} are allowed"),
        (OutgoingMessage(b"x" * (17 * MIB)), LimitExceededError, "bytes"),
        (OutgoingMessage(b"", {f"{n}": "" for n in range(65)}), LimitExceededError, "65 headers, 64 are allowed"),
        (OutgoingMessage(b"", {"big": "x" * 20_000}), LimitExceededError, "headers must not exceed 16384 bytes"),
        (OutgoingMessage(b"", delay_ms=-1), InvalidArgumentError, "delay_ms must be from 0"),
        (OutgoingMessage(b"", delay_ms=1 << 62), InvalidArgumentError, "delay_ms must be from 0"),
        (OutgoingMessage(b"", priority=-1), InvalidArgumentError, "priority must be from 0 to 255"),
        (OutgoingMessage(b"", priority=256), InvalidArgumentError, "priority must be from 0 to 255"),
        (OutgoingMessage(b"", dedup_key="x" * 256), LimitExceededError, "dedup_key must not exceed 255 bytes"),
        (OutgoingMessage("text"), InvalidArgumentError, "payload must be bytes"),
        (OutgoingMessage(b"", {"number": 1}), InvalidArgumentError, "headers must map strings to strings"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, OutgoingMessage) else None,
)
def test_a_message_that_is_not_taken(client, queue, unchanged, message, error, reason):
    """Too large or out of range: alone it is an error, in a batch it fails alone."""
    arguments = {"delay_ms": message.delay_ms, "priority": message.priority, "dedup_key": message.dedup_key}
    with pytest.raises(error, match=reason):
        client.enqueue(queue, message.headers, message.payload, **arguments)


def test_the_largest_message_is_taken(client, queue):
    """Limits are what is allowed, not what is refused."""
    client.create_queue(queue)
    headers = {f"{number:02}": "x" * 200 for number in range(64)}
    payload = b"x" * (4 * MIB - 262144)
    client.enqueue(queue, headers, payload, priority=255, dedup_key="x" * 255)
    [message] = take(client, queue, 1)
    assert message.payload == payload
    assert message.headers == headers


def test_in_a_batch_only_the_bad_message_is_refused(client, queue):
    """The others are enqueued, and the error says which was not."""
    client.create_queue(queue)
    batch = [b"first", OutgoingMessage(b"bad", delay_ms=-1), b"third"]
    with pytest.raises(EnqueueManyError, match="1 of 3 messages") as raised:
        client.enqueue_many(queue, batch)
    assert list(raised.value.failed) == [1]
    assert isinstance(raised.value.failed[1], InvalidArgumentError)
    assert payloads(take(client, queue, 2)) == [b"first", b"third"]
    assert contents(client, queue) == (0, 0, 0)


def test_a_batch_that_is_too_large_is_refused_as_a_whole(tmp_path):
    """Nothing of it is enqueued, and smaller ones still are."""
    with (
        ServerProcess(tmp_path, env={"FILA_LIMITS__MAX_BATCH_MESSAGES": "10"}) as server,
        Client(server.addr) as client,
    ):
        client.create_queue("orders")
        with pytest.raises(EnqueueManyError) as raised:
            client.enqueue_many("orders", [b"%d" % number for number in range(11)])
        assert all(isinstance(error, LimitExceededError) for error in raised.value.results)
        assert "the batch has 11 messages, 10 are allowed" in str(raised.value)
        assert contents(client, "orders") == (0, 0, 0)
        assert len(client.enqueue_many("orders", [b"%d" % number for number in range(10)])) == 10


@pytest.mark.parametrize("lease_id", ["0123456789abcdef", "ffffffffffffffff", "not a lease", "-1", "0x10", "ü" * 1000])
def test_an_unknown_lease(client, queue, unchanged, lease_id):
    """The message stays with its holder."""
    for settle in (client.ack, client.nack, client.extend):
        with pytest.raises(MessageNotFoundError):
            settle(queue, unchanged.id, lease_id=lease_id)


@pytest.mark.parametrize("message_id", [UNKNOWN_ID, "", "not an id", "x" * 10_000, "ü"])
def test_an_unknown_message(client, queue, unchanged, message_id):
    """Whatever is given for an id, the answer is the same."""
    for settle in (client.ack, client.nack, client.extend):
        with pytest.raises((MessageNotFoundError, InvalidArgumentError)):
            settle(queue, message_id)


def test_a_time_that_is_out_of_range(client, queue, unchanged):
    """Of a nack or an extension: the lease stays as it is."""
    with pytest.raises(InvalidArgumentError, match="delay_ms must be from 0"):
        unchanged.nack("", delay_ms=-1)
    with pytest.raises(InvalidArgumentError, match="extend_ms must be from 0"):
        unchanged.extend(-1)


def test_more_in_flight_than_allowed(client, queue, unchanged):
    """A consumer that asks for too much is told the limit."""
    with pytest.raises(InvalidArgumentError, match="max_in_flight must not exceed 65535"):
        next(client.consume(queue, max_in_flight=65_536))


def test_a_weight_or_key_that_cannot_be_used(client, queue):
    """A fairness key that is too long is refused; what is no weight counts as weight 1 or is refused, never a crash."""
    client.create_queue(queue, fairness_header="tenant", weight_header="weight")
    with pytest.raises(InvalidArgumentError, match='the fairness key from header "tenant" exceeds 255 bytes'):
        client.enqueue(queue, {"tenant": "x" * 256})
    taken = 0
    for weight in ("0", "-1", "a lot", "", "1e3", "9" * 100, "1001"):
        try:
            client.enqueue(queue, {"tenant": "acme", "weight": weight})
            taken += 1
        except (InvalidArgumentError, LimitExceededError):
            continue
    assert contents(client, queue) == (taken, 0, 0)
    client.enqueue(queue, {"tenant": "acme", "weight": "2"}, b"good")
    assert take(client, queue, taken + 1)[-1].weight == 2
