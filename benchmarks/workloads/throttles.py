"""What throttling costs, what waiting costs, and whether a rate is kept."""

import time
from collections.abc import Callable, Mapping

from benchmarks import clients
from benchmarks.clients import KEY_HEADER
from benchmarks.harness import QUEUE, ClientProcess, Gate, cpu_s, fresh_server, rss_bytes, run_together
from benchmarks.stats import percentile
from benchmarks.workloads.base import Figure, Goal, Run, Workload
from fila import Client
from fila.core.fair_key import FairKey
from fila.core.lane import new_lane
from fila.core.lines import Lines, Trace
from fila.core.throttle import Limit, ThrottleManager, TokenBucket

_PROVIDER, _REGION = "provider", "region"
_WARM_UP_S = 1.0
_SETTLE_S = 60
_MB = 1_000_000


def _decision(run: Run) -> Mapping[str, float]:
    run.say(f"{run.scale.decisions:,} decisions, no server")
    outcome = run_together(None, [ClientProcess(decide, run.scale.decisions)]).clients[0]
    figures: Mapping[str, float] = outcome.result
    return figures


def decide(gate: Gate, count: int) -> dict[str, float]:
    """CPU time of one decision: a bucket alone, half of the answers being no; and all that the scheduler does for a
    message that passes, asking all of its throttles and then charging them. Messages of a batch share one decision.
    """
    throttles = ThrottleManager()
    lines, trace = Lines(QUEUE, throttles), Trace()
    for name in (_PROVIDER, _REGION):
        throttles.set(name, Limit(rate=1e9, burst=1e9), 0)
    key = FairKey("tenant")
    bucket = TokenBucket(rate=500_000, burst=1, now=0)

    def scheduler(*names: str) -> Callable[[int], object]:
        lane = new_lane(key, 5, (b"", b""), throttles.find_all(names))

        def decision(now: int) -> None:
            if lines.admit(key, lane, lane.throttles, 1, now, trace):
                for throttle in lane.throttles:
                    throttle.charge(1, 1)

        return decision

    with gate:
        return {
            "bucket_us": _per_call_us(lambda now: bucket.try_consume(1, now), count),
            "one_key_us": _per_call_us(scheduler(_PROVIDER), count),
            "two_keys_us": _per_call_us(scheduler(_PROVIDER, _REGION), count),
        }


def _per_call_us(call: Callable[[int], object], count: int) -> float:
    began = time.process_time_ns()
    for now in range(0, 1000 * count, 1000):
        call(now)
    return (time.process_time_ns() - began) / count / 1000


def _parked(run: Run) -> Mapping[str, float]:
    figures: dict[str, float] = {}
    # A machine that gets slower or faster during a run must not favour one side.
    for parked in (0, run.scale.parked_keys)[:: 1 if run.index % 2 == 0 else -1]:
        measured = _beside(run, parked)
        figures |= {f"{'parked' if parked else 'free'}_{name}": value for name, value in measured.items()}
    figures["p50_ratio"] = figures["parked_p50_ms"] / figures["free_p50_ms"]
    figures["p99_ratio"] = figures["parked_p99_ms"] / figures["free_p99_ms"]
    return figures


def _beside(run: Run, parked: int) -> dict[str, float]:
    """An idle server, then one with a trickle of unthrottled messages, beside keys that wait for one bucket."""
    scale = run.scale
    warm_up = int(scale.latency_per_s * _WARM_UP_S)
    count = warm_up + int(scale.latency_per_s * scale.latency_seconds)
    with fresh_server(fairness_header=KEY_HEADER, throttle_headers=[_PROVIDER]) as server:
        if parked:
            run.say(f"parking {parked:,} keys")
            with Client(server.addr) as client:
                client.set_config(f"throttle.{_PROVIDER}:x", "rate=0.001,burst=1")
            clients.fill_keys(server.addr, QUEUE, parked, 100, {_PROVIDER: "x"})
            clients.first_message(server.addr, QUEUE)  # takes the only token; it comes back and waits with the others
        run.say(f"idle beside {parked:,} parked keys")
        with Client(server.addr) as client, client.consume(QUEUE):
            _settle(server.pid)
            before, began = cpu_s(server.pid), time.monotonic()
            time.sleep(scale.idle_seconds)
            idle = (cpu_s(server.pid) - before) / (time.monotonic() - began) * 100
        run.say(f"an unthrottled key beside {parked:,} parked ones")
        consumer = ClientProcess(clients.consume_and_time, server.addr, QUEUE, count)
        producer = ClientProcess(
            clients.produce_at_rate, server.addr, QUEUE, count, scale.payload_bytes, scale.latency_per_s
        )
        measured = run_together(server.pid, [consumer, producer])
        rss = rss_bytes(server.pid)
    delivered = [1000 * each for each in measured.clients[0].result[warm_up:]]
    return {
        "idle_percent": idle,
        "p50_ms": percentile(delivered, 50),
        "p99_ms": percentile(delivered, 99),
        "server_cpu_us": measured.server_cpu_s / count * 1e6,
        "rss_mb": rss / _MB,
    }


