"""What another script would decide, beside what the present one does. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from fila.client import HookTrial


@dataclass(frozen=True, slots=True)
class Difference:
    """One message, about which the scripts decide differently: what, before, after."""

    message_id: str
    changes: tuple[tuple[str, str, str], ...]


def differences(before: Sequence[HookTrial], after: Sequence[HookTrial]) -> list[Difference]:
    """Those messages that both were tried on and that would fare differently."""
    old = {trial.message_id: trial for trial in before}
    found = []
    for trial in after:
        if trial.message_id in old:
            changes = tuple(_changes(old[trial.message_id], trial))
            if changes:
                found.append(Difference(trial.message_id, changes))
    return found


def errors(trials: Sequence[HookTrial]) -> list[str]:
    """What went wrong while trying, each text once."""
    texts = [
        decision.error
        for trial in trials
        for decision in (trial.on_enqueue, trial.on_failure)
        if decision is not None and decision.error
    ]
    return list(dict.fromkeys(texts))


def _changes(old: HookTrial, new: HookTrial) -> list[tuple[str, str, str]]:
    found = []
    for hook in ("on_enqueue", "on_failure"):
        was, now = _told(getattr(old, hook)), _told(getattr(new, hook))
        for name in sorted(was.keys() | now.keys()):
            if was.get(name, _NOTHING) != now.get(name, _NOTHING):
                title = f"{hook}: {name.replace('_', ' ')}"
                found.append((title, was.get(name, _NOTHING), now.get(name, _NOTHING)))
    return found


_NOTHING = "default"


def _told(decision: Any) -> dict[str, str]:
    if decision is None:
        return {}
    told = {}
    for each in fields(decision):
        value = getattr(decision, each.name)
        if isinstance(value, tuple):
            value = ", ".join(value) or None
        told[each.name] = _NOTHING if value in (None, "") else str(value)
    return told
