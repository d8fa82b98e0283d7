"""Scripts, retries, dead letters and limits on a real server, through the SDK."""

import time

import pytest

from fila import Client, FailedPreconditionError, InvalidArgumentError, MessageNotFoundError
from fila.testing import ServerProcess
from tests.e2e.support import Inbox, eventually

BY_TENANT = """
function on_enqueue(msg)
  local plan = fila.get("plan:" .. (msg.headers.tenant or ""))
  return { fairness_key = msg.headers.tenant, weight = plan == "gold" and 5 or 1,
           throttle_keys = { "provider:" .. (msg.headers.provider or "none") },
           priority = tonumber(msg.headers.urgency), cost = msg.payload_size + 1 }
end
"""
THREE_STRIKES = """
function on_failure(msg)
  if msg.attempts >= 3 then return { action = "dlq" } end
  return { action = "retry", delay_ms = msg.attempts * 10 }
end
"""


PATIENT = THREE_STRIKES.replace("msg.attempts >= 3", "msg.attempts >= 3 and not msg.headers.fails")
"""A consumer that leaves may be sent a message again in that moment, and each time counts: not for these."""


def fail_until_dead(client, queue, error="broken"):
    """Nack whatever comes until nothing comes any more."""
    with Inbox(client, queue, on_message=lambda message: message.nack(error)) as inbox:
        eventually(lambda: client.queue_stats(queue).counters.dead_lettered, "a dead letter")
    return len(inbox.messages)


class TestOnEnqueue:
    def test_places_messages_by_their_headers_and_the_runtime_configuration(self, client, queue):
        client.create_queue(queue, script=BY_TENANT)
        client.set_config("plan:acme", "gold")
        client.enqueue(queue, {"tenant": "acme", "provider": "aws", "urgency": "2"}, b"1234")
        client.enqueue(queue, {"tenant": "other"}, b"")
        with Inbox(client, queue) as inbox:
            first, second = sorted(inbox.wait(2), key=lambda message: message.fairness_key)
        told = (first.fairness_key, first.weight, first.throttle_keys, first.priority, first.cost)
        assert told == ("acme", 5, ["provider:aws"], 2, 5)
        assert (second.fairness_key, second.weight, second.priority, second.cost) == ("other", 1, 5, 1)

    def test_a_delay_that_it_decides_is_kept(self, client, queue):
        client.create_queue(queue, script="function on_enqueue(msg) return { delay_ms = 300 } end")
        client.enqueue(queue)
        assert client.queue_stats(queue).summary.delayed == 1
        began = time.monotonic()
        with Inbox(client, queue) as inbox:
            inbox.wait(1)
        assert time.monotonic() - began >= 0.2

    @pytest.mark.parametrize(
        "script, text",
        [
            ("function on_enqueue(", "line 1|:1:"),
            ("x = 1", "on_enqueue|hook"),
            ("function on_enqueue() end\nerror('no')", "no"),
        ],
    )
    def test_a_script_that_cannot_be_used_is_refused_with_the_reason(self, client, queue, script, text):
        with pytest.raises(InvalidArgumentError, match=text):
            client.create_queue(queue, script=script)
        client.create_queue(queue)
        with pytest.raises(InvalidArgumentError, match=text):
            client.update_queue(queue, script=script)
        assert client.queue_stats(queue).config.script == ""

    def test_a_script_that_fails_lets_messages_through_with_safe_defaults(self, client, queue):
        client.create_queue(queue, script="function on_enqueue(msg) while true do end end", script_timeout_ms=5)
        for _ in range(10):
            client.enqueue(queue, {"tenant": "acme"})
        with Inbox(client, queue) as inbox:
            keys = {message.fairness_key for message in inbox.wait(10)}
        assert keys == {"default"}

    def test_a_live_queue_takes_another_script(self, client, queue):
        client.create_queue(queue)
        client.enqueue(queue, {"tenant": "acme"})
        client.update_queue(queue, script=BY_TENANT)
        client.enqueue(queue, {"tenant": "acme"})
        client.update_queue(queue, script="")
        client.enqueue(queue, {"tenant": "acme"})
        with Inbox(client, queue) as inbox:
            keys = [message.fairness_key for message in sorted(inbox.wait(3), key=lambda message: message.id)]
        assert keys == ["default", "acme", "default"]

    def test_a_script_can_be_tried_and_decides_nothing(self, client, queue):
        client.create_queue(queue, script=THREE_STRIKES)
        client.enqueue(queue, {"tenant": "acme", "provider": "aws"}, b"xyz")
        (trial,) = client.try_hook(queue, BY_TENANT, headers={"tenant": "zeta"}, payload_size=9)
        assert (trial.on_enqueue.fairness_key, trial.on_enqueue.cost, trial.on_failure) == ("zeta", 10, None)
        (trial,) = client.try_hook(queue, BY_TENANT, next_messages=5)
        assert (trial.on_enqueue.fairness_key, trial.on_enqueue.cost) == ("acme", 4)
        (trial,) = client.try_hook(queue, attempts=3)
        assert trial.on_failure.dead_letter
        (trial,) = client.try_hook(queue, "function on_enqueue(msg) error('oh no') end")
        assert "oh no" in trial.on_enqueue.error
        assert client.queue_stats(queue).config.script == THREE_STRIKES
        with Inbox(client, queue) as inbox:
            assert inbox.wait(1)[0].fairness_key == "default"


