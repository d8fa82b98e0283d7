"""What a pipeline is doing, for people: told to a callback, and shown in Spark's UI as the description of its jobs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

Say = Callable[[str], None]
_DESCRIPTION = "spark.job.description"


@contextmanager
def described(spark: SparkSession, pipeline: str, say: Say) -> Iterator[Say]:
    """A callback for each step. The jobs of a step have its text. At the end the description is as it was before."""
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)

    def tell(step: str) -> None:
        context.setLocalProperty(_DESCRIPTION, f"{pipeline}: {step}")
        say(step)

    try:
        yield tell
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type] # None removes it