def _settle(pid: int) -> None:
    """Wait until the server has looked at every key once: parking them is work, waiting is not."""
    for _ in range(_SETTLE_S):
        before = cpu_s(pid)
        time.sleep(1)
        if cpu_s(pid) - before < 0.05:
            return


def _rates(run: Run) -> Mapping[str, float]:
    rate = run.scale.rate_per_s
    single = _delivered_at(run, {_PROVIDER: f"rate={rate:g},burst=10"})
    both = _delivered_at(run, {_PROVIDER: f"rate={3 * rate:g},burst=10", _REGION: f"rate={rate:g},burst=10"})
    return {
        "single_per_s": single,
        "single_error_percent": abs(single / rate - 1) * 100,
        "hierarchical_per_s": both,
        "hierarchical_error_percent": abs(both / rate - 1) * 100,
    }


def _delivered_at(run: Run, limits: Mapping[str, str]) -> float:
    """Messages a second that pass, after the burst has."""
    scale = run.scale
    backlog = int(scale.rate_per_s * (scale.rate_seconds + 10 * _WARM_UP_S))
    with fresh_server(fairness_header=KEY_HEADER, throttle_headers=list(limits)) as server:
        with Client(server.addr) as client:
            for header, limit in limits.items():
                client.set_config(f"throttle.{header}:x", limit)
        clients.fill(server.addr, QUEUE, backlog, scale.payload_bytes, dict.fromkeys(limits, "x"))
        run.say(f"{' and '.join(limits.values())} for {scale.rate_seconds:g} s")
        consumer = ClientProcess(clients.consume_for, server.addr, QUEUE, _WARM_UP_S + scale.rate_seconds)
        times: list[float] = run_together(server.pid, [consumer]).clients[0].result
    return sum(1 for each in times if each > _WARM_UP_S) / scale.rate_seconds


DECISION = Workload(
    name="throttle_decision",
    title="throttle decision",
    setting=lambda s: f"{s.decisions:,} decisions in one process, CPU time",
    figures=(
        Figure("bucket_us", "try_consume of a bucket", "us", Goal("<", 1)),
        Figure("one_key_us", "scheduler, one throttle key", "us", Goal("<", 1)),
        Figure("two_keys_us", "scheduler, two throttle keys", "us"),
    ),
    sample=_decision,
)

PARKED = Workload(
    name="parked",
    title="keys that wait for a throttle",
    setting=lambda s: (
        f"{s.parked_keys:,} fairness keys that wait for one bucket, a consumer that waits; idle for {s.idle_seconds:g} "
        f"s, then {s.latency_per_s:g} msg/s of another key for {s.latency_seconds:g} s; the same without them"
    ),
    figures=(
        Figure("parked_idle_percent", "CPU of an idle server", "% of a core", Goal("<", 2)),
        Figure("free_idle_percent", "without parked keys", "% of a core"),
        Figure("p50_ratio", "latency p50 beside them, against without", "x"),
        Figure("p99_ratio", "latency p99 beside them, against without", "x"),
        Figure("parked_p50_ms", "p50 beside them", "ms", shown=False),
        Figure("free_p50_ms", "p50 without", "ms", shown=False),
        Figure("parked_p99_ms", "p99 beside them", "ms", shown=False),
        Figure("free_p99_ms", "p99 without", "ms", shown=False),
        Figure("parked_server_cpu_us", "server CPU per message beside them", "us", shown=False),
        Figure("free_server_cpu_us", "server CPU per message without", "us", shown=False),
        Figure("parked_rss_mb", "RSS with them", "MB", shown=False),
        Figure("free_rss_mb", "RSS without", "MB", shown=False),
    ),
    sample=_parked,
)

RATES = Workload(
    name="rates",
    title="rate accuracy",
    setting=lambda s: (
        f"{s.rate_per_s:g} messages a second for {s.rate_seconds:g} s after the burst; hierarchical: below a limit of "
        f"{3 * s.rate_per_s:g}"
    ),
    figures=(
        Figure("single_error_percent", "error, one throttle key", "%", Goal("<=", 2)),
        Figure("hierarchical_error_percent", "error, two throttle keys", "%", Goal("<=", 2)),
        Figure("single_per_s", "delivered, one throttle key", "msg/s", shown=False),
        Figure("hierarchical_per_s", "delivered, two throttle keys", "msg/s", shown=False),
    ),
    sample=_rates,
)
