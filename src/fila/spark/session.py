"""The Spark session of a pipeline: quiet, in UTC, on this machine unless told otherwise."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fila.spark.errors import SparkMissing
from fila.spark.java import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent
#: Needed for right results, wherever it runs: no silent overflow, and times that depend on no machine's zone.
#: And filters on the journal are pushed to the reader, which Spark would else not do.
_RIGHT = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
}
#: Hash a side of a join of which each partition is at most this large, else sort both: hashing takes a third less time,
#: sorting can spill. Spark itself only sorts. Set where nobody has set it.
_HASHED = ("spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold", "128m")
#: For one machine. More shuffle partitions than this made no difference but in the number of small files.
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_JAVA = "spark.driver.extraJavaOptions"


def open_session(name: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> "SparkSession":
    """A session for a pipeline, or the one that is there.

    Under `spark-submit` its master and its settings count. Else `master` does, by default all cores of this machine.
    Raises SparkMissing.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    require_pyspark()
    if not submitted:
        require_java()
    from pyspark.sql import SparkSession

    # Workers would else run the first python3 in PATH, which knows nothing of our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = dict(_RIGHT)
    builder = SparkSession.builder.appName(name)
    if not submitted:
        builder = builder.master(master or "local[*]")
        if (master or "local").startswith("local"):
            chosen |= _LOCAL
    chosen |= settings or {}
    if not submitted:
        quiet = f"-Dlog4j2.configurationFile=file:{_HERE / 'log4j2.properties'}"
        chosen[_JAVA] = f"{quiet} {chosen.get(_JAVA, '')}".strip()
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if spark.conf.get(_HASHED[0]) in {"0", "0b"}:
        spark.conf.set(*_HASHED)
    return spark


def require_pyspark() -> None:
    """Raises SparkMissing where pyspark cannot be imported."""
    try:
        import pyspark.sql  # noqa: F401
    except ModuleNotFoundError as error:
        raise SparkMissing(
            f"Spark pipelines need the package {error.name}, which is not installed: "
            "pip install 'fila[spark]', and a Java 17 or newer to run it"
        ) from error
