"""Trying a script on messages without deciding anything."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fila.core.policy import Placement, Verdict
from fila.lua.hooks import DryRun, DryRunResult

BUDGET_MS = 100
"""How long messages are tried for one call, in all. A thousand take 25 ms with a plain script."""
MAX_WAITING = 16
"""Calls that wait for their turn: scripts are tried one after another."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A message as a script sees it."""

    message_id: str
    headers: Mapping[str, str]
    payload_bytes: int
    attempts: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class TriedMessage:
    """What a script would decide about one message. None where it has no such hook."""

    message_id: str
    on_enqueue: DryRunResult[Placement] | None
    on_failure: DryRunResult[Verdict] | None


def try_on(script: DryRun, subjects: Iterator[Subject], spent_ns: Callable[[], int]) -> Iterator[TriedMessage | None]:
    """The same script on one message after another, in the order in which they would come, at least on the first. When
    the time is over, the next message says so in place of an answer, and is the last.

    Yields None between two calls of hooks, where the caller may let others work.
    """
    ends = spent_ns() + BUDGET_MS * 1_000_000
    for tried, one in enumerate(subjects):
        if tried and spent_ns() >= ends:
            yield _not_tried(script, one, tried)
            return
        placed = judged = None
        if script.has_on_enqueue:
            placed = script.on_enqueue(one.headers, one.payload_bytes)
            yield None
        if script.has_on_failure:
            judged = script.on_failure(one.headers, one.message_id, max(one.attempts, 1), one.error)
            yield None
        yield TriedMessage(one.message_id, placed, judged)


def _not_tried(script: DryRun, one: Subject, tried: int) -> TriedMessage:
    why = f"not tried, nor the messages after it: {tried} dry runs before it took more than {BUDGET_MS} ms"
    return TriedMessage(
        one.message_id,
        DryRunResult(Placement(), why) if script.has_on_enqueue else None,
        DryRunResult(Verdict(), why) if script.has_on_failure else None,
    )
