"""Delta Lake on this machine: its two jars, and the settings of a session that uses them.

Spark's own client fetches the jars from Maven Central, once, into a folder in the cache of the user. A machine without
network gets them in a folder that `FILA_SPARK_JARS` names. Under spark-submit they come with `--packages`.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from fila.spark.errors import SparkMissing

VERSION = "4.4.0"
PACKAGE = f"io.delta:delta-spark_4.2_2.13:{VERSION}"
"""Built for Spark 4.2. The jars of another line of Spark fail when they are used, not when they are loaded."""
FOLDER = "FILA_SPARK_JARS"
_NEEDED = ("delta-spark_4.2_2.13", "delta-storage")
_PATIENCE_S = 600
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
LOCAL = {
    "spark.databricks.delta.snapshotPartitions": "2",  # 50 tasks to read the log of a small table
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",  # 10,000 tasks to list files for a vacuum
}
"""For one machine."""


def jars(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """The jars, which are fetched if they are not here yet. Raises SparkMissing."""
    if environ.get(FOLDER):
        folder = Path(environ[FOLDER])
        found = _in(folder)
        if found is None:
            raise SparkMissing(f"{FOLDER}={folder} has no {' and '.join(f'{name}-{VERSION}.jar' for name in _NEEDED)}")
        return found
    cache = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".cache")
    folder = cache / "fila" / f"delta-{VERSION}"
    found = _in(folder / "jars")
    if found is None:
        _fetch(folder)
        found = _in(folder / "jars")
    if found is None:
        raise SparkMissing(f"Delta Lake was fetched, but {folder / 'jars'} does not hold it: remove the folder")
    return found


def _in(folder: Path) -> list[Path] | None:
    found = [[*folder.glob(f"*{name}-{VERSION}.jar")] for name in _NEEDED]
    return [each[0] for each in found] if all(found) else None


def _fetch(folder: Path) -> None:
    import pyspark

    home = Path(pyspark.__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as empty:
        program = Path(empty, "nothing.py")
        program.write_text("")
        said = subprocess.run(  # noqa: S603
            [home / "bin" / "spark-submit", "--packages", PACKAGE, "--conf", f"spark.jars.ivy={folder}", program],
            env=os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    if said.returncode != 0:
        last = [line.strip() for line in (said.stdout + said.stderr).splitlines() if line.strip()][-1:]
        raise SparkMissing(
            f"Delta Lake ({PACKAGE}) could not be fetched from Maven Central: {''.join(last)}. "
            f"Put its jars into a folder and name it in {FOLDER}"
        )


if __name__ == "__main__":
    for jar in jars():
        print(jar)  # noqa: T201
