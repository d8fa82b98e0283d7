"""What Spark's own counters say of a session. A busy machine does not change them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Counters:
    """What the tasks of a session have read, and what they have sent to its driver."""

    rows: int
    bytes: int
    #: Results of tasks: rows that are collected, tables that are broadcast, and some kilobytes for each task.
    to_driver_bytes: int

    @classmethod
    def of(cls, spark: SparkSession) -> Self:
        every = list(_stages(spark))
        return cls(
            sum(each.inputRecords() for each in every),
            sum(each.inputBytes() for each in every),
            sum(each.resultSize() for each in every),
        )

    def since(self, before: "Counters") -> "Counters":
        return Counters(
            self.rows - before.rows, self.bytes - before.bytes, self.to_driver_bytes - before.to_driver_bytes
        )


def rows_in_one_task(spark: SparkSession) -> int:
    """The most rows that a stage of a single task has read, from files or from other stages."""
    alone = (each for each in _stages(spark) if each.numTasks() == 1)
    return max((each.inputRecords() + each.shuffleReadRecords() for each in alone), default=0)


def _stages(spark: SparkSession) -> Iterator[Any]:
    context: Any = spark.sparkContext
    jvm, gateway = context._jvm, context._gateway  # noqa: SLF001
    store = context._jsc.sc().statusStore()  # noqa: SLF001
    stages = store.stageList(None, False, False, gateway.new_array(jvm.double, 0), jvm.java.util.ArrayList())
    return (stages.apply(at) for at in range(stages.size()))