class TestOnFailure:
    def test_three_strikes_and_it_is_dead(self, client, queue):
        client.create_queue(queue, script=THREE_STRIKES)
        sent = client.enqueue(queue, {"a": "1"}, b"payload")
        assert fail_until_dead(client, queue, "no luck") == 3
        with Inbox(client, queue + ".dlq") as inbox:
            (dead,) = inbox.wait(1)
        assert (dead.id, dead.headers, dead.payload, dead.attempt_count) == (sent, {"a": "1"}, b"payload", 3)
        assert (dead.dead_letter.source_queue, dead.dead_letter.reason) == (queue, "on_failure")
        assert [attempt.error for attempt in dead.dead_letter.attempts] == ["no luck"] * 3
        times = [attempt.failed_at for attempt in dead.dead_letter.attempts]
        assert (times[1] - times[0]).total_seconds() >= 0.01
        assert (times[2] - times[1]).total_seconds() >= 0.02

    def test_a_script_that_fails_means_try_again(self, client, queue):
        client.create_queue(queue, script="function on_failure(msg) error('oh no') end")
        client.enqueue(queue)
        with Inbox(client, queue, on_message=lambda message: message.attempt_count > 4 or message.nack()) as inbox:
            inbox.wait(6)


class TestDeadLetters:
    def test_a_queue_says_how_often_and_how_long(self, client, queue):
        client.create_queue(queue, max_attempts=2, retry_delay_ms=30)
        client.enqueue(queue)
        assert fail_until_dead(client, queue) == 2
        stats = client.queue_stats(queue)
        assert (stats.counters.nacked, stats.counters.dead_lettered, stats.summary.depth) == (2, 1, 0)
        assert stats.summary.dead_letter_queue == queue + ".dlq"

    def test_a_message_that_kills_its_consumers_dies_too(self, client, queue):
        client.create_queue(queue, max_attempts=2, visibility_timeout_ms=50)
        client.enqueue(queue)
        with Inbox(client, queue):
            eventually(lambda: client.queue_stats(queue + ".dlq").summary.depth, "a dead letter")

    def test_a_queue_with_dead_letters_is_deleted_by_force_alone(self, client, queue):
        client.create_queue(queue, max_attempts=1)
        client.enqueue(queue)
        fail_until_dead(client, queue)
        with pytest.raises(FailedPreconditionError, match="holds 1 dead letters"):
            client.delete_queue(queue)
        assert client.delete_queue(queue, force=True) == 1

    def test_a_consumer_says_when_to_come_back(self, client, queue):
        client.create_queue(queue)
        client.enqueue(queue)
        delays = iter([200, 0])
        with Inbox(client, queue, on_message=lambda message: message.nack(delay_ms=next(delays, 0))) as inbox:
            inbox.wait(2)
        assert inbox.arrived_at[1] - inbox.arrived_at[0] >= 0.19


