"""Everything that decides what goes next, in pairs: what each promises alone it keeps beside every other.

The parts: fairness (several keys), weight, cost, priority, delay, throttle (a rate), in-flight cap, and retry.
"""

from collections import defaultdict
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.scheduling import NORMAL, Rings
from tests.support.world import MS, SECOND, Work, World

PARTS = ("fairness", "weight", "cost", "priority", "delay", "throttle", "cap", "retry")
every_pair = pytest.mark.parametrize("pair", list(combinations(PARTS, 2)), ids="-".join)

LIMITS = {"slow": "rate=20,burst=2", "fast": "rate=200", "shared": "rate=50,burst=5", "one": "max_in_flight=1"}
RATES, CAPS = ("slow", "fast", "shared"), ("one", "few")


def work(pair):
    """Messages in which the two parts vary and nothing else does."""

    def varies(part, values, otherwise):
        return st.sampled_from(values) if part in pair else st.just(otherwise)

    throttles = st.just(())
    if "throttle" in pair or "cap" in pair:
        names = [*(RATES if "throttle" in pair else ()), *(CAPS if "cap" in pair else ())]
        throttles = st.sets(st.sampled_from(names), max_size=2).map(lambda found: tuple(sorted(found)))
    return st.builds(
        Work,
        key=varies("fairness", "abcdef", "only"),
        weight=varies("weight", [1, 2, 5], 1),
        cost=varies("cost", [1, 1, 2, 9], 1),
        priority=varies("priority", [0, 5, 9], NORMAL),
        throttles=throttles,
        delay_ms=varies("delay", [0, 0, 25, 400], 0),
        failures=varies("retry", [0, 0, 1, 4], 0),
    )


@every_pair
@settings(max_examples=12)
@given(data=st.data())
def test_nothing_is_lost_starved_out_of_order_or_above_its_rate(pair, data):
    """Each message succeeds once; of a lane the oldest goes first; no rate and no cap is ever exceeded."""
    world = World(Rings(data.draw(st.integers(1, 6))))
    for name, limit in (LIMITS | {"few": "max_in_flight=3"}).items():
        world.limit(name, limit)
    works = data.draw(st.lists(work(pair), min_size=1, max_size=60))
    pauses = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=10))
    for number, each in enumerate(works):
        world.send(each)
        if not pauses[number % len(pauses)]:
            world.step(5)
            world.rings.now += 10 * MS
    world.run()
    world.check_rates()
    assert world.rings.drr.parked == 0
    assert not world.rings.drr.lines.all()
    assert all(throttle.in_flight == 0 for throttle in world.rings.throttles._known.values())


def busy(pair, number):
    """Endless work of a neighbour that has both parts."""
    throttles = tuple(name for part, name in (("cap", "few"), ("throttle", "shared")) if part in pair)
    return Work(
        key=f"busy{number % 3}" if "fairness" in pair else "busy",
        weight=1 + number % 3 if "weight" in pair else 1,
        cost=1 + number % 4 if "cost" in pair else 1,
        priority=number % 3 if "priority" in pair else NORMAL,
        throttles=throttles,
        delay_ms=20 if "delay" in pair and number % 2 else 0,
        failures=number % 2 if "retry" in pair else 0,
    )


