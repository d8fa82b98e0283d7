"""What fair scheduling costs, and whether it is fair."""

from collections.abc import Mapping

from benchmarks import clients
from benchmarks.clients import KEY_HEADER, WEIGHT_HEADER
from benchmarks.harness import QUEUE, ClientProcess, fresh_server, run_together
from benchmarks.scale import FULL, Scale
from benchmarks.stats import percentile, share_error_percent
from benchmarks.workloads.base import Figure, Goal, Run, Workload


def _cost(run: Run) -> Mapping[str, float]:
    keys = run.scale.fair_keys
    # A machine that gets slower or faster during a run must not favour one end of the list.
    in_turn = keys if run.index % 2 == 0 else tuple(reversed(keys))
    # The least of several rounds: what others take away on the machine only ever adds, and more than what is measured.
    rounds = [{count: _drain_of_keys(run, count) for count in in_turn} for _ in range(run.scale.fair_rounds)]
    cpu_us = {count: min(each[count][0] for each in rounds) for count in keys}
    per_s = {count: max(each[count][1] for each in rounds) for count in keys}
    figures: dict[str, float] = {}
    for count in keys:
        figures[f"keys_{count}_messages_per_s"] = per_s[count]
        figures[f"keys_{count}_server_cpu_us"] = cpu_us[count]
        figures[f"keys_{count}_cpu_cost_percent"] = (cpu_us[count] / cpu_us[keys[0]] - 1) * 100
        figures[f"keys_{count}_time_cost_percent"] = (per_s[keys[0]] / per_s[count] - 1) * 100
    return figures


def _drain_of_keys(run: Run, keys: int) -> tuple[float, float]:
    scale = run.scale
    messages = scale.fair_messages
    with fresh_server(fairness_header=KEY_HEADER) as server:
        run.say(f"filling {keys:,} keys with {messages:,} messages")
        producer = ClientProcess(clients.produce, server.addr, QUEUE, messages, scale.payload_bytes, keys)
        run_together(server.pid, [producer])
        run.say(f"draining {keys:,} keys")
        consumer = ClientProcess(clients.consume, server.addr, QUEUE, messages, scale.max_in_flight)
        measured = run_together(server.pid, [consumer])
    return measured.server_cpu_s / messages * 1e6, messages / measured.seconds


def _cost_figures(scale: Scale) -> tuple[Figure, ...]:
    first, *others = scale.fair_keys
    figures = [
        Figure(f"keys_{first}_messages_per_s", f"drain, {first:,} key", "msg/s"),
        Figure(f"keys_{first}_server_cpu_us", f"server CPU per message, {first:,} key", "us"),
    ]
    for keys in others:
        figures += [
            Figure(f"keys_{keys}_cpu_cost_percent", f"more server CPU, {keys:,} keys", "%", Goal("<", 5)),
            Figure(f"keys_{keys}_time_cost_percent", f"more time, {keys:,} keys", "%"),
            Figure(f"keys_{keys}_messages_per_s", f"drain, {keys:,} keys", "msg/s", shown=False),
            Figure(f"keys_{keys}_server_cpu_us", f"server CPU per message, {keys:,} keys", "us", shown=False),
        ]
    return tuple(figures)


def _quiet(run: Run) -> Mapping[str, float]:
    scale = run.scale
    with fresh_server(fairness_header=KEY_HEADER) as server:
        run.say(f"a backlog of {scale.quiet_backlog:,} messages")
        clients.fill(server.addr, QUEUE, scale.quiet_backlog, scale.payload_bytes, {KEY_HEADER: "noisy"})
        run.say(f"a quiet tenant every {scale.quiet_every:,} deliveries")
        args = (scale.quiet_backlog // 2, scale.quiet_every, scale.quiet_in_flight)
        consumer = ClientProcess(clients.consume_with_quiet_tenants, server.addr, QUEUE, *args)
        waits: list[float] = run_together(server.pid, [consumer]).clients[0].result
    return {"median_deliveries": percentile(waits, 50), "max_deliveries": max(waits), "tenants": len(waits)}


def _shares(run: Run) -> Mapping[str, float]:
    scale = run.scale
    weights = {f"weight-{weight}": weight for weight in scale.share_weights}
    whole = sum(weights.values())
    with fresh_server(fairness_header=KEY_HEADER, weight_header=WEIGHT_HEADER) as server:
        run.say(f"a backlog for each of the weights {', '.join(map(str, scale.share_weights))}")
        for key, weight in weights.items():
            # A tenth more than its share of the deliveries, so that no key runs empty while shares are taken.
            backlog = scale.share_messages * weight * 11 // (whole * 10) + 1
            headers = {KEY_HEADER: key, WEIGHT_HEADER: str(weight)}
            clients.fill(server.addr, QUEUE, backlog, scale.payload_bytes, headers)
        run.say(f"{scale.share_messages:,} deliveries at full speed")
        args = (server.addr, QUEUE, scale.share_messages, scale.max_in_flight)
        consumer = ClientProcess(clients.consume_keys, *args)
        order: list[str] = run_together(server.pid, [consumer]).clients[0].result
    return {"share_error_percent": share_error_percent(order, weights)}


FAIR_COST = Workload(
    name="fair_cost",
    title="fair scheduling against one key",
    setting=lambda s: (
        f"drain of {s.fair_messages:,} x {s.payload_bytes} B spread over "
        f"{', '.join(f'{keys:,}' for keys in s.fair_keys)} keys in turn, the least of {s.fair_rounds} rounds"
    ),
    figures=_cost_figures(FULL),
    sample=_cost,
)

QUIET = Workload(
    name="quiet_tenant",
    title="quiet tenant behind a backlog",
    setting=lambda s: (
        f"backlog of {s.quiet_backlog:,}, a new tenant with one message every {s.quiet_every:,} deliveries, "
        f"{s.quiet_in_flight} in flight"
    ),
    figures=(
        Figure("median_deliveries", "deliveries until served, median", "deliveries"),
        Figure("max_deliveries", "deliveries until served, worst", "deliveries", Goal("<=", 100)),
        Figure("tenants", "quiet tenants", "tenants", shown=False),
    ),
    sample=_quiet,
)

SHARES = Workload(
    name="shares",
    title="share accuracy",
    setting=lambda s: f"weights {min(s.share_weights)} to {max(s.share_weights)}, {s.share_messages:,} deliveries",
    figures=(Figure("share_error_percent", "largest error of a share", "%", Goal("<=", 1)),),
    sample=_shares,
)
