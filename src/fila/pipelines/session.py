"""The Spark session of a pipeline: that of `fila.spark`, with Delta Lake."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fila.pipelines.lake import delta
from fila.spark import session
from fila.spark.errors import SparkMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(name: str, master: str | None = None, settings: Mapping[str, str] | None = None) -> "SparkSession":
    """A session for a pipeline, or the one that is there. Raises SparkMissing.

    Under `spark-submit` the jars of Delta Lake come with `--packages`.
    """
    session.require_pyspark()
    chosen = dict(delta.SETTINGS)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        chosen["spark.jars"] = ",".join(map(str, delta.jars()))
        if (master or "local").startswith("local"):
            chosen |= delta.LOCAL
    spark = session.open_session(name, master, chosen | dict(settings or {}))
    _require_delta(spark)
    return spark


def _require_delta(spark: "SparkSession") -> None:
    """Spark warns about an extension that it cannot load, and goes on without it."""
    jvm = spark._jvm  # noqa: SLF001
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    if loader.getResource("io/delta/sql/DeltaSparkSessionExtension.class") is None:
        raise SparkMissing(f"this Spark has no Delta Lake: give spark-submit --packages {delta.PACKAGE}")
