"""The hooks of one queue, as the broker sees them: they always answer, and never raise.

Rules:
- Whatever goes wrong in a script, the answer is the safe default and the failure is counted by its kind.
- Each hook has a breaker of its own, so that one that works does not hide one that fails.
- A script that reached a limit starts afresh at its next call: what it had kept is gone, and with it what made it fail.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Literal, TypeVar

from fila.core.policy import Placement, Verdict
from fila.lua.breaker import Breaker
from fila.lua.budget import HookBudget
from fila.lua.engine import Engine, FailureKind, GetConfig, HookFailed
from fila.lua.limits import HookLimits

HookName = Literal["on_enqueue", "on_failure"]
#: Told once each time a breaker opens: queue, hook, and kind and text of the failure that opened it. The text is the
#: script's own and may hold whatever the script put into it, header values included.
OnOpen = Callable[[str, HookName, FailureKind, str], None]

#: Upper bounds of the histogram of durations. The last bucket, which has none, holds what took longer.
BUCKETS_US = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
#: Characters of an error that are kept.
MAX_ERROR = 500

T = TypeVar("T", Placement, Verdict)


@dataclass(slots=True)
class HookStats:
    """What a hook has done so far. Read it, do not change it."""

    calls: int = 0
    """Not counting those that were bypassed."""
    bypassed: int = 0
    """Messages that took the defaults because the breaker was open."""
    failures: dict[FailureKind, int] = field(
        default_factory=lambda: {"error": 0, "timeout": 0, "memory": 0, "bad_return": 0}
    )
    opened: int = 0
    """How often the breaker opened."""
    last_error: str = ""
    last_error_at: int = 0
    durations: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_US) + 1))
    """Calls by duration, see `BUCKETS_US`."""
    duration_us: int = 0
    """Of all calls together."""


@dataclass(frozen=True, slots=True)
class Trial(Generic[T]):
    """What a hook would decide, or why it would decide nothing."""

    decision: T
    """The safe default if there is an error."""
    error: str = ""
    duration_us: int = 0


class Hooks:
    """The script of a queue."""

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
            InvalidArgument: it does not compile, fails while it is loaded, or defines no hook. Says the line.
        """
        self.source = source
        self._queue = queue
        self._make = partial(Engine, source, queue, limits, get_config)
        self._engine: Engine | None = self._make()
        self.has_on_enqueue: bool = self._engine.on_enqueue
        self.has_on_failure: bool = self._engine.on_failure
        self.enqueue_stats, self.failure_stats = HookStats(), HookStats()
        self._enqueue_breaker, self._failure_breaker = (
            Breaker(limits.breaker_failures, limits.breaker_cooldown_ms) for _ in range(2)
        )
        self._slow = False
        self._budget = budget
        self._on_open = on_open
        self._clock_ns = clock_ns

    def on_enqueue(self, headers: Mapping[str, str], payload_size: int, now_ns: int) -> Placement:
        """Where a message stands. The safe default if the script has no such hook, fails or is bypassed."""
        if not self.has_on_enqueue:
            return Placement()
        stats, breaker = self.enqueue_stats, self._enqueue_breaker
        if not breaker.allows(now_ns):
            stats.bypassed += 1
            return Placement()
        began = self._clock_ns()
        try:
            placement = (self._engine or self._afresh()).enqueue(headers, payload_size)
        except Exception as error:  # noqa: BLE001 - a hook never hurts the broker
            self._failed("on_enqueue", stats, breaker, error, now_ns)
            placement = Placement()
        else:
            breaker.succeeded()
        self._took(stats, self._clock_ns() - began)
        return placement

    def on_failure(
        self, headers: Mapping[str, str], message_id: str, attempts: int, error: str, now_ns: int
    ) -> Verdict:
        """What becomes of a failed message. The safe default if the script has no such hook, fails or is bypassed."""
        if not self.has_on_failure:
            return Verdict()
        stats, breaker = self.failure_stats, self._failure_breaker
        if not breaker.allows(now_ns):
            stats.bypassed += 1
            return Verdict()
        began = self._clock_ns()
        try:
            verdict = (self._engine or self._afresh()).fail(headers, message_id, attempts, error)
        except Exception as failure:  # noqa: BLE001 - a hook never hurts the broker
            self._failed("on_failure", stats, breaker, failure, now_ns)
            verdict = Verdict()
        else:
            breaker.succeeded()
        self._took(stats, self._clock_ns() - began)
        return verdict

    def bypassed_until(self, hook: HookName, now_ns: int) -> int:
        """Until when the hook is bypassed; 0 when it is not."""
        return (self._enqueue_breaker if hook == "on_enqueue" else self._failure_breaker).open_until(now_ns)

    def _afresh(self) -> Engine:
        self._engine = engine = self._make(slow=self._slow)
        return engine

    def _failed(self, hook: HookName, stats: HookStats, breaker: Breaker, error: Exception, now_ns: int) -> None:
        kind: FailureKind = "error"
        if isinstance(error, HookFailed):
            kind = error.kind
            if error.exhausted:
                self._engine = None
                self._slow = self._slow or kind == "timeout"
        stats.failures[kind] += 1
        stats.last_error, stats.last_error_at = str(error)[:MAX_ERROR], now_ns
        if breaker.failed(now_ns):
            stats.opened += 1
            if self._on_open is not None:
                self._on_open(self._queue, hook, kind, stats.last_error)

    def _took(self, stats: HookStats, duration_ns: int) -> None:
        stats.calls += 1
        if self._budget is not None:
            self._budget.spend(duration_ns)
        duration_us = duration_ns // 1000
        stats.duration_us += duration_us
        stats.durations[bisect_right(BUCKETS_US, duration_us)] += 1


class DryRun:
    """A script that decides nothing: it has a runtime of its own, counts nothing and opens no breaker."""

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
            InvalidArgument: it does not compile, fails while it is loaded, or defines no hook. Says the line.
        """
        self._make = partial(Engine, source, queue, limits, get_config)
        self._engine: Engine | None = self._make()
        self.has_on_enqueue: bool = self._engine.on_enqueue
        self.has_on_failure: bool = self._engine.on_failure
        self._budget = budget
        self._clock_ns = clock_ns

    def on_enqueue(self, headers: Mapping[str, str], payload_size: int) -> Trial[Placement]:
        """What `on_enqueue` says about a message."""
        if not self.has_on_enqueue:
            return Trial(Placement(), "the script defines no on_enqueue")
        return self._tried(Placement(), lambda engine: engine.enqueue(headers, payload_size))

    def on_failure(self, headers: Mapping[str, str], message_id: str, attempts: int, error: str) -> Trial[Verdict]:
        """What `on_failure` says about a message."""
        if not self.has_on_failure:
            return Trial(Verdict(), "the script defines no on_failure")
        return self._tried(Verdict(), lambda engine: engine.fail(headers, message_id, attempts, error))

    def _tried(self, default: T, ask: Callable[[Engine], T]) -> Trial[T]:
        began = self._clock_ns()
        decision, text = default, ""
        try:
            if self._engine is None:
                self._engine = self._make()
            decision = ask(self._engine)
        except Exception as error:  # noqa: BLE001 - as in Hooks: whatever goes wrong is shown, not raised
            text = str(error)[:MAX_ERROR]
            if isinstance(error, HookFailed) and error.exhausted:
                self._engine = None
        duration_ns = self._clock_ns() - began
        if self._budget is not None:
            self._budget.spend(duration_ns)
        return Trial(decision, text, duration_ns // 1000)
