"""What a run reads as history grows: `python -m benchmarks.lake [--days 8,80,800] [--rows N] [--known N] [--write]`.

History is put into the tables directly, one row a report, so many reports a day. Then one day of new files is
reconciled, and what Spark read for it is taken from Spark's own counters, which a busy machine does not change. Eight
days are one window: ids and metrics are remembered for that long. Some of the new reports are of posts of all days.
Ids of posts grow with time, or are random. `--write` puts the table into docs/benchmarks-spark.md.
"""

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks import sections
from fila.pipelines.lake.contract import ALERTS, CURRENT, METRICS, POSTS, REPORTS, RESULTS, TABLES, TOTALS
from fila.pipelines.lake.lake import DAY_MS, Lake, day_of
from fila.pipelines.lake.ledger import Intent, Ledger
from fila.pipelines.reconcile import bulk, sample, steps, verdicts
from fila.pipelines.session import open_session
from fila.reconcile.domain.settings import DEFAULTS

_COUNTED = {"spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}
"""Spark does not count what Parquet reads by vectors."""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--days", default="8,80,800")
    parser.add_argument("--rows", type=int, default=1_000, help="reports a day")
    parser.add_argument("--known", type=int, default=20, help="new reports that are of posts of history")
    parser.add_argument("--ids", default="growing,random", help="ids of posts")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks-spark.md")
    options = parser.parse_args()
    spark = open_session("fila bench lake", options.master, _COUNTED)
    folder = Path(tempfile.mkdtemp(prefix="fila-bench-lake-"))
    rows = []
    try:
        for ids in options.ids.split(","):
            for days in map(int, options.days.split(",")):
                news = News(options.rows, options.known, ids)
                rows.append((ids, days, *measure(spark, folder / f"{ids}-{days}", days, news)))
                print(
                    "{:>8} ids, days {:>4}: {:>10,} rows {:>12,} bytes {:>4} files {:6.1f} s".format(*rows[-1]),
                    flush=True,
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        spark.stop()
    if options.write:
        sections.replace(sections.SPARK_PAGE, "history", as_section(rows, options.rows, options.known))


@dataclass(frozen=True, slots=True)
class News:
    """What a day brings."""

    reports: int
    #: How many more there are of posts of history, of all days alike.
    known: int = 0
    #: `growing` or `random`.
    ids: str = "growing"


def measure(spark: SparkSession, folder: Path, days: int, news: News) -> tuple[int, int, int, float]:
    """Rows and bytes that the run of one day reads, after so many days; files of the tables; seconds."""
    now_ms = time.time_ns() // 1_000_000
    out = str(folder / "out")
    _history(Lake(spark, out), now_ms, days, news)
    new = sample.Sample(news.reports, now_ms, first=10**9)
    known = sample.reports(spark, sample.Sample(news.known, now_ms, first=0))
    number = F.substring("report_id", 2, 12).cast("bigint") * (days * news.reports // max(1, news.known))
    known = known.withColumns(
        {
            "report_id": F.concat(F.lit("known"), "report_id"),
            "platform": F.lit("clipshare"),
            "post_id": F.format_string("post-%012d", number),
        }
    )
    for name, frame in (
        ("reports", sample.reports(spark, new).unionByName(known)),
        ("metrics", sample.metrics(spark, new)),
    ):
        _with_ids(frame, news.ids).coalesce(1).write.parquet(str(folder / name))
    before, began = _read(spark), time.perf_counter()
    bulk.reconcile(spark, str(folder / "reports"), str(folder / "metrics"), out, now_ms=now_ms)
    seconds, after = time.perf_counter() - began, _read(spark)
    files = sum(1 for _ in (folder / "out").rglob("*.parquet"))
    return after[0] - before[0], after[1] - before[1], files, seconds


def _with_ids(rows: DataFrame, ids: str) -> DataFrame:
    """With ids of posts that grow from day to day, or that tell nothing."""
    return rows.withColumn("post_id", F.substring(F.md5("post_id"), 1, 12)) if ids == "random" else rows


def _read(spark: SparkSession) -> tuple[int, int]:
    """Rows and bytes that tasks of this session have read."""
    context: Any = spark.sparkContext
    jvm, gateway = context._jvm, context._gateway  # noqa: SLF001
    store = context._jsc.sc().statusStore()  # noqa: SLF001
    stages = store.stageList(None, False, False, gateway.new_array(jvm.double, 0), jvm.java.util.ArrayList())
    every = [stages.apply(at) for at in range(stages.size())]
    return sum(each.inputRecords() for each in every), sum(each.inputBytes() for each in every)


def _history(lake: Lake, now_ms: int, days: int, news: News) -> None:
    """Tables as a run a day would have left them, all reports matched."""
    spark, rows = lake.spark, news.reports
    number, day_ms = F.col("id"), now_ms - (F.floor(F.col("id") / rows) + 1) * DAY_MS
    told = {f"told_{name}": F.lit(count) for name, count in (("views", 1000), ("clicks", 100), ("conversions", 10))}
    base = spark.range(days * rows).select(
        F.format_string("r%012d", number).alias("report_id"),
        F.format_string("affiliate-%04d", F.pmod(number, F.lit(500))).alias("affiliate_id"),
        F.lit("campaign-01").alias("campaign_id"),
        F.lit("clipshare").alias("platform"),
        F.format_string("post-%012d", number).alias("post_id"),
        *(F.lit(count).alias(name) for name, count in (("views", 1000), ("clicks", 100), ("conversions", 10))),
        day_ms.alias("reported_at_ms"),
        day_ms.alias("submitted_at_ms"),
        *(column.alias(name) for name, column in told.items()),
        day_ms.alias("observed_at_ms"),
    )
    base = _with_ids(base, news.ids)
    sorted_by_day = base.repartitionByRange(max(2, days // 8), "submitted_at_ms")
    put = _Put(lake)
    intent = Intent(1, now_ms - DAY_MS, "bulk")
    Ledger(lake).begin(intent, spark.createDataFrame([], TABLES["bronze/received"].schema))
    put(REPORTS, sorted_by_day)
    put(POSTS, sorted_by_day)
    put(METRICS, sorted_by_day)
    results = verdicts.results(
        verdicts.fresh(base), base.select("platform", "post_id", *told, "observed_at_ms"), now_ms, DEFAULTS
    ).withColumn("day", day_of(F.col("submitted_at_ms")))
    results = results.repartitionByRange(max(2, days // 8), "submitted_at_ms")
    put(RESULTS, results)
    put(CURRENT, results.withColumn("final", F.lit(True)))
    put(TOTALS, verdicts.totals(results).withColumn("trust_bp", F.lit(5_000)))
    put(ALERTS, spark.createDataFrame([], TABLES[ALERTS].schema))
    Ledger(lake).finish(intent, None, steps.rules_text(DEFAULTS), {}, now_ms)


class _Put:
    """Adds rows to a table as run 1, with null for what they do not say."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def __call__(self, name: str, rows: DataFrame) -> None:
        if "day" not in rows.columns and "submitted_at_ms" in rows.columns:
            rows = rows.withColumn("day", day_of(F.col("submitted_at_ms")))
        rows = rows.withColumn("run", F.lit(1))
        schema = TABLES[name].schema
        typed = [
            (F.col(each.name) if each.name in rows.columns else F.lit(None)).cast(each.dataType).alias(each.name)
            for each in schema
        ]
        self._lake.append(name, rows.select(*typed), 1)


def as_section(rows: list[tuple[str, int, int, int, int, float]], daily: int, known: int) -> str:
    lines = []
    for ids, days, read, size, _, took in rows:
        lines.append(f"| {ids} | {days} | {days * daily:,} | {read:,} | {size / 2**20:.2f} | {took:.0f} |")
    return (
        "## What a run reads as history grows\n\n"
        f"One day of {daily:,} new reports and their metrics, and {known} of posts of all days, after so many days of "
        "history; rows and bytes by Spark's own counters. Eight days are one window.\n\n"
        "| ids of posts | days | reports before | rows read | MiB read | seconds |\n|---|--:|--:|--:|--:|--:|\n"
        + "\n".join(lines)
        + "\n"
    )


if __name__ == "__main__":
    main()
