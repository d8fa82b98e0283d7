"""What pending messages cost in memory, and how soon a killed server delivers again."""

import time
from collections.abc import Mapping

from benchmarks import clients
from benchmarks.clients import KEY_HEADER
from benchmarks.harness import QUEUE, ClientProcess, cpu_s, fresh_server, rss_bytes, run_together
from benchmarks.workloads.base import Figure, Goal, Run, Workload

_MB = 1_000_000
_FEW_KEYS = 10


def _recovery(run: Run) -> Mapping[str, float]:
    scale = run.scale
    count = scale.recovery_messages
    with fresh_server() as server:
        empty = rss_bytes(server.pid)
        run.say(f"enqueueing {count:,} messages")
        producer = ClientProcess(clients.produce, server.addr, QUEUE, count, scale.recovery_payload_bytes)
        run_together(server.pid, [producer])
        before = rss_bytes(server.pid)
        run.say("kill -9 and restart")
        server.kill()
        began = time.monotonic()
        server.start()
        serving = time.monotonic()
        clients.first_message(server.addr, QUEUE)
        consumable = time.monotonic()
        spent = cpu_s(server.pid)
        after = rss_bytes(server.pid)
    return {
        "rss_empty_mb": empty / _MB,
        "rss_before_mb": before / _MB,
        "rss_after_mb": after / _MB,
        "rss_bytes_per_message": (after - empty) / count,
        "serving_s": serving - began,
        "consumable_s": consumable - began,
        "consumable_cpu_s": spent,
    }


def _key_memory(run: Run) -> Mapping[str, float]:
    count = run.scale.lone_keys
    rss = {keys: _rss_of_keys(run, keys) for keys in (_FEW_KEYS, count)}
    return {
        "rss_bytes_per_key": (rss[count] - rss[_FEW_KEYS]) / count,
        "rss_mb": rss[count] / _MB,
        "rss_few_mb": rss[_FEW_KEYS] / _MB,
    }


def _rss_of_keys(run: Run, keys: int) -> int:
    count = run.scale.lone_keys
    with fresh_server(fairness_header=KEY_HEADER) as server:
        run.say(f"enqueueing {count:,} messages of {keys:,} keys")
        producer = ClientProcess(clients.produce, server.addr, QUEUE, count, run.scale.recovery_payload_bytes, keys)
        run_together(server.pid, [producer])
        return rss_bytes(server.pid)


RECOVERY = Workload(
    name="recovery",
    title="restart after kill -9",
    setting=lambda s: (
        f"{s.recovery_messages:,} pending x {s.recovery_payload_bytes} B, from process start to a message in hand"
    ),
    figures=(
        Figure("consumable_s", "first message after", "s", Goal("<", 3)),
        Figure("consumable_cpu_s", "server CPU until then", "s"),
        Figure("rss_before_mb", "RSS before", "MB", Goal("<=", 250)),
        Figure("rss_after_mb", "RSS after", "MB", Goal("<=", 250)),
        Figure("rss_bytes_per_message", "RSS growth per pending message", "B", Goal("<=", 100)),
        Figure("rss_empty_mb", "RSS of an empty server", "MB", shown=False),
        Figure("serving_s", "reports that it is serving after", "s", shown=False),
    ),
    sample=_recovery,
)

KEY_MEMORY = Workload(
    name="key_memory",
    title="memory of a fairness key",
    setting=lambda s: (
        f"{s.lone_keys:,} keys with one message of {s.recovery_payload_bytes} B each, beside as many messages of "
        f"{_FEW_KEYS} keys"
    ),
    figures=(
        Figure("rss_bytes_per_key", "RSS of a key with one message", "B", Goal("<=", 600)),
        Figure("rss_mb", "RSS", "MB"),
        Figure("rss_few_mb", f"RSS, {_FEW_KEYS} keys", "MB", shown=False),
    ),
    sample=_key_memory,
)
