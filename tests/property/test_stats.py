"""Statistics agree with a count of every single message, after whatever happened."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fila.broker import stats
from fila.broker.commands import SetConfig
from tests.helpers.broker import Driver, incoming, messages_of, stats_of

events = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "send", "delay", "limit", "join", "leave", "ack", "nack", "wait", "restart"]),
        st.sampled_from("abc"),
        st.integers(0, 900),
    ),
    min_size=5,
    max_size=40,
)


@given(events)
@example([(event, "a", 0) for event in ("send", "join", "leave", "join", "nack", "leave")])
def test_every_figure_is_a_count(run):
    """Depth, delayed, in flight, runnable, ages, keys, shares and consumers."""
    driver = Driver()
    driver.create("q", fairness_header="k", weight_header="w", throttle_headers=("t",), max_attempts=3)
    driver.ask(lambda reply: SetConfig("throttle.t:x", "rate=1,burst=2,max_in_flight=2", reply))
    consumers = []
    for event, key, pause in run:
        do(driver, event, key, consumers)
        driver.advance(pause)
        compare(driver, consumers)


def do(driver, event, key, consumers):
    headers = {"k": key, "w": str(ord(key) - ord("a") + 1)}
    if event == "send":
        driver.enqueue(*[incoming("q", headers=headers)] * 3)
    elif event == "delay":
        driver.send("q", headers=headers, delay_ms=500)
    elif event == "limit":
        driver.enqueue(*[incoming("q", headers=headers | {"t": "x"})] * 3)
    elif event == "join":
        consumers.append(driver.join("q", 2))
    elif event == "leave" and consumers:
        driver.leave(consumers.pop())
    elif event in {"ack", "nack"} and consumers and consumers[-1].got:
        held = consumers[-1].got.pop(0)
        (driver.ack if event == "ack" else driver.nack)("q", held.id, token=held.token)
    elif event == "restart":
        driver.restart()
        consumers.clear()


def compare(driver, consumers):
    queue = driver.queue("q")
    told, places = stats_of(queue, now=driver.now), messages_of(queue)
    where = Counter(place for place, *_ in places.values())
    assert (told.summary.depth, told.summary.delayed) == (where["ready"] + where["delayed"], where["delayed"])
    assert (told.summary.in_flight, told.summary.consumers) == (where["leased"], len(consumers))
    ready = {seq: key for seq, (place, key, *_) in places.items() if place == "ready"}
    assert told.oldest_at == min(ready, default=0)
    shut = {seq for key in queue.keys.values() for lane in key.lanes.values() if lane.gate for seq in lane.waiting()}
    assert told.runnable == len(ready) - len(shut)
    assert {key.fairness_key: key.pending for key in told.keys if key.pending} == Counter(ready.values())
    for key in told.keys:
        mine = [seq for seq, name in ready.items() if name == key.fairness_key]
        assert key.oldest_at == min(mine, default=0)
    assert sum(key.share for key in told.keys) == pytest.approx(1 if any(key.delivered for key in told.keys) else 0)
    assert sum(key.entitlement for key in told.keys) == pytest.approx(1 if ready else 0)
    held = {one.consumer.number: one.consumer.in_flight for one in consumers}
    assert {one.number: one.in_flight for one in told.consumers} == held


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 7), st.sampled_from([*stats.SORTS, "name"]))
def test_pages_are_parts_of_one_order(counts, size, sort):
    """Page after page gives every key once, in the order of one page that holds all."""
    driver = Driver()
    driver.create("q", fairness_header="k")
    for number, count in enumerate(counts):
        for _ in range(count):
            driver.send("q", headers={"k": f"key-{number:02}"})
    queue = driver.queue("q")
    whole = [key.fairness_key for key in stats_of(queue, 1000, sort=sort).keys]
    pages = [stats_of(queue, size, sort=sort, offset=start) for start in range(0, len(whole) + 1, size)]
    assert [key.fairness_key for page in pages for key in page.keys] == whole
    assert all(page.total_keys == len(whole) for page in pages)
    if sort == "name":
        assert whole == sorted(whole)
