"""The Spark session of a pipeline: that of `fila.spark`, with Delta Lake."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fila.pipelines.lake import delta
from fila.spark import session
from fila.spark.errors import SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMOTE = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""Variables that make PySpark open a session of Spark Connect."""


def open_session(name: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> "SparkSession":
    """A session for a pipeline, or the one that is there. Raises SparkMissing.

    Under `spark-submit` the jars of Delta Lake come with `--packages`.
    """
    session.require_pyspark()
    _require_no_connect(master, os.environ)
    chosen = dict(delta.SETTINGS)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        chosen["spark.jars"] = ",".join(map(str, delta.jars()))
        if (master or "local").startswith("local"):
            chosen |= delta.LOCAL
    spark = session.open_session(name, master, chosen | dict(settings or {}))
    _require_delta(spark)
    return spark


def _require_no_connect(master: str | None, environ: Mapping[str, str]) -> None:
    """A session of Spark Connect reaches neither the files nor the logs of tables. An address of one may have a key."""
    asked = [f"the variable {name}" for name in _REMOTE if name in environ]
    if (master or "").startswith("sc:"):
        asked.append("the master")
    if environ.get("SPARK_API_MODE", "").lower() == "connect":
        asked.append("the variable SPARK_API_MODE")
    if asked:
        raise SparkMissing(
            f"{asked[0]} asks for Spark Connect, through which pipelines do not run: give a master such as "
            "spark://host:7077 instead, or run them with spark-submit. Their tables can be read through it"
        )


def _require_delta(spark: "SparkSession") -> None:
    """Spark warns about an extension that it cannot load, and goes on without it."""
    jvm = spark._jvm  # noqa: SLF001
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    if loader.getResource("io/delta/sql/DeltaSparkSessionExtension.class") is None:
        raise SparkMissing(f"this Spark has no Delta Lake: give spark-submit --packages {delta.PACKAGE}")
