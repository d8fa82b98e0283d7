"""Small file systems, for tests of what a full disk does."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk_at(path: Path, mib: int = 24) -> Iterator[Path]:
    """A file system of so many MiB. The test is skipped where none can be mounted."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(path)]
    if (
        os.geteuid() != 0
        or shutil.which("mount") is None
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        pytest.skip("a full disk needs a small file system, and mounting one needs root")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
