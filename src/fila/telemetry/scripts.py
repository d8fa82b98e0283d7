"""Samples of the hooks of a queue.

A queue gets new hooks when its script changes, and these count from nothing. What the old ones counted is added, so
that no counter goes down.
"""

from collections.abc import Iterator

from fila.broker.queue import QueueState
from fila.lua.hooks import BUCKETS_US, HookName, Hooks, HookStats
from fila.metrics.metric import Distribution, Samples
from fila.telemetry import catalog


class ScriptTally:
    """Counts what the hooks of one queue do, over all of its scripts."""

    def __init__(self) -> None:
        self._hooks: Hooks | None = None
        self._past: dict[HookName, HookStats] = {}

    def collect(self, samples: Samples, queue: QueueState, now: int) -> None:
        if queue.hooks is not self._hooks:
            for hook, stats in _stats(self._hooks):
                self._past[hook] = _sum(stats, self._past.get(hook))
            self._hooks = queue.hooks
        present = {hook: _sum(stats, self._past.get(hook)) for hook, stats in _stats(self._hooks)}
        for hook, stats in (self._past | present).items():
            labels = (queue.name, hook)
            spread = Distribution(BUCKETS_US, tuple(stats.durations), stats.duration_us)
            samples[catalog.LUA_DURATION].append((labels, spread))
            samples[catalog.LUA_BREAKER].append((labels, stats.opened))
            samples[catalog.LUA_BYPASSED].append((labels, stats.bypassed))
            is_open = queue.hooks is not None and hook in present and queue.hooks.bypassed_until(hook, now) > 0
            samples[catalog.LUA_OPEN].append((labels, int(is_open)))
            for kind, count in stats.failures.items():
                samples[catalog.LUA_ERRORS].append(((*labels, kind), count))


def _stats(hooks: Hooks | None) -> Iterator[tuple[HookName, HookStats]]:
    if hooks is not None and hooks.has_on_enqueue:
        yield "on_enqueue", hooks.enqueue_stats
    if hooks is not None and hooks.has_on_failure:
        yield "on_failure", hooks.failure_stats


def _sum(stats: HookStats, past: HookStats | None) -> HookStats:
    if past is None:
        past = HookStats()
    return HookStats(
        calls=stats.calls + past.calls,
        bypassed=stats.bypassed + past.bypassed,
        failures={kind: count + past.failures[kind] for kind, count in stats.failures.items()},
        opened=stats.opened + past.opened,
        durations=[sum(pair) for pair in zip(stats.durations, past.durations, strict=True)],
        duration_us=stats.duration_us + past.duration_us,
    )