class TestLimits:
    def test_messages_come_at_the_rate_that_is_set_and_then_at_another(self, client, queue):
        """Never faster: in any stretch of time no more than the rate allows, and the burst."""
        key = f"throttle.provider:{queue}"
        client.create_queue(queue, throttle_headers=["provider"])
        client.set_config(key, "rate=20,burst=2")
        for _ in range(300):
            client.enqueue(queue, {"provider": queue})
        with Inbox(client, queue, max_in_flight=400) as inbox:
            inbox.wait(20)
            for first, last in ((0, 19), (5, 15), (10, 19)):
                took = inbox.arrived_at[last] - inbox.arrived_at[first]
                assert (last - first) <= took * 20 + 2 + 1, "no more than rate and burst allow"
            client.set_config(key, "rate=1000,burst=10")
            inbox.wait(200)
            client.delete_config(key)
            inbox.wait(300)

    def test_the_strictest_of_several_limits_holds(self, client, queue):
        client.create_queue(queue, throttle_headers=["provider", "region"])
        client.set_config(f"throttle.provider:{queue}", "rate=1000,burst=1000")
        client.set_config(f"throttle.region:{queue}", "rate=0.001,burst=3")
        for _ in range(10):
            client.enqueue(queue, {"provider": queue, "region": queue})
        client.enqueue(queue, {"provider": queue})
        with Inbox(client, queue) as inbox:
            messages = inbox.wait(4)
            assert sorted(len(message.throttle_keys) for message in messages) == [1, 2, 2, 2]
            assert client.queue_stats(queue).summary.depth == 7
        stats = client.queue_stats(queue)
        assert stats.counters.expired == stats.counters.nacked == 0

    def test_a_cap_frees_as_messages_are_settled(self, client, queue):
        client.create_queue(queue, throttle_headers=["tenant"])
        client.set_config(f"throttle.tenant:{queue}", "max_in_flight=2")
        for _ in range(6):
            client.enqueue(queue, {"tenant": queue})
        with Inbox(client, queue) as inbox:
            held = inbox.wait(2)
            assert client.queue_stats(queue).summary.in_flight == 2
            held[0].ack()
            inbox.wait(3)
            held[1].nack()
            inbox.wait(4)
            assert client.queue_stats(queue).summary.in_flight == 2

    @pytest.mark.parametrize("value", ["", "rate=0", "rate=x", "fast", "rate=1,rate=2", "burst=5", "max_in_flight=-1"])
    def test_a_limit_that_is_none_is_refused(self, client, queue, value):
        with pytest.raises(InvalidArgumentError):
            client.set_config(f"throttle.{queue}", value)
        assert client.get_config(f"throttle.{queue}") is None


def test_explain_says_why(client, queue):
    client.create_queue(queue, throttle_headers=["provider"], fairness_header="tenant")
    client.set_config(f"throttle.provider:{queue}", "rate=0.01,burst=1")
    ids = [client.enqueue(queue, {"provider": queue, "tenant": "acme"}) for _ in range(3)]
    assert [reason.code for reason in client.explain(queue).reasons] == ["no_consumer"]
    with Inbox(client, queue) as inbox:
        assert inbox.wait(1)[0].id == ids[0]
        about = client.explain(queue, ids[2])
        assert [reason.code for reason in about.reasons] == ["throttled", "behind_own_key"]
        assert about.reasons[0].setting == f"throttle.provider:{queue}"
        seconds = (about.estimated_at - about.enqueued_at).total_seconds()
        assert 195 < seconds <= 201
        assert client.explain(queue, fairness_key="acme").message_id == ids[1]
        assert client.explain(queue, ids[0]).state == "leased"
    with pytest.raises(MessageNotFoundError):
        client.explain(queue, "018bcfe5-6800-7000-8000-00000000002a")


def test_a_restart_keeps_scripts_limits_delays_attempts_and_dead_letters(tmp_path):
    with ServerProcess(tmp_path) as server:
        with Client(server.addr, timeout=30) as client:
            client.create_queue("q", script=PATIENT, max_attempts=9, throttle_headers=["p"])
            client.set_config("throttle.p:x", "rate=0.001,burst=1")
            client.enqueue("q", {"dies": "yes"})
            fail_until_dead(client, "q")
            client.enqueue("q", delay_ms=600_000)
            for _ in range(3):
                client.enqueue("q", {"p": "x"})
            failed = client.enqueue("q", {"fails": "once"})
            with Inbox(client, "q") as inbox:
                next(m for m in inbox.wait(2) if m.id == failed).nack("first")
                eventually(lambda: client.queue_stats("q").counters.nacked == 4, "the nack")
            eventually(lambda: not client.queue_stats("q").summary.in_flight, "what the consumer held is back")
            (before,) = client.peek("q", message_ids=[failed]).messages
            assert before.attempt_count >= 1
        server.kill()
        server.start()
        with Client(server.addr, timeout=30) as client:
            stats = client.queue_stats("q")
            assert stats.config.script == PATIENT
            assert (stats.config.max_attempts, client.list_config()) == (9, {"throttle.p:x": "rate=0.001,burst=1"})
            with Inbox(client, "q.dlq") as dead, Inbox(client, "q") as inbox:
                assert len(dead.wait(1)[0].dead_letter.attempts) == 3
                eventually(lambda: len(inbox.messages) >= 2, "the failed one and one of the limited")
                assert {m.id: m.attempt_count for m in inbox.messages}[failed] == before.attempt_count
                assert client.queue_stats("q").summary.depth == 3
