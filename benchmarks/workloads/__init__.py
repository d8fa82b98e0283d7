"""All workloads, in the order in which they run."""

from benchmarks.workloads.base import Workload
from benchmarks.workloads.capacity import CAPACITY
from benchmarks.workloads.console import CONSOLE
from benchmarks.workloads.fairness import FAIR_COST, QUIET, SHARES
from benchmarks.workloads.journal import JOURNAL
from benchmarks.workloads.latency import LATENCY
from benchmarks.workloads.ledger import LEDGER
from benchmarks.workloads.lua import HOOKS, LUA
from benchmarks.workloads.recovery import KEY_MEMORY, RECOVERY
from benchmarks.workloads.security import SECURITY
from benchmarks.workloads.telemetry import TELEMETRY
from benchmarks.workloads.throttles import DECISION, PARKED, RATES
from benchmarks.workloads.throughput import DRAIN, ENQUEUE, LIFECYCLE, ONE_BY_ONE

WORKLOADS: tuple[Workload, ...] = (
    ENQUEUE,
    DRAIN,
    LIFECYCLE,
    ONE_BY_ONE,
    LATENCY,
    FAIR_COST,
    QUIET,
    SHARES,
    LUA,
    HOOKS,
    LEDGER,
    JOURNAL,
    TELEMETRY,
    SECURITY,
    RECOVERY,
    KEY_MEMORY,
    CAPACITY,
    DECISION,
    PARKED,
    RATES,
    CONSOLE,
)