@every_pair
def test_shares_of_the_others_are_right_beside_a_neighbour(pair):
    """Unthrottled keys with a backlog get what their weights say, within 1 % or one turn, whatever a neighbour does."""
    world = World(Rings(4))
    for name, limit in (LIMITS | {"few": "max_in_flight=3"}).items():
        world.limit(name, limit)
    weights = {"x": 1, "y": 2, "z": 5} if "weight" in pair else {"x": 1, "y": 1, "z": 1}
    costs = {"x": 1, "y": 3, "z": 2} if "cost" in pair else dict.fromkeys(weights, 1)
    for name, weight in weights.items():
        for _ in range(4_800 * weight // sum(weights.values()) // costs[name]):
            world.send(Work(name, weight, costs[name]))
    for number in range(300):
        world.send(busy(pair, number))
    while sum(world.spent[name] for name in weights) < 4_000:
        world.step(10)
        world.rings.now += 10 * MS
    total, shared = sum(weights.values()), sum(world.spent[name] for name in weights)
    for name, weight in weights.items():
        due = shared * weight / total
        assert abs(world.spent[name] - due) <= max(0.01 * due, 2 * (4 * weight + max(costs.values())))
    world.check_rates()


@settings(max_examples=20)
@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 5), min_size=2),
    st.integers(1, 6),
    st.sampled_from(["rate=100,burst=1", "rate=100,burst=10", "rate=40", "max_in_flight=2", "max_in_flight=7"]),
)
def test_keys_that_wait_for_one_throttle_share_it_by_weight(weights, quantum, limit):
    """What a throttle lets pass goes to its keys as their weights say, within one turn each."""
    world = World(Rings(quantum))
    world.limit("t", limit)
    for name, weight in weights.items():
        for _ in range(1_500 * weight // sum(weights.values()) + 4 * quantum * weight):
            world.send(Work(name, weight, throttles=("t",)))
    while sum(world.spent.values()) < 1_000:
        world.step(1_000)
        world.rings.now += 10 * MS
    shared, total = sum(world.spent.values()), sum(weights.values())
    for name, weight in weights.items():
        assert abs(world.spent[name] - shared * weight / total) <= 2 * quantum * weight + 1


@pytest.mark.parametrize("step_ms", [1, 7, 30])
@pytest.mark.parametrize("throttles", [("t",), ("t", "wide")], ids=["single", "hierarchical"])
def test_a_rate_is_reached(throttles, step_ms):
    """Over ten seconds, what passes is within 2 % of the rate, burst aside."""
    world = World(Rings(4))
    world.limit("t", "rate=100,burst=10")
    world.limit("wide", "rate=250,burst=10")
    for number in range(3_000):
        world.send(Work(f"key{number % 7}", throttles=throttles))
    world.step(1_000)
    begin = world.rings.now
    while world.rings.now < begin + 10 * SECOND:
        world.rings.now += step_ms * MS
        world.step(1_000)
    passed = sum(cost for at, cost in world.passed["t"] if at > begin)
    assert passed == pytest.approx(1_000, rel=0.02)
    world.check_rates()


def test_a_parent_is_shared_by_its_children():
    """With one limit above two, the sum keeps to the one above and each to its own."""
    world = World(Rings(4))
    for name, limit in {"provider": "rate=100,burst=5", "eu": "rate=80,burst=5", "us": "rate=30,burst=5"}.items():
        world.limit(name, limit)
    for number in range(2_000):
        region = ("eu", "us")[number % 2]
        world.send(Work(f"{region}{number % 5}", throttles=tuple(sorted(("provider", region)))))
    for _ in range(1_000):
        world.step(1_000)
        world.rings.now += 10 * MS
    passed = {name: sum(cost for _, cost in spendings) for name, spendings in world.passed.items()}
    assert passed["provider"] == pytest.approx(1_005, rel=0.02)
    assert passed["us"] <= 305
    assert min(passed["eu"], passed["us"]) > 200
    world.check_rates()


def test_time_that_steps_back_stops_nobody():
    """An hour back: whoever waits goes on at its rate, and gains nothing."""
    world = World(Rings(4))
    world.rings.now = 7200 * SECOND
    world.limit("t", "rate=10,burst=1")
    for _ in range(50):
        world.send(Work("a", throttles=("t",)))
    counts = defaultdict(int)
    for number in range(40):
        counts[number >= 20] += world.step(100)
        world.rings.now += 100 * MS
        if number == 19:
            world.rings.now -= 3600 * SECOND
    assert counts[False] == 20
    assert counts[True] in {19, 20}
