"""After any run, the metrics are what somebody has counted who watched every message."""

from collections import Counter
from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fila.broker.commands import UpdateQueue
from fila.core.errors import QueueFull, StoreFailed
from fila.core.throttle import Limit
from fila.storage.records import OVERFLOWS
from fila.telemetry import catalog
from fila.telemetry.keys import OTHER
from fila.telemetry.watch import Bounds, Watch
from tests.helpers.broker import MS, Driver, incoming, messages_of

VISIBILITY_MS = 5_000
MAX_ATTEMPTS = 3
KEYS = ["a", "b", "c", "d", "e", OTHER]
THROTTLES = {"t:capped": Limit(max_in_flight=2), "t:slow": Limit(rate=1, burst=3), "t:free": None}

MESSAGES = st.tuples(
    st.sampled_from(KEYS), st.sampled_from([0, 0, 700]), st.sampled_from(["", "", "capped", "slow", "free"])
)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enqueue"), st.lists(MESSAGES)),
        st.tuples(st.just("join"), st.integers(1, 5)),
        st.tuples(st.just("leave"), st.just(0)),
        st.tuples(st.just("ack"), st.integers(0, 10)),
        st.tuples(st.just("nack"), st.integers(0, 10)),
        st.tuples(st.just("advance"), st.sampled_from([1, 800, VISIBILITY_MS])),
        st.tuples(st.just("limit"), st.tuples(st.sampled_from([0, 2, 5]), st.sampled_from(OVERFLOWS))),
        st.tuples(st.just("redrive"), st.just(0)),
        st.tuples(st.just("purge"), st.just(0)),
        st.tuples(st.just("fail"), st.just(0)),
        st.tuples(st.just("look"), st.just(0)),
    ),
    max_size=60,
)


class Count:
    """Drives a broker and counts by itself."""

    def __init__(self, top_keys):
        self.driver = Driver()
        driver = self.driver
        driver.create(
            "q",
            fairness_header="key",
            throttle_headers=("t",),
            visibility_timeout_ms=VISIBILITY_MS,
            max_attempts=MAX_ATTEMPTS,
        )
        for key, limit in THROTTLES.items():
            if limit is not None:
                driver.state.throttles.set(key, limit, driver.now)
        self.watch = Watch(driver.state, driver.engine.load, lambda: driver.now, Bounds(10, top_keys, 10))
        self.counts = Counter()
        self.by_key = Counter()
        self.by_throttle = Counter()
        self.key_of = {}
        self.throttle_of = {}
        self.attempts = Counter()
        self.recipients = []
        self.held = {}
        """By sequence number: who holds it, since when"""
        self.waiting = set()
        self.dead = set()
        self.refused = 0

    def enqueue(self, messages):
        sent = [
            incoming("q", headers={"key": key} | ({"t": throttle} if throttle else {}), delay_ms=delay)
            for key, delay, throttle in messages
        ]
        for (key, _, throttle), seq in zip(messages, self.driver.enqueue(*sent), strict=True):
            if isinstance(seq, QueueFull):
                self.counts["refused"] += 1
                continue
            self.counts["enqueued"] += 1
            self.throttle_of[seq] = f"t:{throttle}"
            self.key_of[seq] = key
            self.waiting.add(seq)

    def join(self, credit):
        self.recipients.append(self.driver.join("q", credit))

    def leave(self, _):
        if self.recipients:
            gone = self.recipients.pop()
            self.driver.leave(gone)
            lost = [seq for seq, (holder, _) in self.held.items() if holder is gone]
            for seq in lost:
                self.failed("returned", seq, spared=len(lost) > 1)

    def ack(self, count):
        for seq in list(self.held)[:count]:
            assert self.driver.ack("q", self.driver.id(seq)) == []
            del self.held[seq]
            self.counts["acked"] += 1
            self.notice()

    def nack(self, count):
        for seq in list(self.held)[:count]:
            assert self.driver.nack("q", self.driver.id(seq)) == []
            self.failed("nacked", seq)
            self.notice()

    def advance(self, ms):
        self.driver.now += ms * MS
        self.expire()

    def limit(self, most):
        """A queue that drops what is too much moves it to the dead letters, in one of the next ticks."""
        max_depth, overflow = most
        self.driver.ask(lambda reply: UpdateQueue("q", {"max_depth": max_depth, "overflow": overflow}, reply))

    def redrive(self, _):
        with suppress(QueueFull):
            self.driver.redrive("q.dlq")
        back = self.dead & self.there("q")
        self.counts["redriven"] += len(back)
        self.dead -= back
        self.waiting |= back
        for seq in back:
            del self.attempts[seq]

    def purge(self, _):
        self.counts["purged"] += self.driver.purge("q")
        self.waiting.clear()

    def there(self, queue):
        return set(messages_of(self.driver.queue(queue)))

    def fail(self, _):
        """A write that fails, and the rest that the engine takes after it. What a full queue refuses is not written."""
        self.driver.store.failing = True
        try:
            self.driver.send("q", headers={"key": "a"})
        except StoreFailed:
            self.refused += 1
        except QueueFull:
            self.counts["refused"] += 1
        self.driver.store.failing = False
        self.advance(1_000)

    def expire(self):
        for seq, (_, since) in list(self.held.items()):
            if self.driver.now - since >= VISIBILITY_MS * MS:
                self.failed("expired", seq)

    def failed(self, kind, seq, *, spared=False):
        """Spared: nothing dies of the loss of a consumer that held other messages as well (decision 12)."""
        self.counts[kind] += 1
        del self.held[seq]
        self.attempts[seq] += 1
        if self.attempts[seq] >= MAX_ATTEMPTS and not spared:
            self.counts["dead_lettered"] += 1
            self.dead.add(seq)
        else:
            self.waiting.add(seq)

    def notice(self):
        """Take note of what was dropped and of what was delivered."""
        dropped = self.waiting & self.there("q.dlq")
        self.counts["dropped"] += len(dropped)
        self.counts["dead_lettered"] += len(dropped)
        self.waiting -= dropped
        self.dead |= dropped
        for recipient in self.recipients:
            for delivered in recipient.take():
                self.counts["delivered"] += 1
                self.by_key[self.key_of[delivered.seq]] += 1
                self.by_throttle[self.throttle_of[delivered.seq]] += 1
                self.waiting.remove(delivered.seq)
                self.held[delivered.seq] = (recipient, self.driver.now)

    def run(self, steps):
        for name, argument in steps:
            if name == "look":
                self.check()
            else:
                getattr(self, name)(argument)
                self.driver.settle_down()
                self.notice()
        self.check()

    def check(self):
        samples = self.watch.look()
        for name, metric in catalog.MESSAGES.items():
            assert dict(samples[metric])[("q",)] == self.counts[name], name
        dead = ("q.dlq",)
        assert dict(samples[catalog.DEPTH]) == {("q",): len(self.waiting), dead: len(self.dead)}
        assert dict(samples[catalog.LEASES]) == {("q",): len(self.held), dead: 0}
        assert dict(samples[catalog.CONSUMERS])[("q",)] == len(self.recipients)
        assert dict(samples[catalog.WRITE_FAILURES])[()] == self.refused
        pending = Counter(self.key_of[seq] for seq in self.waiting)
        delayed = dict(samples[catalog.DELAYED])[("q",)]
        told = {key: count for (queue, key), count in samples[catalog.PENDING] if queue == "q"}
        assert sum(told.values()) == len(self.waiting) - delayed
        if not delayed:
            assert dict(samples[catalog.ACTIVE_KEYS])[("q",)] == len(pending)
            self.check_pending(told, pending)
        self.check_throttles(samples)
        self.check_keys({key: count for (queue, key), count in samples[catalog.THROUGHPUT] if queue == "q"})
        return samples

    def check_throttles(self, samples):
        limited = {key for key, limit in THROTTLES.items() if limit is not None}
        decisions = dict(samples[catalog.DECISIONS])
        assert {key for key, _ in decisions} == limited
        in_flight = Counter(self.throttle_of[seq] for seq in self.held)
        for key in limited:
            assert decisions[key, "pass"] == self.by_throttle[key]
            assert dict(samples[catalog.THROTTLE_IN_FLIGHT])[(key,)] == in_flight[key]
        held_up = {(key,): count for (key,), count in samples[catalog.WAITING_KEYS] if count}
        assert all(decisions[key, "hit"] for (key,) in held_up)

    def check_keys(self, told):
        assert {key: count for key, count in told.items() if count} == dict(self.by_key)

    def check_pending(self, told, pending):
        assert {key: count for key, count in told.items() if count} == dict(pending)


