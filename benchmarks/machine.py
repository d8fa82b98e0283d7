"""Where the figures were measured: without it they say nothing."""

import os
import platform
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
        "durability": Config().storage.durability,
        "load_average": load_average(),
    }


def load_average() -> list[float]:
    return [round(each, 2) for each in os.getloadavg()]


def _cpu_model() -> str:
    try:
        with Path("/proc/cpuinfo").open() as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
