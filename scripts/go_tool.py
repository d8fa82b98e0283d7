"""Programs in Go that checks and tests use: built once from the module proxy, into the virtual environment."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

BUILD_TIMEOUT_S = 900
"""The first build fetches and compiles every module that the program uses."""


def build(package: str, version: str) -> Path:
    """The program of `package`. Raises RuntimeError, with one sentence, when it cannot be built."""
    name = next(part for part in reversed(package.split("/")) if not re.fullmatch(r"v\d+", part))  # v2: a major version
    folder = Path(sys.prefix) / f"{name}-{version}"
    program = folder / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run in parallel build it once
        if not program.exists():
            _install(f"{package}@{version}", folder)
    return program


def _install(package: str, folder: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise RuntimeError(f"{package} is a Go program and there is no `go` here: install Go, then run this again")
    built = subprocess.run(
        [go, "install", package],
        env=os.environ | {"GOBIN": str(folder)},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if built.returncode:
        raise RuntimeError(f"cannot build {package}: {built.stderr.strip().splitlines()[-1]}")
