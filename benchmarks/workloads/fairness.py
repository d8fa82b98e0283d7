"""What fair scheduling costs, and whether it is fair."""

from collections.abc import Mapping, Sequence

from benchmarks import clients
from benchmarks.clients import KEY_HEADER, WEIGHT_HEADER
from benchmarks.harness import QUEUE, ClientProcess, fresh_server, run_together
from benchmarks.scale import FULL, Scale
from benchmarks.stats import percentile, share_error_percent
from benchmarks.workloads.base import Figure, Goal, Run, Workload

_BOTH = (True, False)
_FREE = Goal("<", 5)


#: What is compared: whether a queue is fair, how many keys its messages have, and whether all are there beforehand.
_Case = tuple[bool, int, bool]


def _cost(run: Run) -> Mapping[str, float]:
    keys = run.scale.fair_keys
    cases = _cases(keys)
    # A machine that gets slower or faster during a run must not favour one end of the list.
    in_turn = cases if run.index % 2 == 0 else cases[::-1]
    # The least of several rounds: what others take away on the machine only ever adds, and more than what is measured.
    rounds = [{case: _cost_of(run, *case) for case in in_turn} for _ in range(run.scale.fair_rounds)]
    cpu_us = {case: min(each[case][0] for each in rounds) for case in cases}
    per_s = {case: max(each[case][1] for each in rounds) for case in cases}
    figures: dict[str, float] = {}
    one_key = (True, keys[0], True)
    for count in keys:
        drain = (True, count, True)
        figures[f"keys_{count}_messages_per_s"] = per_s[drain]
        figures[f"keys_{count}_server_cpu_us"] = cpu_us[drain]
        figures[f"keys_{count}_cpu_cost_percent"] = (cpu_us[drain] / cpu_us[one_key] - 1) * 100
        figures[f"keys_{count}_time_cost_percent"] = (per_s[one_key] / per_s[drain] - 1) * 100
    for count in keys[1:]:
        for stored, work in ((True, "drain"), (False, "lifecycle")):
            fair, fifo = (True, count, stored), (False, count, stored)
            figures[f"fifo_{work}_{count}_server_cpu_us"] = cpu_us[fifo]
            figures[f"fifo_{work}_{count}_cpu_cost_percent"] = (cpu_us[fair] / cpu_us[fifo] - 1) * 100
            figures[f"fifo_{work}_{count}_time_cost_percent"] = (per_s[fifo] / per_s[fair] - 1) * 100
    return figures


def _cases(keys: Sequence[int]) -> list[_Case]:
    return [(True, keys[0], True), *((fair, count, stored) for count in keys[1:] for stored in _BOTH for fair in _BOTH)]


def _cost_of(run: Run, fair: bool, keys: int, stored: bool) -> tuple[float, float]:
    """Server CPU a message, and messages a second. The messages are the same whether or not the queue is fair: one that
    reads no header is a FIFO.
    """
    scale = run.scale
    messages = scale.fair_messages
    with fresh_server(**({"fairness_header": KEY_HEADER} if fair else {})) as server:
        kind = "fair" if fair else "FIFO"
        producer = ClientProcess(clients.produce, server.addr, QUEUE, messages, scale.payload_bytes, keys)
        if stored:
            run.say(f"filling {keys:,} keys with {messages:,} messages, {kind}")
            run_together(server.pid, [producer])
        run.say(f"{'draining' if stored else 'enqueueing and consuming'} {keys:,} keys, {kind}")
        consumer = ClientProcess(clients.consume, server.addr, QUEUE, messages, scale.max_in_flight)
        measured = run_together(server.pid, [consumer] if stored else [producer, consumer])
    return measured.server_cpu_s / messages * 1e6, messages / measured.seconds


def _cost_figures(scale: Scale) -> tuple[Figure, ...]:
    first, *others = scale.fair_keys
    figures = [
        Figure(f"keys_{first}_messages_per_s", f"drain, {first:,} key", "msg/s"),
        Figure(f"keys_{first}_server_cpu_us", f"server CPU per message, {first:,} key", "us"),
    ]
    for keys in others:
        figures += [
            Figure(f"keys_{keys}_cpu_cost_percent", f"more server CPU than one key, {keys:,} keys", "%"),
            Figure(f"keys_{keys}_time_cost_percent", f"more time, {keys:,} keys", "%"),
            Figure(f"keys_{keys}_messages_per_s", f"drain, {keys:,} keys", "msg/s", shown=False),
            Figure(f"keys_{keys}_server_cpu_us", f"server CPU per message, {keys:,} keys", "us", shown=False),
        ]
    for work in ("drain", "lifecycle"):
        for keys in others:
            name = f"fifo_{work}_{keys}"
            figures += [
                Figure(f"{name}_cpu_cost_percent", f"more server CPU than a FIFO, {work}, {keys:,} keys", "%", _FREE),
                Figure(f"{name}_time_cost_percent", f"more time, {work}, {keys:,} keys", "%", _FREE),
                Figure(
                    f"{name}_server_cpu_us", f"server CPU per message, FIFO, {work}, {keys:,} keys", "us", shown=False
                ),
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
    title="fair scheduling against one key and against a FIFO",
    setting=lambda s: (
        f"drain of {s.fair_messages:,} x {s.payload_bytes} B spread over "
        f"{', '.join(f'{keys:,}' for keys in s.fair_keys)} keys in turn, and of the same messages in a queue that "
        f"reads no header; the same enqueued, delivered and acked at once; the least of {s.fair_rounds} rounds"
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
