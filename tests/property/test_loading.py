"""Messages that are read while the broker works are as those that a start has read before."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.config import JournalConfig
from fila.core.errors import BrokerError
from tests.helpers.broker import Driver, Recipient, incoming, messages_of, snapshot_of
from tests.support.packing import chunks_of, reads_of

QUEUES = ("a", "b")
HEADERS = {
    "fairness_header": "tenant",
    "weight_header": "weight",
    "throttle_headers": ("limit",),
    "cost_header": "cost",
}

messages = st.tuples(
    st.sampled_from(QUEUES),
    st.sampled_from("xyz"),
    st.sampled_from((1, 1, 3)),
    st.sampled_from((5, 5, 5, 1)),
    st.sampled_from((0, 0, 0, 0, 1000, 60_000)),
    st.sampled_from(("", "", "t")),
    st.sampled_from((1, 1, 2)),
)
histories = st.lists(
    st.one_of(
        st.lists(messages, min_size=1, max_size=12).map(lambda batch: ("send", batch)),
        st.tuples(st.just("take"), st.integers(1, 8), st.sampled_from(("ack", "nack", "later", "keep", "lose"))),
        st.tuples(st.just("wait"), st.sampled_from((1, 2000, 40_000))),
    ),
    min_size=1,
    max_size=12,
)


@pytest.fixture(autouse=True, scope="module", params=[1, 3])
def few(request: pytest.FixtureRequest) -> Any:
    with chunks_of(2), reads_of(request.param):
        yield


def driver() -> Driver:
    one = Driver(journal=JournalConfig(enabled=False), background=True)
    for name in QUEUES:
        one.create(name, **HEADERS)
    return one


def send(one: Driver, batch: list[tuple[str, str, int, int, int, str, int]]) -> list[int]:
    sent = [
        incoming(
            queue,
            b"body",
            headers={"tenant": key, "weight": str(weight), "cost": str(cost)} | ({"limit": limit} if limit else {}),
            priority=priority,
            delay_ms=delay,
        )
        for queue, key, weight, priority, delay, limit, cost in batch
    ]
    outcomes = one.enqueue(*sent)
    assert not any(isinstance(outcome, BrokerError) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, int)]


def take(one: Driver, queue: str, count: int, then: str) -> None:
    """Have a consumer take some messages, and do something with them."""
    consumer = one.join(queue, count)
    one.settle_down()
    held = consumer.take()
    for message in held:
        if then == "ack":
            assert not one.ack(queue, message.id, token=message.token)
        elif then in ("nack", "later"):
            assert not one.nack(queue, message.id, token=message.token, delay_ms=5000 if then == "later" else 0)
    if then != "lose":  # else it holds them still when the broker dies
        one.leave(consumer)
        one.settle_down()


def live(one: Driver, history: list[tuple[Any, ...]]) -> None:
    for what, *rest in history:
        if what == "send":
            send(one, *rest)
        elif what == "wait":
            one.advance(*rest)
        else:
            for queue in QUEUES:
                take(one, queue, *rest)


def looks(one: Driver) -> dict[str, Any]:
    """All that is known of the queues, but for turns: keys are met in another order, and begin with other weights."""
    told = {}
    for name, queue in one.state.queues.items():
        seen = snapshot_of(queue, one.now)
        for part in ("drr", "suspects"):
            seen[part] = sorted((name, *rest) for name, _deficit, *rest in seen[part])
        seen["lanes"] = {key.name: [lane.waiting() for lane in key.lanes.values()] for key in queue.keys.values()}
        told[name] = seen
    return told


@settings(max_examples=150)
@given(histories)
def test_what_is_read_later_is_what_a_start_would_have_read(history):
    one = driver()
    live(one, history)
    one.restart()
    one.read_all()
    later = looks(one)
    one.background = False
    one.restart()
    assert later == looks(one)


@settings(max_examples=150)
@given(histories, histories)
def test_nothing_is_lost_or_changed_by_what_happens_meanwhile(history, meanwhile):
    """What a broker does while it reads is durable: a start that reads everything finds the same messages in the same
    places, with the same attempts.
    """
    one = driver()
    live(one, history)
    one.restart()
    live(one, meanwhile)
    one.read_all()
    found = {name: (messages_of(queue), queue.attempts) for name, queue in one.state.queues.items()}
    for queue in one.state.queues.values():
        assert queue.capacity.messages == queue.size
    one.background = False
    one.restart()
    assert found == {name: (messages_of(queue), queue.attempts) for name, queue in one.state.queues.items()}


@settings(max_examples=150)
@given(st.lists(messages, min_size=1, max_size=30), st.lists(messages, max_size=10), st.integers(1, 5), st.data())
def test_a_lane_stays_in_its_order_while_it_is_read(before, meanwhile, most, data):
    """Nobody overtakes an older message of the same lane, also not what arrives before that is read; and each is
    delivered once.
    """
    one = driver()
    ready = [(*message[:4], 0, *message[5:]) for message in before]
    lanes: dict[int, tuple[Any, ...]] = {}
    for message in ready:
        (seq,) = send(one, [message])
        lanes[seq] = (message[0], message[1], message[3], message[5])
    one.restart()
    got: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    new = [(*message[:4], 0, *message[5:]) for message in meanwhile]
    consumers = [one.join(queue, most) for queue in QUEUES]
    for _ in range(1000):
        if new and data.draw(st.booleans()):
            (seq,) = send(one, [new[0]])
            lanes[seq] = (new[0][0], new[0][1], new[0][3], new[0][5])
            del new[0]
        one.tick()
        for consumer in consumers:
            finish(one, consumer, lanes, got)
        if not (new or one.engine.has_work(one.now) or any(queue.size for queue in one.state.queues.values())):
            break
    assert sorted(seq for seqs in got.values() for seq in seqs) == sorted(lanes)
    assert all(seqs == sorted(seqs) for seqs in got.values())


def finish(
    one: Driver, consumer: Recipient, lanes: dict[int, tuple[Any, ...]], got: dict[tuple[Any, ...], list[int]]
) -> None:
    for message in consumer.take():
        got[lanes[message.seq]].append(message.seq)
        assert not one.ack(consumer.queue, message.id, token=message.token)


def test_the_weight_of_a_key_is_that_of_its_newest_message():
    """Older ones that are read later do not change it."""
    one = driver()
    send(one, [("a", "x", 1, 5, 0, "", 1), ("a", "y", 2, 5, 0, "", 1)] * 5)
    one.restart()
    send(one, [("a", "x", 3, 5, 0, "", 1), ("a", "z", 3, 5, 60_000, "", 1)])
    assert one.state.loading
    one.read_all()
    assert {key.name: key.weight for key in one.queue("a").keys.values()} == {"x": 3, "y": 2, "z": 3}


@pytest.mark.parametrize("delayed, read_later", [(2, True), (3, False)])
def test_a_queue_of_many_delayed_messages_is_read_whole(monkeypatch, delayed, read_later):
    """Looking each of them up would take longer."""
    monkeypatch.setattr("fila.broker.recovery.MANY_APART", 2)
    one = driver()
    send(one, [("a", "x", 1, 5, 0, "", 1)] * 10 + [("a", "x", 1, 5, 60_000, "", 1)] * delayed)
    one.restart()
    assert ("a" in one.state.loading) == read_later
    one.read_all()
    assert (one.queue("a").ready, len(one.queue("a").schedule)) == (10, delayed)


def test_a_limited_queue_is_read_whole():
    """What it takes depends on what it holds."""
    one = driver()
    one.create("limited", max_depth=100)
    for _ in range(10):
        one.send("limited")
    one.restart()
    assert one.queue("limited").size == 10
    assert not one.state.loading


def test_a_dead_letter_queue_is_read_whole():
    """Messages come to it with old numbers, also while it would be read."""
    one = driver()
    one.create("hard", max_attempts=1)
    for _ in range(10):
        one.send("hard")
    take(one, "hard", 10, "nack")
    one.restart()
    assert one.queue("hard.dlq").size == 10
    assert not one.state.loading
