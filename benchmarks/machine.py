"""Where the figures were measured: without it they say nothing."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from fila.config import Config

_LIBRARIES = ("fila", "grpcio", "protobuf", "rocksdict", "uvloop")


def facts() -> dict[str, Any]:
    """The machine, the versions and how the server is set up. Nothing that names the machine or its user."""
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu_model(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in _LIBRARIES},
        "revision": _revision(),
        "durability": Config().storage.durability,
        "load_average": load_average(),
    }


def load_average() -> list[float]:
    return [round(each, 2) for each in os.getloadavg()]


def _revision() -> str | None:
    """The commit that was measured, with `-dirty` if files differ from it; None outside of a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        described = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return described.stdout.strip()


def _cpu_model() -> str:
    try:
        with Path("/proc/cpuinfo").open() as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
