"""The lane cache changes nothing: each message goes where its own headers say, under the queue's settings of the time.

The oracle reads headers by hand and shares no code with the broker. What is compared is what the store holds of each
message, and that every message can be delivered, so that no lane was lost on the way.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fila.broker import lane_cache
from fila.broker.commands import CommitTransaction, StageEnqueue, UpdateQueue
from fila.core.errors import BrokerError, StoreFailed
from fila.storage import codec, keys
from fila.storage.base import Family
from tests.helpers.broker import Driver, Recipient, incoming

HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "tenant": st.sampled_from(["a", "b", ""]),
        "region": st.sampled_from(["x", "y"]),
        "weight": st.sampled_from(["1", "3"]),
        "cost": st.sampled_from(["1", "4"]),
        "api": st.sampled_from(["s", "t"]),
    },
)
MESSAGES = st.lists(
    st.tuples(HEADERS, st.sampled_from([5, 5, 5, 2]), st.sampled_from([0, 0, 0, 1000])), min_size=1, max_size=6
)
Expected = tuple[str, int, int, int, tuple[str, ...]]
"""Fairness key, priority, weight, cost, throttle keys"""


class Cached(RuleBasedStateMachine):
    @initialize(
        entries=st.sampled_from([0, 1, 32]),
        per_key=st.sampled_from([0, 2]),
    )
    def start(self, entries: int, per_key: int) -> None:
        self.before = lane_cache.ENTRIES, lane_cache.ENTRIES_PER_KEY
        lane_cache.ENTRIES, lane_cache.ENTRIES_PER_KEY = entries, per_key
        self.driver = Driver()
        self.settings: dict[str, Any] = {"fairness_header": "tenant", "weight_header": "weight"}
        self.driver.create("q", **self.settings)
        self.expected: dict[int, Expected] = {}
        self.consumer: Recipient | None = None
        self.transaction = 0

    def teardown(self) -> None:
        if hasattr(self, "before"):
            lane_cache.ENTRIES, lane_cache.ENTRIES_PER_KEY = self.before

    def judge(self, headers: dict[str, str], priority: int) -> Expected:
        """What the documentation says of headers."""
        ways = self.settings
        throttles = {f"{name}:{headers[name]}" for name in ways.get("throttle_headers", ()) if name in headers}
        return (
            headers.get(ways["fairness_header"]) or "default",
            priority,
            int(headers.get(ways["weight_header"], 1)) if ways["weight_header"] else 1,
            int(headers.get(ways["cost_header"], 1)) if ways.get("cost_header") else 1,
            tuple(sorted(throttles)),
        )

    @rule(messages=MESSAGES, fails=st.sampled_from([False, False, True]))
    def enqueue(self, messages: list[tuple[dict[str, str], int, int]], fails: bool) -> None:
        batch = [incoming("q", headers=headers, priority=priority, delay_ms=ms) for headers, priority, ms in messages]
        self.driver.store.failing = fails
        try:
            outcomes = self.driver.enqueue(*batch)
        except StoreFailed:
            assert fails
            self.driver.store.failing = False
            self.driver.advance(1001)  # until which chores and deliveries pause
            return
        self.driver.store.failing = False
        self.expect(outcomes, messages)

    @rule(messages=MESSAGES)
    def stage_and_commit(self, messages: list[tuple[dict[str, str], int, int]]) -> None:
        self.transaction += 1
        number = self.transaction
        batch = [incoming("q", headers=headers, priority=priority, delay_ms=ms) for headers, priority, ms in messages]
        known = {seq for _, seq in self.stored()}
        self.driver.ask(lambda reply: StageEnqueue("p", number, "x", 1, batch, reply))
        self.driver.ask(lambda reply: CommitTransaction("p", number, [("x", len(batch))], reply))
        self.driver.settle_down()
        self.expect(sorted({seq for _, seq in self.stored()} - known), messages)

    def expect(self, outcomes: list[Any], messages: list[tuple[dict[str, str], int, int]]) -> None:
        for seq, (headers, priority, _) in zip(outcomes, messages, strict=True):
            assert not isinstance(seq, BrokerError)
            self.expected[seq] = self.judge(headers, priority)

    @rule(
        fairness=st.sampled_from(["tenant", "region"]),
        weight=st.sampled_from(["weight", ""]),
        cost=st.sampled_from(["cost", ""]),
        throttles=st.sampled_from([(), ("api",), ("api", "region")]),
    )
    def configure(self, fairness: str, weight: str, cost: str, throttles: tuple[str, ...]) -> None:
        self.settings = {
            "fairness_header": fairness,
            "weight_header": weight,
            "cost_header": cost,
            "throttle_headers": throttles,
        }
        self.driver.ask(lambda reply: UpdateQueue("q", self.settings, reply))

    @rule(count=st.integers(1, 20))
    def drain(self, count: int) -> None:
        """Empty lanes, so that keys are forgotten and lanes are used again."""
        consumer = self.driver.join("q", count)
        self.driver.settle_down()
        for one in consumer.take():
            assert self.driver.ack("q", one.id, token=one.token) == []
            del self.expected[one.seq]
        self.driver.leave(consumer)
        self.driver.settle_down()

    @rule()
    def wait(self) -> None:
        self.driver.advance(1001)

    @rule()
    def restart(self) -> None:
        self.driver.restart()
        self.driver.settle_down()

    def stored(self) -> list[tuple[tuple[str, str, int], int]]:
        found = []
        for key in self.driver.store.dump()[Family.MESSAGES]:
            parts, seq = keys.read_message(key)
            found.append((keys.read_lane(keys.joined(parts)), seq))
        return found

    @invariant()
    def each_message_is_where_its_headers_say(self) -> None:
        if not hasattr(self, "driver"):
            return
        found: dict[int, Expected] = {}
        for key, record in self.driver.store.dump()[Family.MESSAGES].items():
            parts, seq = keys.read_message(key)
            _, fairness_key, priority = keys.read_lane(keys.joined(parts))
            weight, cost, throttle_keys = codec.read_head(codec.head_of(record))
            found[seq] = (fairness_key, priority, weight, cost, tuple(throttle_keys))
        assert found == self.expected

    @invariant()
    def what_is_kept_is_bounded(self) -> None:
        if not hasattr(self, "driver"):
            return
        queue = self.driver.queue("q")
        cache = queue.lane_cache
        assert not cache._new_keys
        assert not cache._new_lanes
        assert len(cache) <= lane_cache.ENTRIES + lane_cache.ENTRIES_PER_KEY * len(queue.keys)
        assert cache.special.keys() <= cache.lanes.keys()

    @invariant()
    def all_can_be_delivered(self) -> None:
        if not hasattr(self, "driver"):
            return
        queue = self.driver.queue("q")
        waiting = {
            seq: (key.name, lane.priority, tuple(throttle.name for throttle in lane.throttles))
            for key in queue.keys.values()
            for lane in key.lanes.values()
            for seq in lane.waiting()
        }
        delayed = {
            seq: (lane.key.name, lane.priority, tuple(throttle.name for throttle in lane.throttles))
            for _, seq, lane, _ in queue.schedule.all()
        }
        assert waiting | delayed == {seq: (key, at, names) for seq, (key, at, _, _, names) in self.expected.items()}


Cached.TestCase.settings = settings(max_examples=150, stateful_step_count=25)
TestLaneCache = Cached.TestCase
