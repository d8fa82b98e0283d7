"""How much each workload does: in full for figures, small for a check that everything still runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Counts and sizes. The defaults are those that figures are published for."""

    messages: int = 200_000
    payload_bytes: int = 1024
    #: Unsettled messages that the consumers of throughput workloads may hold.
    max_in_flight: int = 4000
    one_by_one_messages: int = 5000
    latency_seconds: float = 10.0
    latency_per_s: float = 500.0
    fair_messages: int = 100_000
    fair_keys: tuple[int, ...] = (1, 10, 1_000, 10_000)
    fair_rounds: int = 3
    recovery_messages: int = 1_000_000
    recovery_payload_bytes: int = 100
    #: Fairness keys with one message each.
    lone_keys: int = 100_000
    #: Messages and their payload.
    capacity: tuple[tuple[int, int], ...] = ((1_000_000, 100), (200_000, 1024), (20_000, 10_240))
    quiet_backlog: int = 20_000
    #: Deliveries between two quiet tenants.
    quiet_every: int = 500
    quiet_in_flight: int = 16
    share_weights: tuple[int, ...] = (1, 2, 3, 4, 5)
    #: Deliveries over which shares are taken; the backlogs outlast them.
    share_messages: int = 60_000
    lua_calls: int = 200_000
    decisions: int = 300_000
    #: Fairness keys that wait for one throttle.
    parked_keys: int = 100_000
    idle_seconds: float = 10.0
    rate_per_s: float = 200.0
    rate_seconds: float = 10.0
    floor_seconds: float = 1.5


FULL = Scale()

QUICK = Scale(
    messages=20_000,
    one_by_one_messages=500,
    latency_seconds=2.0,
    fair_messages=10_000,
    fair_rounds=1,
    recovery_messages=50_000,
    lone_keys=10_000,
    capacity=((20_000, 100), (10_000, 1024), (2_000, 10_240)),
    quiet_backlog=5_000,
    share_messages=6_000,
    lua_calls=20_000,
    decisions=20_000,
    parked_keys=2_000,
    idle_seconds=1.0,
    rate_seconds=2.0,
    floor_seconds=0.5,
)
