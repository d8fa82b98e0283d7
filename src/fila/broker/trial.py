"""Trying a script on messages without deciding anything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fila.core.policy import Placement, Verdict
from fila.lua.hooks import DryRun, Trial


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


def try_on(script: DryRun, subjects: Iterator[Subject]) -> Iterator[HookTrial]:
    """The same script on one message after another, in the order in which they would come."""
    for one in subjects:
        placed = script.on_enqueue(one.headers, one.payload_bytes) if script.has_on_enqueue else None
        judged = None
        if script.has_on_failure:
            judged = script.on_failure(one.headers, one.message_id, max(one.attempts, 1), one.error)
        yield HookTrial(one.message_id, placed, judged)
