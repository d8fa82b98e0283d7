"""Looking at a broker: what is told by name, what together, and in which steps."""

from dataclasses import fields
from pathlib import Path

import pytest

from fila.broker.commands import Parting, UpdateQueue
from fila.broker.queue import Counters
from fila.core.ledger import SAMPLE
from fila.core.throttle import Limit
from fila.metrics.metric import MetricType
from fila.telemetry import catalog
from fila.telemetry.keys import OTHER, WINDOW_NS, fair_shares
from fila.telemetry.watch import STEP, Bounds, Watch
from tests.helpers.broker import SECOND, Driver, incoming


def watch_of(driver, **limits):
    bounds = Bounds(**{"queues": 10, "keys": 10, "throttles": 10} | limits)
    return Watch(driver.state, driver.engine.load, lambda: driver.now, bounds)


def told(watch, metric):
    return dict(watch.look()[metric])


def send(driver, queue, **by_key):
    driver.enqueue(*(incoming(queue, headers={"key": key}) for key, count in by_key.items() for _ in range(count)))


def fair(driver, name="q", **settings):
    return driver.create(name, fairness_header="key", **settings)


def test_every_counter_of_the_broker_is_told():
    assert set(catalog.MESSAGES) == {field.name for field in fields(Counters)}


def test_every_metric_is_in_the_catalog_once():
    metrics = [value for value in vars(catalog).values() if isinstance(value, catalog.Metric)]
    assert set(metrics) | set(catalog.MESSAGES.values()) == set(catalog.CATALOG)
    assert len({metric.name for metric in catalog.CATALOG}) == len(catalog.CATALOG)


def test_ages_do_not_add_up():
    """Of queues that are told together the oldest counts."""
    ages = [metric for metric in catalog.CATALOG if metric.type is MetricType.GAUGE and metric.unit == "s"]
    assert [metric.name for metric in ages if metric.labels == ("queue_id",) and metric.adds_up] == []


def test_of_what_does_not_add_up_the_greatest_is_told():
    driver = Driver()
    for name, most in (("one", 4), ("two", 2)):
        fair(driver, name, max_depth=most)
        driver.send(name, headers={"key": "a"})
        driver.now += SECOND
    watch = watch_of(driver, queues=0)
    assert told(watch, catalog.OLDEST) == {(OTHER,): 2}
    assert told(watch, catalog.USED) == {(OTHER,): 0.5}
    assert told(watch, catalog.DEPTH) == {(OTHER,): 2}


def test_the_oldest_age_is_that_of_the_oldest_message_that_could_go_out():
    driver = Driver()
    fair(driver)
    watch = watch_of(driver)
    assert told(watch, catalog.OLDEST)[("q",)] == 0
    driver.send("q", headers={"key": "a"})
    driver.now += 3 * SECOND
    driver.send("q", headers={"key": "b"})
    driver.now += SECOND
    samples = watch.look()
    assert dict(samples[catalog.OLDEST])[("q",)] == pytest.approx(4)
    assert dict(samples[catalog.KEY_OLDEST]) == {
        ("q", "a"): pytest.approx(4),
        ("q", "b"): pytest.approx(1),
    }


def lose_in_company(driver, queue="q"):
    """A consumer is lost with all messages of its queue, which are suspects from then on."""
    consumer = driver.join(queue)
    driver.settle_down()
    assert len(consumer.got) > 1
    driver.leave(consumer, Parting.LOST)
    driver.settle_down()


@pytest.mark.parametrize("names", [{}, {"keys": 1}, {"queues": 0}])
def test_a_suspect_that_waits_is_pending_whoever_is_told_by_name(names):
    driver = Driver()
    fair(driver)
    send(driver, "q", a=3, b=1)
    lose_in_company(driver)
    send(driver, "q", a=1)
    samples = watch_of(driver, **names).look()
    assert sum(count for _, count in samples[catalog.PENDING]) == 5
    assert dict(samples[catalog.PENDING]).get(("q", "a"), 4) == 4
    assert sum(count for _, count in samples[catalog.SUSPECTS]) == 4
    assert sum(count for _, count in samples[catalog.ACTIVE_KEYS]) == 2


def test_a_queue_of_suspects_has_an_age():
    driver = Driver()
    fair(driver)
    driver.send("q", headers={"key": "a"})
    driver.now += 3 * SECOND
    driver.send("q", headers={"key": "b"})
    lose_in_company(driver)
    driver.now += 900 * SECOND
    driver.send("q", headers={"key": "b"})
    samples = watch_of(driver).look()
    assert dict(samples[catalog.OLDEST])[("q",)] == pytest.approx(903)
    assert dict(samples[catalog.KEY_OLDEST]) == {("q", "a"): pytest.approx(903), ("q", "b"): pytest.approx(900)}


