"""Hooks are asked within a budget: whoever needs one may wait, gets its answer all the same, and holds up nobody."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.broker.commands import CreateQueue, Enqueue, Nack, Produced, Settle, UpdateQueue
from fila.broker.hook_queue import PART_OF_ONE
from fila.broker.scripts import Scripting
from fila.config import LuaConfig
from fila.core.errors import BrokerError, Overloaded, ShuttingDown
from tests.helpers.broker import Driver, incoming, messages_of, queue_record

MS = 1_000_000
BY_TENANT = "function on_enqueue(msg) return {fairness_key = 'to-' .. msg.headers.k} end"
JUDGE = "function on_failure(msg) return {action = 'dlq'} end"


class Clock:
    """Every look at it takes a while, so every call of a hook does."""

    def __init__(self, step_ms: float = 3) -> None:
        self.now = 0
        self.step = int(step_ms * MS)

    def __call__(self) -> int:
        self.now += self.step
        return self.now


def made(clock: Clock, **config) -> Driver:
    return Driver(scripting=Scripting(LuaConfig(**{"timeout_ms": 1000} | config), clock_ns=clock))


def batch(queue: str, count: int, key: str = "a"):
    return [incoming(queue, headers={"k": key}) for _ in range(count)]


def send(driver: Driver, messages, producer="", sequence=0):
    """The answer appears in the list."""
    return driver.submit(lambda reply: Enqueue(messages, reply, Produced(producer, sequence)))


def run(driver: Driver, answers, ticks=1000) -> int:
    """Tick until there is an answer; how many ticks it took."""
    for number in range(1, ticks + 1):
        driver.tick()
        if answers:
            return number
    raise AssertionError("no answer")


def keys_of(driver: Driver, queue: str) -> set[str]:
    return {key for _, key, *_ in messages_of(driver.queue(queue)).values()}


def test_a_hook_within_its_limit_decides_every_message():
    """The average of its calls is of no matter."""
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    answers = send(driver, batch("slow", 40))
    assert run(driver, answers) > 10
    assert len(answers[0]) == 40
    assert keys_of(driver, "slow") == {"to-a"}
    stats = driver.queue("slow").hooks.enqueue_stats
    assert (stats.calls, stats.bypassed, sum(stats.failures.values())) == (40, 0, 0)


def test_a_tick_spends_no_more_than_its_time_and_one_call():
    clock = Clock()
    driver = made(clock, tick_ms=5)
    driver.create("slow", script=BY_TENANT)
    budget = driver.state.scripts.budget
    answers = send(driver, batch("slow", 40))
    while not answers:
        before = budget.spent_ns
        driver.tick()
        assert budget.spent_ns - before <= (5 + 3) * MS
    assert budget.exhausted


def test_hooks_have_no_more_than_their_part_of_all_time():
    clock = Clock()
    driver = made(clock, tick_ms=5, max_time_percent=20)
    driver.create("slow", script=BY_TENANT)
    budget, began = driver.state.scripts.budget, clock.now
    run(driver, send(driver, batch("slow", 100)))
    assert budget.spent_ns <= (clock.now - began) * 0.2 + (5 + 3) * MS


def test_whoever_needs_no_hook_is_answered_at_once():
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    driver.create("plain")
    slow, plain = send(driver, batch("slow", 400)), send(driver, batch("plain", 3))
    driver.tick()
    assert not slow
    assert len(plain[0]) == 3
    assert driver.engine.load().hooks_waiting == 400
    again = send(driver, batch("plain", 3))
    driver.tick()
    assert again
    assert not slow


def test_while_the_store_stalls_nobody_wakes_up_to_ask_hooks():
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    driver.create("plain")
    send(driver, batch("slow", 400))
    send(driver, batch("plain", 1))
    driver.store.stalls = 7
    for _ in range(7):
        driver.tick()
    assert driver.engine.hooks_wait_ns(driver.now) == 64 * MS
    assert driver.engine.hooks_wait_ns(driver.now + 64 * MS) < 64 * MS


def test_a_write_that_failed_before_makes_hooks_wait_no_longer_for_a_store_that_stalls():
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    driver.create("plain")
    driver.store.failing = True
    failed = send(driver, batch("plain", 1))
    driver.tick()
    assert failed
    driver.store.failing, driver.store.stalls = False, 7
    send(driver, batch("slow", 400))
    send(driver, batch("plain", 1))
    for _ in range(7):
        driver.tick()
    assert driver.engine.hooks_wait_ns(driver.now) == 64 * MS


def test_a_long_line_of_one_queue_does_not_hold_up_anothers():
    driver = made(Clock())
    for name in ("slow", "quick"):
        driver.create(name, script=BY_TENANT)
    slow = [send(driver, batch("slow", 100)) for _ in range(5)]
    for _ in range(50):
        driver.tick()
    quick = send(driver, batch("quick", 1))
    run(driver, quick, ticks=10)
    assert not slow[-1]


def test_batches_of_a_queue_keep_their_order():
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    answers = [send(driver, batch("slow", size)) for size in (7, 1, 3)]
    run(driver, answers[2])
    seqs = [list(answer[0]) for answer in answers]
    assert seqs[0] < seqs[1] < seqs[2]


def test_batches_of_a_producer_keep_their_order_whatever_queue_they_are_for():
    """A batch that overtook the one before would make it stale."""
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    driver.create("plain")
    first, second = send(driver, batch("slow", 9), "p", 1), send(driver, batch("plain", 1), "p", 2)
    run(driver, second)
    assert not any(isinstance(outcome, BrokerError) for outcome in (*first[0], *second[0]))


def test_a_batch_that_is_sent_again_asks_nobody():
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    first = send(driver, batch("slow", 9), "p", 1)
    run(driver, first)
    again = send(driver, batch("slow", 9), "p", 1)
    driver.tick()
    assert list(again[0]) == list(first[0])
    assert driver.queue("slow").hooks.enqueue_stats.calls == 9


def test_a_change_of_the_script_comes_after_the_batches_before_it():
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    answers = send(driver, batch("slow", 40))
    driver.tick()
    changed = driver.submit(lambda reply: UpdateQueue("slow", {"script": BY_TENANT.replace("to-", "for-")}, reply))
    run(driver, answers)
    assert keys_of(driver, "slow") == {"to-a"}
    if not changed:
        run(driver, changed)
    run(driver, send(driver, batch("slow", 1)))
    assert keys_of(driver, "slow") == {"to-a", "for-a"}


def test_a_queue_that_is_made_meanwhile_is_asked_within_the_budget():
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    answers = send(driver, [*batch("slow", 10), *batch("late", 40)])
    driver.tick()
    later = driver.submit(lambda reply: CreateQueue(queue_record("late", script=BY_TENANT), reply))
    budget = driver.state.scripts.budget
    while not answers:
        before = budget.spent_ns
        driver.tick()
        assert budget.spent_ns - before <= (5 + 3) * MS
    assert later == [None]
    assert keys_of(driver, "late") == {"to-a"}


def test_messages_that_are_given_back_wait_for_on_failure():
    driver = made(Clock())
    driver.create("slow", script=JUDGE)
    driver.enqueue(*batch("slow", 20))
    consumer = driver.join("slow", 100)
    driver.settle_down()
    nacks = [Nack("slow", one.id, "no", one.token) for one in consumer.got]
    answers = driver.submit(lambda reply: Settle(reply, nacks=nacks))
    assert run(driver, answers) > 5
    assert answers == [[]]
    assert len(messages_of(driver.queue("slow.dlq"))) == 20
    assert driver.queue("slow").hooks.failure_stats.calls == 20


def test_compiling_waits_for_its_turn():
    driver = made(Clock(step_ms=20), max_time_percent=1)
    made_first = driver.submit(lambda reply: CreateQueue(queue_record("a", script=BY_TENANT), reply))
    made_later = driver.submit(lambda reply: CreateQueue(queue_record("b", script=BY_TENANT), reply))
    driver.tick()
    assert made_first == [None]
    driver.tick()
    assert made_later == []
    run(driver, made_later)
    assert made_later == [None]


def test_a_line_has_a_length():
    driver = Driver(scripting=Scripting(LuaConfig(timeout_ms=1000), clock_ns=Clock()), max_queued_commands=80)
    driver.create("slow", script=BY_TENANT)
    driver.create("other", script=BY_TENANT)
    driver.create("plain")
    send(driver, batch("slow", 80 // PART_OF_ONE))
    driver.tick()
    with pytest.raises(Overloaded, match='too many messages wait for the hook of queue "slow"'):
        send(driver, batch("slow", 1))
    send(driver, batch("other", 1))
    send(driver, batch("plain", 1))


def test_what_waits_when_the_broker_stops_is_refused_and_has_not_happened():
    driver = made(Clock())
    driver.create("slow", script=BY_TENANT)
    answers = send(driver, batch("slow", 400))
    driver.tick()
    driver.engine.finish(driver.now)
    assert isinstance(answers[0], ShuttingDown)
    assert messages_of(driver.queue("slow")) == {}
    assert driver.engine.queued == 0


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from(["s", "t", "plain"]), st.sampled_from("abc")), min_size=1, max_size=9),
            st.sampled_from(["", "p", "q"]),
            st.integers(0, 3),
        ),
        max_size=14,
    ),
    st.sampled_from([0.1, 1, 3, 12]),
)
@settings(max_examples=60, deadline=None)
def test_waiting_changes_no_decision_and_no_order(batches, step_ms):
    """As a broker whose hooks cost nothing: the same answers, and each queue's and each producer's batches in order."""
    driver = made(Clock(step_ms))
    driver.create("s", script=BY_TENANT)
    driver.create("t", script=BY_TENANT.replace("to-", "t-"))
    driver.create("plain", fairness_header="k")
    numbers: dict[str, int] = {}
    sent = []
    for parts, producer, ticks in batches:
        numbers[producer] = numbers.get(producer, 0) + 1
        messages = [incoming(queue, headers={"k": key}) for queue, key in parts]
        answers = send(driver, messages, producer, numbers[producer] if producer else 0)
        sent.append((parts, producer, answers))
        for _ in range(ticks):
            driver.tick()
    for _, _, answers in sent:
        if not answers:
            run(driver, answers)
    assert driver.engine.load().hooks_waiting == driver.engine.queued == 0
    places = {queue: messages_of(driver.queue(queue)) for queue in ("s", "t", "plain")}
    prefix = {"s": "to-", "t": "t-", "plain": ""}
    last: dict[str, int] = {}
    for parts, producer, (outcomes,) in sent:
        for (queue, key), seq in zip(parts, outcomes, strict=True):
            assert places[queue][seq][1] == prefix[queue] + key
        for line in {queue for queue, _ in parts if queue != "plain"} | ({producer} - {""}):
            mine = [seq for (queue, _), seq in zip(parts, outcomes, strict=True) if line in {queue, producer}]
            assert min(mine) > last.get(line, 0)
            last[line] = max(mine)
