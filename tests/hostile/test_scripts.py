"""Scripts that mean harm, on a real server: compile bombs, slow hooks, trials without end, and memory."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from fila import Client, FilaError, InvalidArgumentError, LimitExceededError, OutgoingMessage
from tests.hostile.support import MIB, MOST_MEMORY

THREADS = 4
BOMBS = {
    "and": "local x = " + "a and " * 10_800 + "a",
    "or": "local x = " + "a or " * 13_000 + "a",
    "elseif": "if a then " + "elseif a then " * 4_600 + "end",
    "break": "while a do " + "break " * 10_800 + "end",
    "load": "local s = 'x' while true do s = s .. s:upper():lower():rep(2) if #s > 90000 then s = 'x' end end",
    "quote": "local s = ('\\1'):rep(90000) while true do string.format('%q', s) end",
}
#: Within the default limit of 10 ms, and far above what thousands of messages could take in one go.
SLOW = "function on_enqueue(msg) for i = 1, 60000 do end return { fairness_key = 'k' .. msg.headers.n } end"
ZEROS = """
function on_enqueue(msg)
  local a, b = ('\\0'):rep(200000), ('\\0'):rep(200000)
  while true do if a < b then end if a < b then end if a < b then end if a < b then end end
end
"""
HOG = """
keep = {}
function on_enqueue(msg)
  while #keep < 9 do keep[#keep + 1] = ('x'):rep(100000) .. #keep end
  return { fairness_key = 'kept' }
end
"""


def outcomes(work, count: int) -> Counter:
    """What became of calls that several threads make."""

    def one(number):
        try:
            work(number)
        except FilaError as error:
            return type(error).__name__
        return "done"

    with ThreadPoolExecutor(THREADS) as threads:
        return Counter(threads.map(one, range(count)))


def keys_of(client: Client, queue: str) -> dict[str, int]:
    return {key.fairness_key: key.pending for key in client.queue_stats(queue, 10_000).keys}


def test_compile_bombs_are_refused_and_nobody_waits_for_them(server, attack):
    with Client(server.addr, timeout=60) as client, attack("compile bombs", "60 scripts of 64 KiB") as run:
        texts = [*BOMBS.values()]
        made = outcomes(lambda n: client.create_queue(f"q{n}", script=texts[n % len(texts)]), 60)
        run.canary.await_calls(20)
    assert made == {"InvalidArgumentError": 60}
    assert run.canary.health.failed == 0
    assert run.growth.most < MOST_MEMORY


def test_a_slow_hook_decides_everything_and_delays_nobody_else(server, attack):
    """As many messages as a minute of its time: those that are answered are decided, the others are told to wait."""
    with Client(server.addr, timeout=60) as client, attack("a slow hook", "600 messages") as run:
        client.create_queue("slow", script=SLOW)
        batches = [
            [OutgoingMessage(b"", {"n": str(number)}) for number in range(start, start + 50)]
            for start in range(0, 600, 50)
        ]
        sent = outcomes(lambda n: client.enqueue_many("slow", batches[n]), len(batches))
        run.canary.await_calls(50)
    assert sent == {"done": len(batches)}
    assert run.canary.health.failed == 0
    with Client(server.addr, timeout=60) as client:
        assert keys_of(client, "slow") == {f"k{number}": 1 for number in range(600)}
        (hook,) = client.queue_stats("slow").hooks
    assert (hook.calls, hook.bypassed, sum(hook.failures.values()), hook.bypassed_until) == (600, 0, 0, None)


def test_trials_without_end_hold_nobody_up(server, attack):
    with Client(server.addr, timeout=60) as client, attack("dry runs of endless hooks", "8 calls") as run:
        client.create_queue("q")
        client.enqueue_many("q", [OutgoingMessage(b"", {"n": "1"}) for _ in range(50)])
        endless = "function on_enqueue() while true do end end function on_failure() while true do end end"
        tried = outcomes(lambda _: client.try_hook("q", endless, next_messages=50), 8)
        run.canary.await_calls(20)
    assert tried == {"done": 8}  # four at a time, and sixteen may wait
    assert run.canary.health.failed == 0


def test_instructions_that_take_long_end_with_the_limit(server, attack):
    with (
        Client(server.addr, timeout=60) as client,
        attack("strings of zeros compared", "20 queues, 100 messages") as run,
    ):
        for number in range(20):
            client.create_queue(f"q{number}", script=ZEROS)
        sent = outcomes(lambda n: client.enqueue(f"q{n % 20}", {"n": "1"}, b""), 100)
        run.canary.await_calls(20)
    assert sent == {"done": 100}
    assert run.canary.health.failed == 0
    with Client(server.addr, timeout=60) as client:
        hooks = [client.queue_stats(f"q{number}").hooks[0] for number in range(20)]
    assert sum(hook.failures["timeout"] for hook in hooks) >= 20
    assert all("time limit" in hook.last_error for hook in hooks)
    assert any(hook.bypassed_until is not None for hook in hooks)


def test_scripts_of_all_queues_share_one_bound_of_memory(server, attack):
    with Client(server.addr, timeout=60) as client, attack("scripts that hold 0.9 MiB", "200 queues") as run:
        made = outcomes(lambda n: client.create_queue(f"q{n}", script=HOG), 200)
        for number in range(200):
            try:
                client.enqueue(f"q{number}", {"n": "1"}, b"")
            except FilaError:
                continue
        run.canary.await_calls(20)
    assert made["done"] < 128
    assert made["done"] + made["LimitExceededError"] == 200
    assert run.growth.most < 160 * MIB
    assert run.canary.health.failed == 0


def test_a_queue_cannot_have_more_than_the_operator_allows(server):
    with Client(server.addr, timeout=60) as client:
        with pytest.raises(
            InvalidArgumentError, match=r"script_timeout_ms must not exceed 10, which is lua\.timeout_ms"
        ):
            client.create_queue("q", script=SLOW, script_timeout_ms=11)
        with pytest.raises(InvalidArgumentError, match=r"which is lua\.memory_bytes"):
            client.create_queue("q", script=SLOW, script_memory_bytes=2 * MIB)
        client.create_queue("q")
        with pytest.raises(LimitExceededError, match="65 headers, 64 are allowed"):
            client.try_hook("q", SLOW, headers={f"h{number}": "x" for number in range(65)})
