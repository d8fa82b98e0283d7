"""Files that appear when they are complete."""

from __future__ import annotations

import os
from pathlib import Path


class Draft:
    """A temporary file beside the target, removed unless it has replaced the target."""

    def __init__(self, file: Path) -> None:
        self._path = file.with_name(f".{file.name}.{os.getpid()}.part")

    def __enter__(self) -> Path:
        return self._path

    def __exit__(self, *_: object) -> None:
        self._path.unlink(missing_ok=True)
