"""Trying a script on messages without deciding anything."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fila.core.policy import Placement, Verdict
from fila.lua.hooks import DryRun, Trial

BUDGET_MS = 100
"""How long messages are tried in one call: everybody else waits for it. A thousand take 25 ms with a plain script."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A message as a script sees it."""

    message_id: str
    headers: Mapping[str, str]
    payload_bytes: int
    attempts: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class HookTrial:
    """What a script would decide about one message. None where it has no such hook."""

    message_id: str
    on_enqueue: Trial[Placement] | None
    on_failure: Trial[Verdict] | None


def try_on(
    script: DryRun, subjects: Iterator[Subject], clock_ns: Callable[[], int] = time.perf_counter_ns
) -> Iterator[HookTrial]:
    """The same script on one message after another, in the order in which they would come, at least on the first. When
    the time is over, the next message says so in place of an answer, and is the last.
    """
    ends = clock_ns() + BUDGET_MS * 1_000_000
    for tried, one in enumerate(subjects):
        if tried and clock_ns() >= ends:
            yield _not_tried(script, one, tried)
            return
        placed = script.on_enqueue(one.headers, one.payload_bytes) if script.has_on_enqueue else None
        judged = None
        if script.has_on_failure:
            judged = script.on_failure(one.headers, one.message_id, max(one.attempts, 1), one.error)
        yield HookTrial(one.message_id, placed, judged)


def _not_tried(script: DryRun, one: Subject, tried: int) -> HookTrial:
    why = f"not tried, nor what comes after it: trying {tried} before it took more than {BUDGET_MS} ms"
    return HookTrial(
        one.message_id,
        Trial(Placement(), why) if script.has_on_enqueue else None,
        Trial(Verdict(), why) if script.has_on_failure else None,
    )
