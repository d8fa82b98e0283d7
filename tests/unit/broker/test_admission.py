"""What is refused, in which words; and that it changes nothing."""

import pytest

from fila.broker.commands import AckGroup, ExtendGroup, Nack, Settle
from fila.config import LimitsConfig
from fila.core.errors import InvalidArgument, LimitExceeded, PayloadTooLarge, QueueNotFound
from tests.helpers.broker import Driver, incoming

LIMITS = LimitsConfig(
    max_payload_bytes=10,
    max_headers=2,
    max_header_bytes=20,
    max_name_bytes=8,
    max_key_bytes=7,
    max_batch_messages=3,
    max_delay_ms=1000,
    max_queues=2,
)


@pytest.fixture
def driver():
    driver = Driver(limits=LIMITS)
    driver.create("q", fairness_header="tenant", weight_header="weight")
    return driver


@pytest.mark.parametrize(
    "name, text",
    [
        ("", "a queue name must not be empty"),
        ("ninebytes", "a queue name must not exceed 8 bytes"),
        ("ééééé", "a queue name must not exceed 8 bytes"),
        ("a\nb", "a queue name must not contain control characters"),
        ("a\x00", "a queue name must not contain control characters"),
        ("a\x7f", "a queue name must not contain control characters"),
        ("a\u200bb", "a queue name must not contain control characters"),
        (" a", "a queue name must not start or end with whitespace"),
        ("a ", "a queue name must not start or end with whitespace"),
        ("a.dlq", "names that end in .dlq are reserved for dead-letter queues"),
    ],
)
def test_a_queue_cannot_have_such_a_name(driver, name, text):
    stored = driver.store.dump()
    with pytest.raises(InvalidArgument) as refused:
        driver.create(name)
    assert str(refused.value) == text
    assert driver.store.dump() == stored
    assert list(driver.state.queues) == ["q", "q.dlq"]


@pytest.mark.parametrize("name", ["a", "8 bytes!", "éééé", "日本", "a/b:c", "-"])
def test_a_queue_can_have_such_a_name(driver, name):
    driver.create(name)
    seq = driver.send(name)
    driver.restart()
    assert driver.places() == {seq: "ready"}


def test_there_are_only_so_many_queues(driver):
    driver.create("r")
    with pytest.raises(LimitExceeded) as refused:
        driver.create("s")
    assert str(refused.value) == "there are 2 queues already, which is the limit"
    driver.delete("r")
    driver.create("s")


REFUSED = [
    pytest.param(incoming("r"), QueueNotFound, 'queue "r" does not exist', id="unknown queue"),
    pytest.param(incoming(""), QueueNotFound, 'queue "" does not exist', id="no queue"),
    pytest.param(incoming("q", b"x" * 11), PayloadTooLarge, "the payload has 11 bytes, 10 are allowed", id="payload"),
    pytest.param(
        incoming("q", b"x" * 31, payload_bytes=10),
        LimitExceeded,
        "the headers must not exceed 20 bytes",
        id="header bytes",
    ),
    pytest.param(
        incoming("q", headers={"a": "", "b": "", "c": ""}),
        LimitExceeded,
        "there are 3 headers, 2 are allowed",
        id="headers",
    ),
    pytest.param(
        incoming("q", delay_ms=-1), InvalidArgument, "delay_ms must be from 0 to 1000, not -1", id="negative delay"
    ),
    pytest.param(
        incoming("q", delay_ms=1001), InvalidArgument, "delay_ms must be from 0 to 1000, not 1001", id="long delay"
    ),
    pytest.param(
        incoming("q", priority=-1), InvalidArgument, "priority must be from 0 to 255, not -1", id="low priority"
    ),
    pytest.param(
        incoming("q", priority=256), InvalidArgument, "priority must be from 0 to 255, not 256", id="high priority"
    ),
    pytest.param(
        incoming("q", dedup_key="8 bytes!"), LimitExceeded, "dedup_key must not exceed 7 bytes", id="dedup key"
    ),
    pytest.param(
        incoming("q", dedup_key="éééé"), LimitExceeded, "dedup_key must not exceed 7 bytes", id="wide dedup key"
    ),
    pytest.param(
        incoming("q", headers={"tenant": "8 bytes!"}),
        InvalidArgument,
        'the fairness key from header "tenant" exceeds 7 bytes',
        id="fairness key",
    ),
    *[
        pytest.param(
            incoming("q", headers={"weight": weight}),
            InvalidArgument,
            'header "weight" is the weight and must be a number from 1 to 1000',
            id=f"weight {weight!r}",
        )
        for weight in ("0", "1001", "-1", "1.5", "", "two", "1e3", " 1", "0x1", "\u0661", "1" * 500)
    ],
]


