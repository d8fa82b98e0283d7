"""What-if without Spark: a replay reproduces what a broker did, notices what it did not do, and obeys changes."""

import json
from collections import Counter

import pytest

from fila.core.throttle import Limit
from fila.pipelines.errors import BadInput
from fila.pipelines.whatif.changes import Changes, parse
from fila.pipelines.whatif.entries import COLUMNS, entry, ticks
from fila.pipelines.whatif.follow import follow
from fila.pipelines.whatif.replay import MODEL, RECORDED, WHATIF, Plan, replay
from fila.pipelines.whatif.simulate import Simulation
from fila.pipelines.whatif.tally import Tally, class_of, wait_of
from fila.storage.records import QueueRecord
from tests.helpers.whatif import QUEUES, Shop, busy, entries_of, with_holds

SEEDS = range(4)
SECOND = 1_000_000_000


def simulated(shop, changes=None):
    """Queue, message and time of each delivery."""
    found = []
    told = with_holds(shop.entries())
    simulation = Simulation(changes or Changes(), Tally(0, 1 << 62), lambda *delivery: found.append(delivery))
    for at, together in ticks(told):
        list(simulation.take(at, together))
    list(simulation.finish(shop.driver.now))
    return found


def waits(shop, delivered, of):
    """How long first deliveries of messages waited, together."""
    come = {one.message: max(one.at, one.until) for one in shop.entries() if one.kind == "enqueued" and of(one)}
    first = {}
    for _, message, at in delivered:
        first.setdefault(message, at)
    end = shop.driver.now
    return sum(first.get(message, end) - at for message, at in come.items())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_scheduler_chooses_again_what_it_chose(seed):
    shop = busy(seed)
    told = shop.entries()
    kinds = Counter(one.kind for one in told)
    assert {"nacked", "expired", "due", "returned", "consumers", "configured", "updated"} <= kinds.keys()
    found = follow(told)
    assert (found.different, found.unknown, found.skipped, found.first) == (0, 0, 0, [])
    assert found.alike == kinds["leased"] == len(shop.delivered) > 400


@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_reproduces_consumers_that_are_as_it_says_to_the_nanosecond(seed):
    shop = busy(seed, tick_ns=0)
    assert sorted(simulated(shop)) == sorted(shop.delivered)


def test_a_queue_may_be_deleted_in_the_first_tick_after_a_start():
    """Which tells first what each queue holds."""
    driver = Shop(0).driver
    driver.restart()
    driver.now += 1
    driver.delete("orders")
    told = entries_of(driver)
    [counted] = [one for one in told if one.kind == "counted" and one.queue == "orders"]
    [deleted] = [one for one in told if one.kind == "deleted" and one.queue == "orders"]
    assert counted.at == deleted.at
    found = follow(told)
    assert (found.different, found.unknown, found.first) == (0, 0, [])


def changed(told, of, **values):
    return [one._replace(**values) if of(one) else one for one in told]


@pytest.mark.parametrize(
    "tamper",
    [
        lambda told: changed(told, lambda one: one.key == "bob", weight=9),
        lambda told: changed(told, lambda one: one.kind == "enqueued", note={}),
        lambda told: changed(told, lambda one: one.kind == "enqueued", cost=1),
        lambda told: [one for one in told if one.kind != "updated"],
        lambda told: [one for one in told if "asked_at_ns" not in one.note],
    ],
    ids=["weight", "throttles", "cost", "quantum", "looks"],
)
def test_a_scheduler_that_would_have_chosen_otherwise_is_noticed_and_the_replay_goes_on(tamper):
    told = tamper(busy(1).entries())
    found = follow(told)
    assert found.different > 0
    assert found.first[0].startswith("queue ")
    assert found.unknown == 0
    assert found.alike > 0


def test_a_limit_that_is_taken_away_or_given_changes_the_waits_of_its_messages():
    shop = busy(2, tick_ns=0)

    def limited(one):
        return "provider:aws" in one.throttles

    was = waits(shop, shop.delivered, limited)
    assert waits(shop, simulated(shop, parse(["throttle.provider:aws=none"])), limited) < was
    assert waits(shop, simulated(shop, parse(["throttle.provider:aws=5/s"])), limited) > was


def test_more_consumers_leave_less_to_wait_for():
    shop = busy(3, tick_ns=0)
    changes = parse(["throttle.provider:aws=none", "throttle.provider:gcp=none"])
    more = parse(["throttle.provider:aws=none", "throttle.provider:gcp=none", "consumers=40", "paused=false"])
    assert waits(shop, simulated(shop, more), lambda _: True) < waits(shop, simulated(shop, changes), lambda _: True)


def test_a_weight_moves_service_to_its_key_in_the_queues_that_are_named():
    shop = Shop(0, tick_ns=0)
    for name in QUEUES:
        shop.join(name, 3)
        shop.at(1, lambda name=name: shop.send(name, 150, delays=False))
    shop.run(600)
    delivered, moved = simulated(shop), simulated(shop, parse(["weight.cyd=1000"], ["mail"]))
    for name, better in (("mail", True), ("orders", False)):

        def of(one, name=name):
            return one.queue == name and one.key == "cyd"

        assert (waits(shop, moved, of) < waits(shop, delivered, of)) == better
    assert [each for each in moved if each[0] == "orders"] == [each for each in delivered if each[0] == "orders"]