def test_suspects_do_not_count_as_demand_of_their_key():
    """They wait for an empty consumer and not for their share, which the ratio is about."""
    driver = Driver()
    fair(driver)
    watch = watch_of(driver)
    send(driver, "q", a=4)
    lose_in_company(driver)
    assert told(watch, catalog.SHARE) == {("q", "a"): 1.0}


def test_credit_is_what_consumers_would_take():
    driver = Driver()
    fair(driver)
    driver.join("q", 7)
    send(driver, "q", a=3)
    driver.settle_down()
    assert told(watch_of(driver), catalog.CREDIT)[("q",)] == 4


def test_a_key_that_came_and_went_between_two_looks_is_told_by_name():
    driver = Driver()
    fair(driver)
    watch = watch_of(driver)
    for _ in range(2):
        consumer = driver.join("q")
        send(driver, "q", quick=3)
        driver.settle_down()
        driver.ack("q", *[one.id for one in consumer.take()])
        driver.leave(consumer)
        driver.settle_down()
    assert "quick" not in driver.queue("q").keys
    assert told(watch, catalog.THROUGHPUT)[("q", "quick")] == 6


def test_a_queue_made_later_is_counted_from_its_beginning():
    driver = Driver()
    watch = watch_of(driver)
    fair(driver)
    consumer = driver.join("q")
    send(driver, "q", quick=3)
    driver.settle_down()
    driver.ack("q", *[one.id for one in consumer.take()])
    assert told(watch, catalog.THROUGHPUT)[("q", "quick")] == 3


def test_only_the_busiest_keys_have_names():
    driver = Driver()
    fair(driver)
    watch = watch_of(driver, keys=2)
    send(driver, "q", a=5, b=1, c=9, d=2)
    assert told(watch, catalog.PENDING) == {("q", "a"): 5, ("q", "c"): 9, ("q", OTHER): 3}


def test_a_key_that_is_clearly_busier_takes_a_name_and_starts_where_it_is():
    driver = Driver()
    fair(driver)
    watch = watch_of(driver, keys=1)
    consumer = driver.join("q", 1000)
    send(driver, "q", a=10, b=5)
    driver.settle_down()
    first = told(watch, catalog.THROUGHPUT)
    assert first == {("q", "a"): 10, ("q", OTHER): 5}
    send(driver, "q", b=500)
    driver.settle_down()
    second = told(watch, catalog.THROUGHPUT)
    assert second == {("q", "b"): 0, ("q", OTHER): 505}
    send(driver, "q", b=7)
    driver.settle_down()
    assert told(watch, catalog.THROUGHPUT) == {("q", "b"): 7, ("q", OTHER): 505}
    delivered = consumer.take()
    assert len(delivered) == 522
    driver.ack("q", *[one.id for one in delivered])
    driver.leave(consumer)
    driver.settle_down()
    assert "b" not in driver.queue("q").keys
    assert told(watch, catalog.THROUGHPUT) == {("q", "b"): 7, ("q", OTHER): 505}


def test_a_key_that_is_called_other_is_among_the_others():
    driver = Driver()
    fair(driver)
    send(driver, "q", other=4, a=1)
    assert told(watch_of(driver), catalog.PENDING) == {("q", "a"): 1, ("q", OTHER): 4}


def test_queues_without_a_name_are_told_together_and_never_count_backwards():
    driver = Driver()
    for name in ("busy", "idle", OTHER):
        fair(driver, name)
    send(driver, "busy", a=9)
    send(driver, "idle", a=2)
    send(driver, OTHER, a=3)
    watch = watch_of(driver, queues=1)
    enqueued = catalog.MESSAGES["enqueued"]
    assert told(watch, enqueued) == {("busy",): 9, (OTHER,): 5}
    assert told(watch, catalog.DEPTH) == {("busy",): 9, (OTHER,): 5}
    send(driver, "idle", a=1)
    assert told(watch, enqueued) == {("busy",): 9, (OTHER,): 6}
    driver.delete("idle")
    assert told(watch, enqueued) == {("busy",): 9, (OTHER,): 6}
    assert told(watch, catalog.DEPTH) == {("busy",): 9, (OTHER,): 3}


def test_a_figure_of_a_queue_may_have_a_second_label_and_is_summed_by_it_too():
    """As any other figure: a line in `_measure`, also for queues that have no series of their own."""
    driver = Driver()
    for name in ("busy", "idle", "idler"):
        fair(driver, name)
        parts = driver.queue(name).ledger.sums.parts
        parts["retry"], parts["delay"] = 2 * SECOND, len(name) * SECOND
    send(driver, "busy", a=9)
    watch = watch_of(driver, queues=1)
    first = told(watch, catalog.WAIT_PARTS)
    assert first["busy", "retry"] == 2
    assert (first[OTHER, "retry"], first[OTHER, "delay"]) == (4, 4 + 5)
    driver.delete("idler")
    assert told(watch, catalog.WAIT_PARTS)[OTHER, "delay"] == 4 + 5
    assert {len(labels) for labels in first} == {len(catalog.WAIT_PARTS.labels)}