@pytest.mark.parametrize("message, error, text", REFUSED)
def test_a_message_is_refused_by_itself(driver, message, error, text):
    first, refused, last = driver.enqueue(incoming("q"), message, incoming("q"))
    assert type(refused) is error
    assert str(refused) == text
    assert driver.places() == {first: "ready", last: "ready"}


@pytest.mark.parametrize("message, error, text", REFUSED)
def test_a_batch_of_nothing_but_refused_messages_writes_nothing(driver, message, error, text):
    before, stored = driver.snapshot(), driver.store.dump()
    driver.enqueue(message)
    assert driver.snapshot() == before
    assert driver.store.dump() == stored


@pytest.mark.parametrize(
    "message",
    [
        incoming("q", b"x" * 10),
        incoming("q", b"x" * 30, payload_bytes=10),
        incoming("q", headers={"tenant": "7 bytes", "weight": "1000"}),
        incoming("q", delay_ms=1000, priority=255, dedup_key="7 bytes"),
        incoming("q", priority=0, headers={"tenant": ""}),
    ],
    ids=["payload", "header bytes", "keys", "numbers", "nothing"],
)
def test_what_is_at_its_limit_is_taken(driver, message):
    (outcome,) = driver.enqueue(message)
    assert isinstance(outcome, int)


def test_a_message_without_a_fairness_header_needs_no_room_for_the_default_key():
    driver = Driver(limits=LimitsConfig(max_key_bytes=1))
    driver.create("q", fairness_header="tenant")
    driver.send("q")


@pytest.mark.parametrize(
    "messages, producer, sequence, error, text",
    [
        (4, "", 0, LimitExceeded, "the batch has 4 messages, 3 are allowed"),
        (1, "p", 0, InvalidArgument, "a batch with a producer_id needs a sequence of at least 1"),
        (1, "p" * 65, 1, LimitExceeded, "producer_id must not exceed 64 bytes"),
    ],
)
def test_a_batch_is_refused_as_a_whole(driver, messages, producer, sequence, error, text):
    before, stored = driver.snapshot(), driver.store.dump()
    with pytest.raises(error) as refused:
        driver.enqueue(*[incoming("q")] * messages, producer=producer, sequence=sequence)
    assert str(refused.value) == text
    assert driver.snapshot() == before
    assert driver.store.dump() == stored


@pytest.mark.parametrize(
    "settle",
    [
        lambda ids: {"acks": [AckGroup("q", ids[:2]), AckGroup("q", ids[2:])]},
        lambda ids: {"nacks": [Nack("q", one) for one in ids]},
        lambda ids: {"extends": [ExtendGroup("q", ids)]},
        lambda ids: {
            "acks": [AckGroup("q", ids[:1])],
            "nacks": [Nack("q", ids[1])],
            "extends": [ExtendGroup("q", ids[2:])],
        },
    ],
    ids=["acks", "nacks", "extensions", "all together"],
)
def test_settlements_have_the_same_limit_as_a_batch(driver, settle):
    seqs = [driver.send("q") for _ in range(4)]
    driver.join("q")
    driver.settle_down()
    before = driver.snapshot()
    with pytest.raises(LimitExceeded, match="the batch settles 4 messages, 3 are allowed"):
        driver.ask(lambda reply: Settle(reply, **settle([driver.id(seq) for seq in seqs])))
    assert driver.snapshot() == before


@pytest.mark.parametrize("ms", [-1, 1001])
def test_a_delay_of_a_nack_or_an_extension_has_the_same_limits(driver, ms):
    seq = driver.send("q")
    driver.join("q")
    driver.settle_down()
    before = driver.snapshot()
    (nacked,) = driver.nack("q", driver.id(seq), delay_ms=ms)
    (extended,) = driver.extend("q", driver.id(seq), extend_ms=ms)
    assert str(nacked.error) == f"delay_ms must be from 0 to 1000, not {ms}"
    assert str(extended.error) == f"extend_ms must be from 0 to 1000, not {ms}"
    assert driver.snapshot() == before


def test_an_error_says_only_the_beginning_of_a_name_however_long(driver):
    (outcome,) = driver.enqueue(incoming("x" * 1_000_000))
    assert isinstance(outcome, QueueNotFound)
    assert len(str(outcome)) < 200
    (failure,) = driver.ack("q", "y" * 1_000_000)
    assert len(str(failure.error)) < 300
    (failure,) = driver.ack("z" * 1_000_000, "id")
    assert len(str(failure.error)) < 300
