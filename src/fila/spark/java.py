"""Finds Java before Spark does, which says no more than that its gateway exited."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fila.spark.errors import SparkMissing

NEEDED = 17
_HOW = (
    f"Install Java {NEEDED} or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk) or set JAVA_HOME to one."
)
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def require_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The java that Spark will start: that of JAVA_HOME, else the one in PATH. Raises SparkMissing."""
    home = environ.get("JAVA_HOME", "")
    if home:
        java, origin = Path(home, "bin", "java"), f"JAVA_HOME={home}"
        if not os.access(java, os.X_OK):
            raise SparkMissing(f"Spark needs Java {NEEDED} or newer: {origin} has no bin/java. {_HOW}")
    else:
        found = shutil.which("java", path=environ.get("PATH", ""))
        if found is None:
            raise SparkMissing(f"Spark needs Java {NEEDED} or newer: JAVA_HOME is not set and PATH has no java. {_HOW}")
        java, origin = Path(found), f"{found}, the java in PATH"
    version = _version(java)
    if version is None:
        raise SparkMissing(f"Spark needs Java {NEEDED} or newer: {origin} does not tell its version. {_HOW}")
    if version < NEEDED:
        raise SparkMissing(f"Spark needs Java {NEEDED} or newer: {origin} is version {version}. {_HOW}")
    return java


def _version(java: Path) -> int | None:
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(said)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2] or 0)
    return minor if major == 1 else major  # until 8 it was called 1.8