def test_a_queue_that_is_made_again_counts_from_nothing():
    driver = Driver()
    watch = watch_of(driver)
    fair(driver)
    send(driver, "q", a=2)
    assert told(watch, catalog.MESSAGES["enqueued"])[("q",)] == 2
    driver.delete("q")
    assert told(watch, catalog.MESSAGES["enqueued"]) == {}
    fair(driver)
    assert told(watch, catalog.MESSAGES["enqueued"])[("q",)] == 0


def test_many_keys_are_looked_at_in_steps():
    driver = Driver(max_tick_messages=100_000)
    fair(driver)
    watch = watch_of(driver)
    before = sum(1 for _ in watch.steps({}))
    send(driver, "q", **{f"k{number}": 1 for number in range(3 * STEP)})
    samples = {}
    assert sum(1 for _ in watch.steps(samples)) >= before + 3
    assert dict(samples[catalog.ACTIVE_KEYS])[("q",)] == 3 * STEP


def test_two_backlogged_keys_get_their_shares_by_weight():
    driver = Driver()
    driver.create("q", fairness_header="key", weight_header="weight")
    watch = watch_of(driver)
    for key, weight in (("heavy", "3"), ("light", "1")):
        driver.enqueue(*(incoming("q", headers={"key": key, "weight": weight}) for _ in range(1000)))
    driver.join("q", 400)
    driver.settle_down()
    samples = watch.look()
    assert dict(samples[catalog.THROUGHPUT])[("q", "heavy")] == pytest.approx(300, abs=12)
    assert dict(samples[catalog.SHARE]) == {
        ("q", "heavy"): pytest.approx(1, abs=0.05),
        ("q", "light"): pytest.approx(1, abs=0.15),
    }


def test_a_ratio_is_that_of_the_window_and_not_of_all_time():
    driver = Driver()
    fair(driver, visibility_timeout_ms=1_000_000)
    watch = watch_of(driver)
    consumer = driver.join("q", 10_000)
    send(driver, "q", early=1000)
    driver.settle_down()
    assert told(watch, catalog.SHARE) == {("q", "early"): 1.0}
    for _ in range(4):
        driver.now += WINDOW_NS // 2
        watch.look()
    send(driver, "q", late=10)
    driver.settle_down()
    assert told(watch, catalog.SHARE) == {("q", "late"): 1.0}
    driver.leave(consumer)


def test_waits_are_told_by_queue_key_and_part_and_never_shrink():
    driver = Driver()
    fair(driver)
    watch = watch_of(driver)
    send(driver, "q", a=2 * SAMPLE)
    driver.now += 3 * SECOND
    driver.join("q")
    driver.settle_down()
    for _ in range(2):
        samples = watch.look()
        spread = dict(samples[catalog.WAIT])[("q",)]
        assert (sum(spread.counts), spread.total) == (2, pytest.approx(6))
        at = next(number for number, count in enumerate(spread.counts) if count)
        assert spread.bounds[at - 1] <= 3 < spread.bounds[at]
        assert dict(samples[catalog.WAIT_PARTS])["q", "no_consumer"] == pytest.approx(6)
        assert dict(samples[catalog.KEY_WAIT])["q", "a", "no_consumer"] == pytest.approx(6)
        driver.queue("q").ledger._keys.clear()  # as if the key had not been served for long


def throttled(driver, **limits):
    driver.create("q", fairness_header="key", throttle_headers=("t",))
    for name, limit in limits.items():
        driver.state.throttles.set(f"t:{name}", limit, driver.now)


def held_up(driver, throttle, count, key="a"):
    driver.enqueue(*(incoming("q", headers={"key": key, "t": throttle}) for _ in range(count)))
    driver.settle_down()


def test_a_throttle_tells_what_it_let_pass_what_it_held_up_and_what_is_left():
    driver = Driver()
    throttled(driver, slow=Limit(rate=1, burst=5), capped=Limit(max_in_flight=2))
    driver.join("q")
    held_up(driver, "slow", 8)
    held_up(driver, "capped", 3, key="b")
    samples = watch_of(driver).look()
    assert dict(samples[catalog.DECISIONS]) == {
        ("t:slow", "pass"): 5,
        ("t:slow", "hit"): 1,
        ("t:capped", "pass"): 2,
        ("t:capped", "hit"): 1,
    }
    assert dict(samples[catalog.TOKENS]) == {("t:slow",): 0}
    assert dict(samples[catalog.THROTTLE_IN_FLIGHT]) == {("t:slow",): 5, ("t:capped",): 2}
    assert dict(samples[catalog.WAITING_KEYS]) == {("t:slow",): 1, ("t:capped",): 1}
    assert dict(samples[catalog.PARKED_KEYS])[("q",)] == 2
    assert dict(samples[catalog.ACTIVE_KEYS])[("q",)] == 2


