"""Throttles in the broker: from the headers of a message to its delivery, through failures and restarts."""

import pytest

from fila.broker.commands import SetConfig
from fila.core.errors import InvalidArgument
from tests.helpers.broker import MS, Driver, incoming

QUEUES = {"fairness_header": "tenant", "throttle_headers": ("provider", "region"), "cost_header": "cost"}


@pytest.fixture
def driver():
    driver = Driver()
    driver.create("q", **QUEUES)
    return driver


def limit(driver, key, value):
    driver.ask(lambda reply: SetConfig(f"throttle.{key}", value, reply))


def lanes_of(driver):
    """What waits where: fairness key, priority and throttle keys of each lane, its messages and their costs."""
    return {
        (key.name, lane.priority, *(throttle.name for throttle in lane.throttles)): (
            lane.waiting(),
            dict(key.special.costs or {}),
        )
        for key in driver.queue("q").keys.values()
        for lane in key.lanes.values()
    }


def send(driver, count=1, queue="q", **headers):
    outcomes = driver.enqueue(*[incoming(queue, b"x", headers=headers) for _ in range(count)])
    driver.settle_down()
    return outcomes


def test_messages_go_out_at_their_rate(driver):
    """Burst first, then one for every token, and the broker wakes up for each by itself (story 4.2, criterion 8)."""
    limit(driver, "provider:aws", "rate=10,burst=2")
    one = driver.join("q")
    send(driver, 6, provider="aws")
    assert len(one.take()) == 2
    for _ in range(4):
        assert driver.engine.next_wakeup() == driver.now + 100_000_000
        driver.advance(99)
        assert one.take() == []
        driver.advance(1)
        assert len(one.take()) == 1


def test_a_new_rate_is_in_force_on_the_next_tick(driver):
    """Raised, lowered, taken away, without a restart (story 4.3)."""
    limit(driver, "provider:aws", "rate=0.001,burst=1")
    one = driver.join("q")
    send(driver, 30, provider="aws")
    assert len(one.take()) == 1
    limit(driver, "provider:aws", "rate=1000,burst=5")
    driver.advance(5)
    assert len(one.take()) == 5
    limit(driver, "provider:aws", None)
    driver.settle_down()
    assert len(one.take()) == 24


def test_a_bad_limit_changes_nothing(driver):
    """It is refused in words, and the old one stays."""
    limit(driver, "provider:aws", "rate=1,burst=1")
    with pytest.raises(InvalidArgument, match="rate must be a positive number"):
        limit(driver, "provider:aws", "rate=-5")
    one = driver.join("q")
    send(driver, 3, provider="aws")
    assert len(one.take()) == 1


@pytest.mark.parametrize("end", ["ack", "nack", "expiry", "consumer loss", "dead letter", "delete"])
def test_an_in_flight_cap_frees_however_a_lease_ends(end):
    """The next message goes out, of whatever queue."""
    driver = Driver()
    driver.create("q", **QUEUES, max_attempts=1 if end == "dead letter" else 0)
    driver.create("other", **QUEUES)
    limit(driver, "provider:aws", "max_in_flight=1")
    one, other = driver.join("q", 1), driver.join("other")
    send(driver, 1, provider="aws")
    send(driver, 1, "other", provider="aws")
    (held,) = one.take()
    assert other.got == []
    match end:
        case "ack":
            driver.ack("q", held.id)
        case "nack" | "dead letter":
            driver.nack("q", held.id, delay_ms=60_000)
        case "expiry":
            one.consumer.busy = True
            driver.advance(30_000)
        case "consumer loss":
            driver.leave(one)
        case "delete":
            driver.delete("q", force=True)
    driver.settle_down()
    assert len(other.take()) == 1
    assert driver.state.throttles.find("provider:aws").in_flight == 1


def test_a_place_is_kept_for_the_key_that_waits_longest(driver):
    """Also when another key has its turn first and there is no credit for both: that one goes on with what needs no
    place.
    """
    limit(driver, "provider:aws", "max_in_flight=1")
    one = driver.join("q", 1)
    first, second = send(driver, 2, provider="aws", tenant="x")
    other = driver.join("q", 1)
    send(driver, 1, tenant="w")
    assert (one.seqs, len(other.take())) == ([first], 1)
    (held,) = one.take()
    late, free = (send(driver, 1, tenant="y", **headers)[0] for headers in ({"provider": "aws"}, {}))
    passed = []
    for _ in range(3):
        driver.ack("q", held.id)
        driver.settle_down()
        (held,) = one.take()
        passed.append(held.seq)
    assert passed == [free, second, late]


def test_extending_a_lease_keeps_its_place(driver):
    """A message that stays in flight is counted once."""
    limit(driver, "provider:aws", "max_in_flight=1")
    one = driver.join("q")
    send(driver, 2, provider="aws")
    (held,) = one.take()
    driver.extend("q", held.id)
    driver.settle_down()
    assert one.take() == []
    assert driver.state.throttles.find("provider:aws").in_flight == 1
    driver.ack("q", held.id)
    driver.settle_down()
    assert len(one.take()) == 1


def test_what_was_in_flight_before_a_restart_is_counted_after_it(driver):
    """And throttle keys, costs, limits and lanes are as before."""
    limit(driver, "provider:aws", "max_in_flight=2")
    limit(driver, "region:eu", "rate=1,burst=4")
    one = driver.join("q")
    send(driver, 4, provider="aws")
    send(driver, 3, region="eu", cost="3")
    first, _, _ = one.take()
    before = lanes_of(driver)
    driver.restart()
    assert lanes_of(driver) == before
    assert driver.state.throttles.find("provider:aws").in_flight == 2
    assert driver.state.throttles.find("region:eu").in_flight == 1
    two = driver.join("q")
    driver.settle_down()
    assert len(two.take()) == 1  # the bucket is full again; the cap is not free
    driver.ack("q", first.id)
    driver.settle_down()
    assert len(two.take()) == 1


