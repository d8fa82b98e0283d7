"""Workers that share throttles spend no more than one would, whatever is lost, late or said twice."""

from collections import deque
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.cluster.turns import GAINS_NS, LEASE_NS, TURN_NS, Turns
from fila.core.shared_throttle import Given, SharedThrottles
from fila.core.throttle import Limit

MS = 1_000_000
SECOND = 1_000_000_000
KEY = "k"


class World:
    """Worker 0, which decides, and others whose messages take their time. A worker may stand still, and be given up."""

    def __init__(self, workers, limit, seed):
        self.now = SECOND
        self.random = Random(seed)
        self.limit = limit
        self.workers = workers
        self.to = {worker: deque() for worker in range(workers)}
        self.said = {worker: deque() for worker in range(workers)}
        self.still = set()
        self.linked = set()
        self.throttles = []
        self.pinged = [0] * workers
        self.turn_at = 0
        self.turns = Turns(
            workers,
            lambda worker, message: self.to[worker].append(message),
            self.now,
            begins_empty=False,
            random=self.random,
        )
        self.turns.limit(KEY, limit, self.now)
        for worker in range(workers):
            throttles = SharedThrottles()
            throttles.set(KEY, limit, self.now)
            throttles.on_want = lambda key, worker=worker: self.say(worker, ("want", key))
            throttles.on_freed = lambda key, worker=worker: self.say(worker, ("flies", key))
            self.throttles.append(throttles)
            self.link(worker)
        self.spent = []

    def say(self, worker, message):
        if worker in self.linked:
            self.said[worker].append(message)

    def link(self, worker):
        self.linked.add(worker)
        self.said[worker].clear()
        self.to[worker].clear()
        self.throttles[worker].lose_all()
        if worker:
            self.throttles[worker].hold_until(self.now + GAINS_NS, self.now)
            self.pinged[worker] = self.now
        self.turns.hello(worker, self.throttles[worker].capped(), self.now)

    def give_up(self, worker):
        """The connection is closed by worker 0, which heard nothing. What was said to the worker it may still read."""
        self.linked.discard(worker)
        self.turns.lost(worker, self.now)

    def step(self, ms):
        self.now += ms * MS
        for worker in range(self.workers):
            if worker in self.still or worker not in self.linked:
                continue
            if worker and self.now - self.pinged[worker] > 250 * MS:
                self.pinged[worker] = self.now
                self.throttles[worker].hold_until(self.now + GAINS_NS, self.now)
            self.hear(worker)
        for worker in sorted(self.linked):
            while self.said[worker]:
                what, key, *given = self.said[worker].popleft()
                if what == "want":
                    self.turns.want(worker, key, self.now)
                elif what == "gave":
                    self.turns.gave(worker, key, given[0], self.now)
                else:
                    self.turns.flies(worker, key, self.throttles[worker].find(key).in_flight, self.now)
        if self.now >= self.turn_at:
            self.turn_at = self.now + TURN_NS
            self.turns.next_turn(self.now)

    def hear(self, worker):
        throttles = self.throttles[worker]
        while self.to[worker]:
            message = self.to[worker].popleft()
            if "grant" in message:
                throttles.grant(message["grant"], message["level"], message["elsewhere"], self.now)
            elif "recall" in message:
                given = throttles.recall(message["recall"], self.now, if_idle="if_idle" in message)
                if given is not None:
                    self.say(worker, ("gave", message["recall"], given))
            else:
                throttles.tell_elsewhere(message["elsewhere"], message["n"])

    def try_to_pass(self, worker, cost):
        throttle = self.throttles[worker].find(KEY)
        throttle.ready_at(cost, self.now)  # what a line does that waits
        if throttle.admits(cost, self.now):
            throttle.charge(1, cost)
            self.spent.append((self.now, cost))

    def check(self):
        rate, burst = self.limit.rate, self.limit.capacity
        debt, before = 0.0, 0
        for at, cost in self.spent:  # a bucket of its own, by the time of the world
            debt = max(0.0, debt - rate * (at - before) / SECOND) + cost
            before = at
            assert debt <= burst + 1e-6, "more than the rate allows"

    def in_flight(self):
        return sum(throttles.find(KEY).in_flight for throttles in self.throttles)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pass", "pass", "pass", "release", "still", "go", "late"]),
        st.integers(0, 2),
        st.integers(1, 3),
        st.sampled_from([0, 1, 5, 30, 400, 1500]),
    ),
    min_size=20,
    max_size=150,
)