def test_a_part_is_told_in_all_variants_and_windows():
    shop = busy(0)
    told = with_holds(shop.entries())
    plan = Plan(parse(["quantum=1"]), told[0].at, shop.driver.now, SECOND // 10, by_day=False, complete=True)
    rows, verdict = [], None
    replayed = replay(plan, "0:0", told)
    while verdict is None:
        try:
            rows.append(next(replayed))
        except StopIteration as end:
            verdict = end.value
    assert (verdict.different, verdict.unknown) == (0, 0)
    leased = Counter()
    for variant, row in rows:
        leased[variant] += row.leased
        assert (row.backlog > 0) <= (row.wanted_ns > 0)
        assert sum(row.counts) == row.leased
        assert 0 <= row.window <= 20
        assert row.wanted_ns <= SECOND // 10
    assert set(leased) == {RECORDED, MODEL, WHATIF}
    assert leased[RECORDED] == verdict.alike
    cost = sum(one.cost for one in told if one.kind == "leased")
    assert sum(row.cost for variant, row in rows if variant == RECORDED) == cost


def test_time_that_goes_back_is_refused_with_the_entry():
    told = busy(0).entries()
    last = told[-1]._replace(at=told[0].at - 1)
    with pytest.raises(BadInput, match=f"went back before entry {last.seq}.*--from {last.seq}"):
        follow([*told[:-1], last])


def test_a_queue_of_which_nothing_is_told_is_refused():
    told = [one for one in busy(0).entries() if one.kind not in {"created", "counted"}]
    with pytest.raises(BadInput, match="of which no entry says how it is set"):
        follow(told)


ROW = dict(zip(COLUMNS, (1, 5, "enqueued", "q", "k", 5, 1, "id", 9, 0, 1, 0, 0, "", "", ""), strict=True))


@pytest.mark.parametrize(
    "given, problem",
    [
        ({"at_ns": -1}, "a number that cannot be"),
        ({"attempt": None}, "a number that cannot be"),
        ({"queue": None}, "lacks a text"),
        ({"weight": 0}, "of no message that can be"),
        ({"message_id": ""}, "of no message that can be"),
        ({"note": "{"}, "no JSON object"),
        ({"note": "[" * 100_000}, "no JSON object"),
        ({"note": json.dumps({"throttles": [1]})}, "throttle keys that cannot be"),
        ({"note": json.dumps({"throttles": ["a"] * 1000})}, "throttle keys that cannot be"),
        ({"kind": "dead"}, "does not say where the message went"),
        ({"kind": "counted", "queue": ""}, "names no queue"),
    ],
)
def test_rows_that_no_broker_wrote_are_refused(given, problem):
    with pytest.raises(BadInput, match=problem):
        entry(tuple((ROW | given).values()))


def test_a_kind_of_a_newer_broker_is_left_out():
    assert entry(tuple((ROW | {"kind": "newer"}).values())) is None
    assert entry(tuple(ROW.values())).message == 9


def test_settings_are_read_and_told_again():
    given = ["throttle.provider:aws=50/s,burst=3", "throttle.a=b=none", "weight.x=y=4", "quantum=7", "paused=true"]
    changes = parse(given, ["orders"])
    assert changes.throttles == {"provider:aws": str(Limit.parse("rate=50,burst=3")), "a=b": None}
    assert (changes.weights, changes.quantum, changes.paused) == ({"x=y": 4}, 7, True)
    assert parse(changes.told(), ["orders"]) == changes
    assert changes.weight("mail", "x=y", 2) == 2
    assert changes.weight("orders", "x=y", 2) == 4
    record = QueueRecord("mail", 0, 1, 3, 0)
    assert changes.record(record) == record


def test_room_is_shared_out_among_consumers():
    assert Changes().credit("q", 3, 10) == [4, 3, 3]
    assert parse(["consumers=2"]).credit("q", 4, 40) == [10, 10]
    assert parse(["consumers=2", "max_in_flight=5"]).credit("q", 4, 40) == [5, 5]
    assert parse(["consumers=2"]).credit("q", 0, 0) == []


@pytest.mark.parametrize(
    "text",
    [
        *("x", "x=1", "quantum", "quantum=", "quantum=0", "quantum=1000001", "quantum=1e3", "weight.=1", "weight.a=-1"),
        *("throttle.=5/s", "throttle.a=-5/s", "throttle.a=five", "paused=maybe", "consumers=" + "9" * 5000),
    ],
)
def test_settings_that_cannot_be_are_refused(text):
    with pytest.raises(BadInput):
        parse([text])


@pytest.mark.parametrize("wait_ns", [0, 999, 1000, 1234, 10**6, 123_456_789, 10**12])
def test_a_class_of_waits_is_known_to_five_percent(wait_ns):
    assert abs(wait_of(class_of(wait_ns)) - wait_ns) <= max(1000, wait_ns * 0.05)