def test_a_decision_whose_write_failed_was_none():
    driver = Driver()
    throttled(driver, slow=Limit(rate=1, burst=2))
    held_up(driver, "slow", 5)
    driver.join("q")
    driver.store.failing = True
    driver.tick()
    driver.store.failing = False
    watch = watch_of(driver)
    assert set(told(watch, catalog.DECISIONS).values()) == {0}
    assert told(watch, catalog.TURNS)[("q",)] == 0
    driver.advance(1_000)
    assert told(watch, catalog.DECISIONS) == {("t:slow", "pass"): 2, ("t:slow", "hit"): 1}
    assert told(watch, catalog.TURNS)[("q",)] == 1


def test_throttles_without_a_name_are_told_together():
    driver = Driver()
    throttled(driver, a=Limit(rate=1, burst=9), b=Limit(rate=1, burst=9), c=Limit(rate=1, burst=9))
    driver.join("q")
    for name, count in (("a", 5), ("b", 3), ("c", 1)):
        held_up(driver, name, count)
    watch = watch_of(driver, throttles=1)
    assert told(watch, catalog.DECISIONS) == {
        ("t:a", "pass"): 5,
        ("t:a", "hit"): 0,
        (OTHER, "pass"): 4,
        (OTHER, "hit"): 0,
    }
    driver.state.throttles.remove("t:b")
    assert told(watch, catalog.DECISIONS)[OTHER, "pass"] == 4


SCRIPT = """
function on_enqueue(msg)
  if msg.headers.bad then error("no") end
  return { fairness_key = "a" }
end
"""


def test_hooks_tell_how_long_they_took_and_how_often_they_failed_also_after_a_change():
    driver = Driver()
    driver.create("q", script=SCRIPT)
    watch = watch_of(driver)
    driver.enqueue(*(incoming("q") for _ in range(3)), *(incoming("q", headers={"bad": "1"}) for _ in range(4)))
    hook = ("q", "on_enqueue")
    for _ in range(2):
        samples = watch.look()
        spread = dict(samples[catalog.LUA_DURATION])[hook]
        assert sum(spread.counts) == 6
        assert dict(samples[catalog.LUA_ERRORS])[*hook, "error"] == 3
        assert dict(samples[catalog.LUA_BREAKER])[hook] == 1
        assert dict(samples[catalog.LUA_BYPASSED])[hook] == 1
        driver.ask(lambda reply: UpdateQueue("q", {"script": SCRIPT + "\n-- another"}, reply))
    assert sum(dict(watch.look()[catalog.LUA_DURATION])[hook].counts) == 6
    driver.send("q")
    assert sum(dict(watch.look()[catalog.LUA_DURATION])[hook].counts) == 7
    driver.ask(lambda reply: UpdateQueue("q", {"script": ""}, reply))
    assert sum(dict(watch.look()[catalog.LUA_DURATION])[hook].counts) == 7


@pytest.mark.parametrize(
    "supply, wanted, weights, expected",
    [
        (100, {"a": 100, "b": 100}, {"a": 1, "b": 1}, {"a": 50, "b": 50}),
        (100, {"a": 100, "b": 100}, {"a": 3, "b": 1}, {"a": 75, "b": 25}),
        (100, {"a": 10, "b": 100}, {"a": 1, "b": 1}, {"a": 10, "b": 90}),
        (100, {"a": 10, "b": 100, "c": 100}, {"a": 1, "b": 2, "c": 1}, {"a": 10, "b": 60, "c": 30}),
        (0, {"a": 10}, {"a": 1}, {"a": 0}),
        (0, {}, {}, {}),
    ],
)
def test_fair_shares_follow_weights_up_to_what_is_wanted(supply, wanted, weights, expected):
    assert fair_shares(supply, wanted, weights) == pytest.approx(expected)


def test_the_documentation_has_every_metric_as_it_is():
    text = (Path(__file__).parents[3] / "docs" / "observability.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `fila.") and line.count("|") == 5]
    expected = [
        f"| `{metric.name}` | {metric.type.value} | {', '.join(f'`{label}`' for label in metric.labels)} | "
        f"{metric.help}{' (s)' if metric.unit == 's' else ''} |"
        for metric in catalog.CATALOG
    ]
    assert [row for row in rows if "| counter |" in row or "| gauge |" in row or "| histogram |" in row] == expected