def test_being_held_back_uses_up_nothing(driver):
    """No attempt, no lease, no credit of the consumer."""
    limit(driver, "provider:aws", "rate=1,burst=1")
    one = driver.join("q", 2)
    send(driver, 5, provider="aws")
    assert len(one.take()) == 1
    assert one.consumer.credit == 1
    assert len(driver.queue("q").leases) == 1
    assert driver.queue("q").attempts == {}
    send(driver, 1)
    assert len(one.take()) == 1


def test_a_failed_write_spends_nothing(driver):
    """Tokens and places in flight are as before, and the next try delivers."""
    limit(driver, "provider:aws", "rate=1,burst=2,max_in_flight=3")
    send(driver, 5, provider="aws")
    one = driver.join("q")
    driver.store.failing = True
    driver.tick()
    throttle = driver.state.throttles.find("provider:aws")
    assert one.got == []
    assert throttle.room(driver.now) == 2
    assert throttle.in_flight == 0
    driver.store.failing = False
    driver.advance(1000)
    assert len(one.take()) == 2


def test_a_failed_write_wakes_the_others_that_wait(driver):
    """What one queue gave back is there for another that had waited for it."""
    driver.create("other", **QUEUES)
    limit(driver, "provider:aws", "rate=0.001,burst=1")
    send(driver, 1, "q", provider="aws")
    other = driver.join("other")
    send(driver, 2, "other", provider="aws")
    assert len(other.take()) == 1
    one = driver.join("q")
    driver.store.failing = True
    driver.now += 1_000_000 * MS
    driver.tick()
    assert driver.store.refused == 1
    driver.store.failing = False
    driver.leave(one)
    driver.advance(1000)
    assert len(one.take()) == 0
    assert len(other.take()) == 1


def test_a_queue_without_consumers_holds_nothing_back(driver):
    """Tokens that nobody takes there are taken elsewhere, and the broker does not wake up for it again and again."""
    driver.create("other", **QUEUES)
    limit(driver, "provider:aws", "rate=10,burst=1")
    gone = driver.join("q")
    send(driver, 3, provider="aws")
    assert len(gone.take()) == 1
    driver.leave(gone)
    driver.settle_down()
    one = driver.join("other")
    send(driver, 5, "other", provider="aws")
    for _ in range(5):
        driver.advance(100)
    assert len(one.take()) == 5
    driver.advance(10_000)
    assert driver.state.throttles.next_wakeup() is None


def test_queues_take_turns_at_a_throttle(driver):
    """Also when one of them has plenty of other work."""
    driver.create("other", **QUEUES)
    limit(driver, "provider:aws", "rate=10,burst=1")
    one, other = driver.join("q", 10_000), driver.join("other", 10_000)
    for queue in ("q", "other"):
        send(driver, 100, queue, provider="aws")
    throttled = {"q": 0, "other": 0}
    for _ in range(40):
        send(driver, 3, "q")
        driver.advance(100)
        throttled["q"] += len(one.take()) - 3
        throttled["other"] += len(other.take())
    assert sum(throttled.values()) in {40, 41}
    assert abs(throttled["q"] - throttled["other"]) <= 2


def test_keys_that_wait_leave_with_their_messages(driver):
    """When all is acked, nothing of it is remembered."""
    limit(driver, "provider:aws", "rate=100,burst=1")
    one = driver.join("q")
    for number in range(20):
        send(driver, 1, provider="aws", tenant=f"t{number}")
    for _ in range(40):
        driver.advance(10)
        driver.ack("q", *[each.id for each in one.take()])
    driver.advance(1000)
    assert len(driver.queue("q").keys) <= 1  # the last one passes through the ring at the next delivery
    assert driver.queue("q").drr.parked == 0
    assert driver.queue("q").drr.lines.all() == []
    assert driver.state.throttles.next_wakeup() is None


def test_dead_letters_are_not_held_back():
    """Neither when they die nor after a restart, and they take no tokens."""
    driver = Driver()
    driver.create("q", **QUEUES, max_attempts=1)
    limit(driver, "provider:aws", "rate=0.001,burst=3")
    one = driver.join("q")
    send(driver, 3, provider="aws")
    for each in one.take():
        driver.nack("q", each.id)
    dead = driver.join("q.dlq")
    driver.settle_down()
    assert len(dead.take()) == 3
    driver.restart()
    limit(driver, "provider:aws", "max_in_flight=1")
    dead = driver.join("q.dlq")
    driver.advance(60_000)
    assert len(dead.take()) == 3
    assert driver.state.throttles.find("provider:aws").in_flight == 0


def test_many_held_back_keys_do_not_fill_a_tick(driver):
    """A queue with more of them than one look takes on is looked at again."""
    limit(driver, "provider:aws", "max_in_flight=1")
    driver.enqueue(*[incoming("q", b"x", headers={"tenant": f"t{number}", "provider": "aws"}) for number in range(500)])
    for batch in range(4):
        driver.enqueue(
            *[incoming("q", b"x", headers={"tenant": f"u{batch}{number}", "provider": "aws"}) for number in range(500)]
        )
    driver.enqueue(incoming("q", b"x", headers={"tenant": "free"}))
    one = driver.join("q")
    driver.settle_down()
    assert len(one.take()) == 2
    assert driver.queue("q").drr.parked == 2499
    assert driver.queue("q").active_keys == 2499
