"""What a Lua hook adds to a message: the call alone in this process, and in the server beside one without a hook."""

import time
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks import clients
from benchmarks.clients import KEY_HEADER
from benchmarks.harness import QUEUE, ClientProcess, fresh_server, run_together
from benchmarks.stats import percentile
from benchmarks.workloads.base import Figure, Goal, Run, Workload
from fila.core.policy import DEFAULT_KEY, Placement
from fila.lua.hooks import Hooks
from fila.lua.limits import HookLimits

MESSAGE_ID = "018f0c5e-7a3b-7000-8000-000000000001"
HEADERS = {"tenant": "acme", "region": "eu-central-1"}
SCRIPT = """
function on_enqueue(msg)
  local tenant, region = msg.headers.tenant, msg.headers.region
  return { fairness_key = tenant, weight = region == "eu-central-1" and 2 or 1 }
end

function on_failure(msg)
  if msg.attempts >= 5 or string.find(msg.error, "invalid", 1, true) then
    return { action = "dlq" }
  end
  return { action = "retry", delay_ms = 1000 * 2 ^ msg.attempts }
end
"""


def _without(headers: Mapping[str, str], _size: int, _now_ns: int) -> Placement:
    """The same decision, written where no script is: the cost that a hook comes on top of."""
    return Placement(headers.get("tenant", DEFAULT_KEY), 2 if headers["region"] == "eu-central-1" else 1)


def _calls(ask: Callable[[], object], count: int) -> tuple[list[int], float]:
    """What each call took in ns, and the processor time of all in us per call, which other processes do not add to."""
    clock = time.perf_counter_ns
    took = [0] * count
    cpu = time.thread_time_ns()
    for index in range(count):
        began = clock()
        ask()
        took[index] = clock() - began
    return took, (time.thread_time_ns() - cpu) / count / 1000


def _sample(run: Run) -> Mapping[str, float]:
    count = run.scale.lua_calls
    hooks = Hooks(SCRIPT, "bench", HookLimits.of(), lambda _key: None)
    enqueue = partial(hooks.on_enqueue, HEADERS, 1024, 0)
    failure = partial(hooks.on_failure, HEADERS, MESSAGE_ID, 1, "timeout", 0)
    for ask in (enqueue, failure):
        _calls(ask, count // 10)
    run.say(f"{count:,} messages without a hook")
    without, without_cpu_us = _calls(partial(_without, HEADERS, 1024, 0), count)
    run.say(f"{count:,} messages with a hook")
    took, cpu_us = _calls(enqueue, count)
    run.say(f"{count:,} failures with a hook")
    failed, failed_cpu_us = _calls(failure, count)
    for stats in (hooks.enqueue_stats, hooks.failure_stats):
        if sum(stats.failures.values()):
            raise RuntimeError(f"the hook failed: {stats.last_error}")
    return {
        "failure_cpu_us": failed_cpu_us,
        "failure_p50_us": percentile(failed, 50) / 1000,
        "failure_p99_us": percentile(failed, 99) / 1000,
        "overhead_cpu_us": cpu_us - without_cpu_us,
        "overhead_us": (sum(took) - sum(without)) / count / 1000,
        "p50_us": percentile(took, 50) / 1000,
        "p99_us": percentile(took, 99) / 1000,
        "without_cpu_us": without_cpu_us,
        "ratio": cpu_us / without_cpu_us,
    }


LUA = Workload(
    name="lua",
    title="Lua hooks",
    setting=lambda s: (
        f"{s.lua_calls:,} calls of an on_enqueue that reads two headers, and of an on_failure that reads attempts and "
        "error, in one process"
    ),
    figures=(
        Figure("overhead_cpu_us", "more processor time per message, mean", "us", Goal("<", 8)),
        Figure("overhead_us", "more time per message, mean", "us"),
        Figure("p50_us", "on_enqueue, p50", "us"),
        Figure("p99_us", "on_enqueue, p99", "us", Goal("<", 50)),
        Figure("failure_p50_us", "on_failure, p50", "us"),
        Figure("failure_p99_us", "on_failure, p99", "us", Goal("<", 50)),
        Figure("failure_cpu_us", "on_failure, processor time, mean", "us"),
        Figure("without_cpu_us", "the same decision without a hook", "us"),
        Figure("ratio", "with a hook against without", "times"),
    ),
    sample=_sample,
)

BY_KEY = f"""
function on_enqueue(msg)
  return {{ fairness_key = msg.headers.{KEY_HEADER}, weight = msg.headers.w and 2 or 1 }}
end
"""


def _in_server(run: Run) -> Mapping[str, float]:
    variants: dict[str, dict[str, str]] = {"header": {"fairness_header": KEY_HEADER}, "script": {"script": BY_KEY}}
    in_turn = list(variants) if run.index % 2 == 0 else list(reversed(variants))
    messages = run.scale.fair_messages
    cpu_us: dict[str, float] = {}
    for variant in in_turn:
        with fresh_server(**variants[variant]) as server:
            run.say(f"enqueueing {messages:,} messages, fairness key by {variant}")
            args = (server.addr, QUEUE, messages, run.scale.payload_bytes, 10)
            measured = run_together(server.pid, [ClientProcess(clients.produce, *args)])
        cpu_us[variant] = measured.server_cpu_s / messages * 1e6
    return {
        "overhead_us": cpu_us["script"] - cpu_us["header"],
        "header_us": cpu_us["header"],
        "script_us": cpu_us["script"],
        "ratio": cpu_us["script"] / cpu_us["header"],
    }


HOOKS = Workload(
    name="hooks",
    title="enqueue with a script",
    setting=lambda s: (
        f"{s.fair_messages:,} x {s.payload_bytes} B of 10 tenants, fairness key by a script that reads two headers and "
        "by a header, in alternating order"
    ),
    figures=(
        Figure("overhead_us", "more server CPU per message", "us", Goal("<", 8)),
        Figure("ratio", "server CPU with a script against without", "times"),
        Figure("header_us", "server CPU per message, by header", "us"),
        Figure("script_us", "server CPU per message, by script", "us"),
    ),
    sample=_in_server,
)
