"""What a check finds, and how bad it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """The order is that of the report, the worst first."""

    UNSAFE = 0
    """Somebody may read, change or stop what they should not."""
    WARNING = 1
    """It works today, and will fail or is easy to abuse."""
    NOTE = 2
    """A choice to be aware of. It never changes the exit code."""
    SKIPPED = 3
    """Could not be looked at, mostly for lack of a permission."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    severity: Severity
    #: The name of the check, for `--ignore`.
    check: str
    #: What is wrong and what it means.
    text: str
    #: The setting or the command that mends it.
    fix: str


def some(names: Iterable[str], most: int = 5) -> str:
    """The first few of many names."""
    listed = list(names)
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"


def exit_code(findings: Sequence[Finding], *, warnings_fail: bool) -> int:
    """2 if anything is unsafe, 1 for warnings, 0 otherwise."""
    found = {finding.severity for finding in findings}
    if Severity.UNSAFE in found:
        return 2
    return 1 if Severity.WARNING in found and warnings_fail else 0
