"""The reports of pipelines in a folder: HTML files that people open. Nothing outside the folder is read."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fila.console.limits import MAX_REPORT_BYTES, MAX_REPORTS

_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Report:
    """One report."""

    name: str
    size: int
    changed_at: datetime


def reports(folder: Path) -> list[Report]:
    """The newest first. Hidden folders are left out."""
    found: list[Report] = []
    for root, folders, files in os.walk(folder):
        inside = Path(root).relative_to(folder)
        folders[:] = sorted(each for each in folders if not each.startswith(".") and len(inside.parts) < _DEPTH)
        for name in sorted(files):
            path = Path(root) / name
            if name.endswith(".html") and not path.is_symlink() and len(found) < MAX_REPORTS:
                about = path.stat()
                changed_at = datetime.fromtimestamp(about.st_mtime, UTC)
                found.append(Report((inside / name).as_posix(), about.st_size, changed_at))
    return sorted(found, key=lambda each: each.changed_at, reverse=True)


def read_report(folder: Path, name: str) -> bytes | None:
    """The bytes of a report that `reports` lists; None for anything else, and for one that is too large."""
    if not any(each.name == name and each.size <= MAX_REPORT_BYTES for each in reports(folder)):
        return None
    return (folder / name).read_bytes()[: MAX_REPORT_BYTES + 1]