class CountFew(Count):
    """With fewer names than keys."""

    before: dict

    def check_keys(self, told):
        assert len(told) <= 3
        before = self.__dict__.get("before", {})
        for key, count in told.items():
            assert count <= (sum(self.by_key.values()) if key == OTHER else self.by_key[key])
            assert count >= before.get(key, 0) or key != OTHER
        self.before = told

    def check_pending(self, told, pending):
        assert all(count == pending[key] for key, count in told.items() if key != OTHER)


#: One message is lost alone, then with another, then with three others: its attempts are used up, and it lives on.
LOST_IN_COMPANY = [
    ("join", 4),
    ("enqueue", [("a", 700, "")] * 4),
    ("join", 2),
    ("join", 1),
    ("fail", 0),
    ("leave", 0),
    ("leave", 0),
    ("leave", 0),
]


#: More than fits is refused, then dropped; what was dropped is sent back as far as there is room, and then purged.
TOO_MANY = [
    ("limit", (2, "reject")),
    ("enqueue", [("a", 0, "")] * 3),
    ("limit", (2, "drop-oldest")),
    ("enqueue", [("b", 0, "")] * 2),
    ("look", 0),
    ("limit", (5, "reject")),
    ("redrive", 0),
    ("look", 0),
    ("purge", 0),
]


@settings(max_examples=150)
@given(STEPS)
@example(LOST_IN_COMPANY)
@example(TOO_MANY)
@example([*LOST_IN_COMPANY, ("join", 1), ("nack", 1), ("look", 0)])
def test_counters_levels_and_keys_agree_with_a_count(steps):
    Count(top_keys=len(KEYS)).run(steps)


@settings(max_examples=100)
@given(STEPS)
@example(LOST_IN_COMPANY)
def test_with_more_keys_than_names_nothing_counts_twice_and_the_rest_never_shrinks(steps):
    count = CountFew(top_keys=2)
    count.run(steps)
    samples = count.watch.look()
    told = sum(value for (queue, _), value in samples[catalog.THROUGHPUT] if queue == "q")
    lost = next(kept.keys._lost for queue, kept in count.watch._named.items() if queue.name == "q")
    assert told + lost == count.counts["delivered"]
