"""The hooks of one queue, as the broker sees them: they always answer and never raise.

Rules:
- When a script fails, the answer is the safe default, and the failure is counted by kind.
- Each hook has its own circuit breaker, so that the successes of one do not hide the failures of the other.
- A script that exceeds its time or memory limit is reloaded at its next call and loses its global variables.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Literal, TypeVar

from fila.core.policy import Placement, Verdict
from fila.lua.breaker import CircuitBreaker
from fila.lua.budget import HookBudget
from fila.lua.limits import HookLimits
from fila.lua.runtime import FailureKind, GetConfig, HookFailed, ScriptRuntime

HookName = Literal["on_enqueue", "on_failure"]
#: Called each time a breaker opens, with the queue, the hook, and the kind and text of the last failure. The text comes
#: from the script and may contain anything the script put into it, including header values.
OnOpen = Callable[[str, HookName, FailureKind, str], None]

#: Upper bounds of the histogram of durations. One more bucket, without a bound, counts longer calls.
BUCKETS_US = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
#: Characters kept of an error.
MAX_ERROR = 500

T = TypeVar("T", Placement, Verdict)


@dataclass(slots=True)
class HookStats:
    """Counters of one hook. Callers read them and do not change them."""

    calls: int = 0
    """Bypassed messages are not counted."""
    bypassed: int = 0
    """Messages that took the safe defaults because the breaker was open."""
    failures: dict[FailureKind, int] = field(
        default_factory=lambda: {"error": 0, "timeout": 0, "memory": 0, "bad_return": 0}
    )
    opened: int = 0
    """How often the breaker opened."""
    last_error: str = ""
    last_error_at: int = 0
    durations: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_US) + 1))
    """Calls by duration: one count for each of `BUCKETS_US`, and one for longer calls."""
    duration_us: int = 0
    """The sum over all calls."""


@dataclass(frozen=True, slots=True)
class DryRunResult(Generic[T]):
    """What a hook would decide about a message, or the error with which it would fail."""

    decision: T
    """The safe default if there is an error."""
    error: str = ""
    duration_us: int = 0


class Hooks:
    """The script of a queue, with the counters and the circuit breaker of each hook."""

    def __init__(
        self,
        source: str,
        queue: str,
        limits: HookLimits,
        get_config: GetConfig,
        *,
        on_open: OnOpen | None = None,
        budget: HookBudget | None = None,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """Compile and load the script.

        Raises:
            InvalidArgument: it does not compile, fails while it loads, or defines no hook. The text names the line.
        """
        self.source = source
        self._queue = queue
        self._make = partial(ScriptRuntime, source, queue, limits, get_config)
        self._runtime: ScriptRuntime | None = self._make()
        self.has_on_enqueue: bool = self._runtime.on_enqueue
        self.has_on_failure: bool = self._runtime.on_failure
        self.enqueue_stats, self.failure_stats = HookStats(), HookStats()
        self._enqueue_breaker, self._failure_breaker = (
            CircuitBreaker(limits.breaker_failures, limits.breaker_cooldown_ms) for _ in range(2)
        )
        self._slow = False
        self._budget = budget
        self._on_open = on_open
        self._clock_ns = clock_ns

    def on_enqueue(self, headers: Mapping[str, str], payload_size: int, now_ns: int) -> Placement:
        """Place a message. Returns the safe default if the script has no such hook, fails or is bypassed."""
        if not self.has_on_enqueue:
            return Placement()
        return self._ask("on_enqueue", ScriptRuntime.enqueue, Placement, now_ns, headers, payload_size)

    def on_failure(
        self, headers: Mapping[str, str], message_id: str, attempts: int, error: str, now_ns: int
    ) -> Verdict:
        """Judge a failed message. Returns the safe default if the script has no such hook, fails or is bypassed."""
        if not self.has_on_failure:
            return Verdict()
        return self._ask("on_failure", ScriptRuntime.fail, Verdict, now_ns, headers, message_id, attempts, error)

    def bypassed_until(self, hook: HookName, now_ns: int) -> int:
        """When the bypass of the hook ends; 0 when it is not bypassed."""
        return (self._enqueue_breaker if hook == "on_enqueue" else self._failure_breaker).open_until(now_ns)

    def _ask(self, hook: HookName, ask: Callable[..., T], default: type[T], now_ns: int, *about: object) -> T:
        placing = hook == "on_enqueue"
        stats = self.enqueue_stats if placing else self.failure_stats
        breaker = self._enqueue_breaker if placing else self._failure_breaker
        if not breaker.allows(now_ns):
            stats.bypassed += 1
            return default()
        began = self._clock_ns()
        try:
            decision = ask(self._runtime or self._reload(), *about)
        except Exception as error:  # noqa: BLE001 - a failing hook must not fail the broker
            self._failed(hook, stats, breaker, error, now_ns)
            decision = default()
        else:
            breaker.succeeded()
        self._record(stats, self._clock_ns() - began)
        return decision

    def _reload(self) -> ScriptRuntime:
        self._runtime = runtime = self._make(slow=self._slow)
        return runtime

    def _failed(self, hook: HookName, stats: HookStats, breaker: CircuitBreaker, error: Exception, now_ns: int) -> None:
        kind: FailureKind = "error"
        if isinstance(error, HookFailed):
            kind = error.kind
            if error.exhausted:
                self._runtime = None
                self._slow = self._slow or kind == "timeout"
        stats.failures[kind] += 1
        stats.last_error, stats.last_error_at = str(error)[:MAX_ERROR], now_ns
        if breaker.failed(now_ns):
            stats.opened += 1
            if self._on_open is not None:
                self._on_open(self._queue, hook, kind, stats.last_error)

    def _record(self, stats: HookStats, duration_ns: int) -> None:
        stats.calls += 1
        if self._budget is not None:
            self._budget.spend(duration_ns)
        duration_us = duration_ns // 1000
        stats.duration_us += duration_us
        stats.durations[bisect_right(BUCKETS_US, duration_us)] += 1


class DryRun:
    """A script to try: it has its own runtime, changes no counter and opens no breaker."""

    def __init__(
        self,
        source: str,
        queue: str,
        limits: HookLimits,
        get_config: GetConfig,
        *,
        budget: HookBudget | None = None,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """Compile and load the script.

        Raises:
            InvalidArgument: it does not compile, fails while it loads, or defines no hook. The text names the line.
        """
        self._make = partial(ScriptRuntime, source, queue, limits, get_config)
        self._runtime: ScriptRuntime | None = self._make()
        self.has_on_enqueue: bool = self._runtime.on_enqueue
        self.has_on_failure: bool = self._runtime.on_failure
        self._budget = budget
        self._clock_ns = clock_ns

    def on_enqueue(self, headers: Mapping[str, str], payload_size: int) -> DryRunResult[Placement]:
        """What `on_enqueue` would decide about a message."""
        if not self.has_on_enqueue:
            return DryRunResult(Placement(), "the script defines no on_enqueue")
        return self._try(Placement(), lambda runtime: runtime.enqueue(headers, payload_size))

    def on_failure(
        self, headers: Mapping[str, str], message_id: str, attempts: int, error: str
    ) -> DryRunResult[Verdict]:
        """What `on_failure` would decide about a message."""
        if not self.has_on_failure:
            return DryRunResult(Verdict(), "the script defines no on_failure")
        return self._try(Verdict(), lambda runtime: runtime.fail(headers, message_id, attempts, error))

    def _try(self, default: T, ask: Callable[[ScriptRuntime], T]) -> DryRunResult[T]:
        began = self._clock_ns()
        decision, text = default, ""
        try:
            if self._runtime is None:
                self._runtime = self._make()
            decision = ask(self._runtime)
        except Exception as error:  # noqa: BLE001 - as in Hooks, an error is shown and not raised
            text = str(error)[:MAX_ERROR]
            if isinstance(error, HookFailed) and error.exhausted:
                self._runtime = None
        duration_ns = self._clock_ns() - began
        if self._budget is not None:
            self._budget.spend(duration_ns)
        return DryRunResult(decision, text, duration_ns // 1000)
