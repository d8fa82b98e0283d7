"""Whose turn it is: shares by weight, quiet tenants, one key alone."""

from collections import Counter
from itertools import islice

import pytest

from fila import OutgoingMessage
from tests.e2e.support import Inbox, contents, payloads, take


def backlog(client, queue, counts, weights=None):
    """Enqueue so many messages for each tenant, each with its tenant's weight."""
    for tenant, count in counts.items():
        headers = {"tenant": tenant, "weight": str((weights or {}).get(tenant, 1))}
        client.enqueue_many(queue, (OutgoingMessage(b"%d" % number, headers) for number in range(count)))


def deliveries(client, queue, count):
    """The fairness keys of the next deliveries, each message acked, at most 500 in flight."""
    keys = []
    with client.consume_batches(queue, max_in_flight=500) as consumer:
        for batch in consumer:
            client.ack_many(batch)
            keys += [message.fairness_key for message in batch]
            if len(keys) >= count:
                return keys[:count]
    raise AssertionError(f"the consumer ended after {len(keys)} messages")


@pytest.mark.parametrize("quantum", [None, 1, 10])
def test_shares_follow_weights_within_one_percent(client, queue, quantum):
    """Over 10,000 deliveries of six backlogged keys each gets its weight's part of the whole."""
    client.create_queue(queue, fairness_header="tenant", weight_header="weight", quantum=quantum)
    weights = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 1}
    total = sum(weights.values())
    counted = 10_000
    backlog(client, queue, {key: counted * weight // total + 600 for key, weight in weights.items()}, weights)
    delivered = deliveries(client, queue, counted)
    left = {key.fairness_key: key.pending for key in client.queue_stats(queue).keys}
    assert all(left[key] > 0 for key in weights), "a key ran empty: nothing was measured"
    for window in (delivered, delivered[: counted // 2], delivered[counted // 2 :]):
        shares = {key: count / len(window) for key, count in Counter(window).items()}
        for key, weight in weights.items():
            assert abs(shares[key] - weight / total) < 0.01, (key, shares)


def test_three_equal_keys_get_a_third_each(client, queue):
    """However unequal the backlogs are."""
    client.create_queue(queue, fairness_header="tenant")
    backlog(client, queue, {"large": 4000, "medium": 1500, "small": 1100})
    shares = Counter(deliveries(client, queue, 3000))
    assert all(abs(shares[key] / 3000 - 1 / 3) < 0.01 for key in ("large", "medium", "small")), shares


def test_an_exhausted_key_leaves_and_the_others_go_on(client, queue):
    """Its share falls to those that still have something; when it comes back it takes part again."""
    client.create_queue(queue, fairness_header="tenant")
    backlog(client, queue, {"short": 100, "long": 500, "longer": 900})
    with client.consume(queue, max_in_flight=1) as consumer:

        def serve(count):
            keys = []
            for message in islice(consumer, count):
                message.ack()
                keys.append(message.fairness_key)
            return Counter(keys)

        together = serve(330)
        assert together["short"] == 100
        without = serve(400)
        assert without["short"] == 0
        assert abs(without["long"] - without["longer"]) <= 8
        backlog(client, queue, {"short": 100})
        again = serve(300)
        assert all(80 <= again[key] <= 120 for key in ("short", "long", "longer")), again
        assert serve(570)["longer"] > 400
    assert contents(client, queue) == (0, 0, 0)


def test_a_single_key_is_a_fifo(client, queue):
    """Without fairness keys messages are delivered in the order in which they came."""
    client.create_queue(queue)
    backlog(client, queue, {"ignored": 1000})
    assert payloads(take(client, queue, 1000)) == [b"%d" % number for number in range(1000)]


def test_every_key_is_a_fifo(client, queue):
    """Fair turns do not change the order inside a key."""
    client.create_queue(queue, fairness_header="tenant", weight_header="weight")
    backlog(client, queue, {"a": 500, "b": 500, "c": 500}, {"a": 1, "b": 2, "c": 7})
    seen = {}
    for message in take(client, queue, 1500):
        seen.setdefault(message.fairness_key, []).append(int(message.payload))
    assert seen == {key: list(range(500)) for key in "abc"}


def test_a_quiet_tenant_is_served_within_a_hundred_deliveries(client, queue):
    """Behind a backlog of 20,000 a tenant with one message waits for almost nobody, each time it sends one."""
    client.create_queue(queue, fairness_header="tenant", weight_header="weight")
    backlog(client, queue, {"noisy": 20_000}, {"noisy": 5})
    waits = {}
    asked = None
    with client.consume(queue, max_in_flight=10) as consumer:
        for number, message in enumerate(islice(consumer, 2000)):
            message.ack()
            if message.fairness_key != "noisy":
                waits[int(message.payload)] = number - asked
                asked = None
            elif asked is None:
                client.enqueue(queue, {"tenant": f"quiet-{len(waits) % 3}"}, b"%d" % len(waits))
                asked = number
            if len(waits) == 10:
                break
    assert len(waits) == 10
    assert max(waits.values()) <= 100, waits
    assert contents(client, queue)[0] > 18_000


def test_many_quiet_tenants_do_not_starve_the_backlogged_one(client, queue):
    """Sparse keys go first, but not all of them before everybody else."""
    client.create_queue(queue, fairness_header="tenant")
    backlog(client, queue, {"noisy": 2000})
    backlog(client, queue, {f"quiet-{number}": 1 for number in range(400)})
    first = [message.fairness_key for message in take(client, queue, 600, max_in_flight=1)]
    assert first[:400].count("noisy") >= 10
    assert sum(key != "noisy" for key in first) == 400


def test_a_weight_holds_from_the_next_message_on(client, queue):
    """A tenant whose later messages say another weight is served by that one."""
    client.create_queue(queue, fairness_header="tenant", weight_header="weight")
    backlog(client, queue, {"a": 1500, "b": 3000})
    backlog(client, queue, {"b": 1}, {"b": 3})
    shares = Counter(deliveries(client, queue, 2000))
    assert abs(shares["b"] / 2000 - 3 / 4) < 0.02, shares


def test_a_key_that_is_throttled_by_its_consumer_does_not_hold_up_the_others(client, queue):
    """Held messages of one key use up credit, not turns: the others are delivered to whoever has room."""
    client.create_queue(queue, fairness_header="tenant")
    backlog(client, queue, {"slow": 50, "fast": 50})
    with Inbox(client, queue, max_in_flight=10, auto_extend=True) as stuck:
        stuck.wait(10)
        keys = [message.fairness_key for message in take(client, queue, 90)]
    assert Counter(keys) + Counter(message.fairness_key for message in stuck.messages) == {"slow": 50, "fast": 50}