def run(world, steps):
    for what, worker, cost, ms in steps:
        if what == "pass" and worker not in world.still:
            for _ in range(4):
                world.try_to_pass(worker, cost)
        elif what == "release" and worker not in world.still:
            throttle = world.throttles[worker].find(KEY)
            if throttle.in_flight:
                throttle.release()
        elif what == "still" and worker:
            world.still.add(worker)
        elif what == "late" and worker in world.still and worker in world.linked:
            world.give_up(worker)
        elif what == "go" and worker in world.still:
            world.still.discard(worker)
            world.hear(worker)  # what it had been told
            for _ in range(4):
                world.try_to_pass(worker, 1)  # before it hears that it was given up
            if worker not in world.linked:
                world.link(worker)
        world.step(ms)
        yield


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from([Limit(rate=5), Limit(rate=1, burst=1), Limit(rate=50, burst=7)]), STEPS)
def test_the_rate_is_that_of_all_together(seed, limit, steps):
    world = World(3, limit, seed)
    for _ in run(world, [step for step in steps if step[2] <= limit.capacity]):
        pass
    world.check()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 6), STEPS)
def test_the_cap_is_that_of_all_together(seed, cap, steps):
    world = World(3, Limit(max_in_flight=cap), seed)
    for _ in run(world, steps):
        assert world.in_flight() <= cap


@pytest.mark.parametrize("limit", [Limit(rate=100), Limit(rate=0.5), Limit(max_in_flight=1)])
def test_all_who_wait_have_their_turn(limit):
    """Also of a limit that lets one message pass at a time, at regular times."""
    world = World(3, limit, 1)
    passed = [0, 0, 0]
    for _ in range(20_000):
        for worker in range(3):
            before = len(world.spent)
            world.try_to_pass(worker, 1)
            if len(world.spent) > before:
                passed[worker] += 1
                world.throttles[worker].find(KEY).release()
        world.step(5)
    assert min(passed) >= sum(passed) / 6
    assert limit.rate is None or sum(passed) >= 0.8 * limit.rate * 100


def test_a_key_that_one_worker_uses_stays_there():
    """Nothing is said any more once it is there."""
    world = World(3, Limit(rate=1000), 1)
    for _ in range(50):
        world.try_to_pass(1, 1)
        world.step(5)
    said = []
    world.turns._send = lambda worker, message: said.append(message)
    for _ in range(200):
        world.try_to_pass(1, 1)
        world.step(5)
    assert said == []
    assert len(world.spent) > 200


def test_a_limit_that_was_taken_away_and_set_again_is_with_one_worker():
    world = World(2, Limit(rate=10), 1)
    world.try_to_pass(1, 1)
    world.step(5)
    world.step(5)
    world.turns.unlimit(KEY)
    world.turns.limit(KEY, Limit(rate=10), world.now)
    for worker in (0, 1):  # worker 1 has not heard of it yet
        world.try_to_pass(worker, 1)
    world.step(1)
    world.step(1)
    held = [throttles.holds_any for throttles in world.throttles]
    assert sum(held) <= 1


def test_a_lost_holder_is_waited_for():
    world = World(2, Limit(rate=10), 1)
    world.try_to_pass(1, 1)
    world.step(5)
    world.step(5)
    assert world.throttles[1].holds_any
    world.still.add(1)
    world.give_up(1)
    world.try_to_pass(0, 1)
    world.step(5)
    assert not world.throttles[0].holds_any
    world.step(LEASE_NS // MS + 1)
    world.step(1)
    assert world.throttles[0].holds_any


def test_a_key_that_was_asked_for_while_nobody_heard_is_asked_for_again():
    """A worker that talks to a new worker 0 has asked it for what waits, and for nothing else."""
    said, throttles = [], SharedThrottles()
    throttles.on_want = said.append
    throttles.set(KEY, Limit(rate=10), 0)
    throttle = throttles.find(KEY)
    throttle.ready_at(1, 0)
    throttle.ready_at(1, 0)
    assert said == [KEY]
    assert throttles.ask_anew() == []
    throttle.ready_at(1, 0)
    assert said == [KEY, KEY]


def test_what_is_given_back_has_its_parts():
    assert Given(None, 0, wanted=False)._asdict() == {"level": None, "in_flight": 0, "wanted": False}
