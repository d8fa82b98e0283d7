"""All that tells who got how much says the same as somebody who counts what consumers are handed.

The model below knows what was sent and what was handed out, and nothing of how the broker counts. What `inspect`,
`top`, the metrics and `explain` say is compared with it, through the wire format and the SDK where users see it.
"""

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.broker import explain as explaining
from fila.broker.commands import SetConfig, UpdateQueue
from fila.broker.explain import explain, next_of, search
from fila.cli.top import Samples
from fila.client.stats import StatsCalls
from fila.core import drained
from fila.server.stats_codec import write_stats
from fila.telemetry import catalog
from fila.telemetry.watch import Bounds, Watch
from tests.helpers.broker import MS, SECOND, Driver, incoming, stats_of

WEIGHTS = {"a": 1, "b": 2, "c": 5}
LOOK_S = 10


class Users(StatsCalls):
    """What a user of the SDK is told, without a network."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def _admin(self):
        return SimpleNamespace(call=self._call, stub=SimpleNamespace(GetStats=None))

    async def _call(self, _method, request):
        told = stats_of(self._driver.queue(request.queue), request.max_keys, self._driver.now, sort=request.sort)
        return await write_stats(told)

    def stats(self, queue="q", keys=100, sort="pending"):
        return asyncio.run(self.queue_stats(queue, keys, sort=sort))


class Model:
    """Counts what was sent and what was handed out."""

    def __init__(self) -> None:
        self.key_of: dict[int, str] = {}
        self.got: Counter[str] = Counter()

    @property
    def waiting(self) -> Counter[str]:
        return Counter(self.key_of.values()) - self.got

    def share(self, key: str) -> float:
        return self.got[key] / self.got.total() if self.got.total() else 0.0

    def entitlement(self, key: str) -> float:
        waiting = self.waiting
        return WEIGHTS[key] / sum(WEIGHTS[each] for each in waiting) if waiting[key] else 0.0


events = st.lists(
    st.tuples(st.sampled_from(["send", "send", "take", "take", "look"]), st.sampled_from("abc"), st.integers(1, 7)),
    min_size=3,
    max_size=40,
)


@given(events, st.integers(1, 4))
@settings(max_examples=80, deadline=None)
def test_everybody_who_counts_says_the_same(run, quantum):
    driver = Driver()
    driver.create("q", fairness_header="k", weight_header="w", quantum=quantum)
    users, model = Users(driver), Model()
    watch = Watch(driver.state, driver.engine.load, lambda: driver.now, Bounds(10, 10, 10))
    client = SimpleNamespace(queue_stats=users.stats)
    samples = Samples(client, "q", 100, "pending")
    before: Counter[str] = Counter()
    for event, key, count in run:
        if event == "send":
            batch = [incoming("q", headers={"k": key, "w": str(WEIGHTS[key])})] * count
            model.key_of.update(dict.fromkeys(driver.enqueue(*batch), key))
        elif event == "take":
            consumer = driver.join("q", count)
            driver.settle_down()
            driver.ask(lambda reply: UpdateQueue("q", {"paused": True}, reply))  # no more for the room that acks make
            for one in consumer.take():
                model.got[model.key_of[one.seq]] += 1
                driver.ack("q", one.id)
            driver.leave(consumer)
            driver.settle_down()
            driver.ask(lambda reply: UpdateQueue("q", {"paused": False}, reply))
            driver.settle_down()
        else:
            before = compare_top(samples, model, before)
        compare(driver, users, watch, model)


def compare(driver, users, watch, model):
    told = users.stats()
    assert told.counters.delivered == sum(key.delivered for key in told.keys)
    assert told.forgotten_delivered == 0
    known = {key.fairness_key: key for key in told.keys}
    assert set(known) == set(model.got) | set(model.waiting)
    for name, key in known.items():
        assert key.delivered == model.got[name]
        assert key.pending == model.waiting[name]
        assert key.share == pytest.approx(model.share(name))
        assert key.entitlement == pytest.approx(model.entitlement(name))
    samples = watch.look()
    throughput = {labels[1]: value for labels, value in samples[catalog.THROUGHPUT] if labels[0] == "q"}
    pending = {labels[1]: value for labels, value in samples[catalog.PENDING] if labels[0] == "q"}
    assert {name: count for name, count in throughput.items() if count} == dict(+model.got)
    assert {name: count for name, count in pending.items() if count} == dict(model.waiting)


def compare_top(samples, model, before):
    now = samples.take()
    now.at = (samples.before.at if samples.before else 0.0) + LOOK_S
    shares = samples.key_shares(now, "q")
    fresh = model.got - before
    if samples.before is not None:
        seen = {key.fairness_key for key in samples.before.stats["q"].keys}
        for name in seen & set(fresh):
            assert shares[name] == pytest.approx(fresh[name] / fresh.total())
    return Counter(model.got)


def test_what_is_no_longer_remembered_is_told_together(monkeypatch):
    """Memory is bounded; what is left out is said, and shares stay those of all deliveries."""
    monkeypatch.setattr(drained, "KEPT", 10)
    driver = Driver()
    driver.create("q", fairness_header="k")
    consumer = driver.join("q", 1000)
    driver.enqueue(*[incoming("q", headers={"k": f"key-{number}"}) for number in range(100)])
    driver.settle_down()
    for one in consumer.take():
        driver.ack("q", one.id)
    told = Users(driver).stats()
    assert 10 <= len(told.keys) <= 20
    assert told.forgotten_delivered == 100 - len(told.keys)
    assert all(key.share == pytest.approx(0.01) for key in told.keys)


@given(st.integers(2, 6), st.integers(5, 30), st.sampled_from([1, 40, 1000]), st.integers(1, 8), st.data())
@settings(max_examples=60, deadline=None)
def test_an_estimate_goes_by_cost(keys, each, cost, quantum, data):
    """How many come first, where it is estimated: within a turn of every key of what then happens."""
    driver = Driver()
    driver.create("q", fairness_header="k", cost_header="c", quantum=quantum)
    batch = [
        incoming("q", headers={"k": f"key-{number}", "c": str(cost)}) for _ in range(each) for number in range(keys)
    ]
    seqs = driver.enqueue(*batch)
    seq = data.draw(st.sampled_from(seqs))
    look_ahead, explaining.LOOK_AHEAD = explaining.LOOK_AHEAD, 0
    try:
        (found,) = [one for one in search(driver.queue("q"), seq) if one is not None]
        about = explain(driver.queue("q"), found, driver.now)
    finally:
        explaining.LOOK_AHEAD = look_ahead
    assert not about.exact
    consumer = driver.join("q", keys * each)
    driver.settle_down()
    turn = max(1, quantum // cost) + 1
    assert abs(consumer.seqs.index(seq) - about.ahead) <= keys * turn


def test_the_next_message_of_a_queue_of_costly_ones_is_not_said_to_wait():
    """An urgent message goes first, whatever older ones of its key would cost at the throttle."""
    driver = Driver()
    driver.create("llm", fairness_header="k", cost_header="c", throttle_headers=("m",))
    driver.ask(lambda reply: SetConfig("throttle.m:x", "rate=1500,burst=3000", reply))
    headers = {"k": "acme", "c": "1000", "m": "x"}
    driver.enqueue(*[incoming("llm", headers=headers) for _ in range(1000)])
    (urgent,) = driver.enqueue(incoming("llm", headers=headers, priority=0))
    consumer = driver.join("llm", 100)
    about = explain(driver.queue("llm"), next_of(driver.queue("llm"), driver.now), driver.now)
    assert (about.seq, about.estimate) == (urgent, driver.now)
    driver.settle_down()
    assert consumer.seqs[0] == urgent


def test_the_rate_is_one_of_cost():
    """Cheap messages that went fast say nothing of how long costly ones take."""
    driver = Driver()
    driver.create("q", cost_header="c")
    consumer = driver.join("q", 1)
    seqs = driver.enqueue(*[incoming("q", headers={"c": "100"}) for _ in range(200)])
    driver.settle_down()
    for _ in range(50):  # one of cost 100 in each 100 ms: 1,000 a second
        driver.now += 100 * MS
        for one in consumer.take():
            driver.ack("q", one.id)
        driver.settle_down()
    (found,) = [one for one in search(driver.queue("q"), seqs[-1]) if one is not None]
    about = explain(driver.queue("q"), found, driver.now)
    assert about.ahead == 148
    assert (about.estimate - driver.now) / SECOND == pytest.approx(14.8, rel=0.1)
