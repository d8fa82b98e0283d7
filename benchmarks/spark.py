"""Bulk reconciliation on Spark: `python -m benchmarks.spark [--reports N] [--repeat N] [--master URL] [--write]`.

What is measured, in one session, repeats taking turns so that a slow minute hits everybody:
- the floor: the bare join of reports and metrics, its rows counted by a sum over both sides;
- reconciling: the same join, classified by the rules, and added up by affiliate;
- the whole pipeline, from files to verdicts, sums, alerts and the page, session not included: once with a tenth of the
  reports, once with all of them, once with half of all from one affiliate;
- what comes to the driver in each of these, by Spark's own counters, and the largest stage of a single task.
Inputs are Parquet with one row for each report and post, made by the program first. `--write` puts the table into
docs/benchmarks-spark.md.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession

from benchmarks import machine, sections
from benchmarks.stages import Counters, rows_in_one_task
from fila.pipelines.session import open_session
from fila.reconcile.domain.settings import DEFAULTS

Figures = dict[str, Any]
"""What is written as JSON: numbers, and groups of them by name."""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--reports", type=int, default=5_000_000)
    parser.add_argument("--affiliates", type=int, default=50_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks-spark.md")
    options = parser.parse_args()
    began = time.perf_counter()
    spark = open_session("fila bench", options.master, {"spark.driver.memory": "4g"})
    spark.range(1).count()
    figures: Figures = {"session_s": time.perf_counter() - began, "load_before": machine.load_average()}
    folder = Path(tempfile.mkdtemp(prefix="fila-bench-spark-"))
    try:
        figures |= measure(spark, folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        spark.stop()
    figures |= {"reports": options.reports, "master": options.master, "machine": machine.facts()}
    show(figures)
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")
    if options.write:
        sections.replace(sections.SPARK_PAGE, "bulk", as_section(figures))


def measure(spark: SparkSession, folder: Path, options: argparse.Namespace) -> Figures:
    from pyspark.sql import functions as F  # noqa: N812

    from fila.pipelines.reconcile import bulk, sample, tables, verdicts

    now_ms = time.time_ns() // 1_000_000
    wanted = sample.Sample(options.reports, now_ms, affiliates=options.affiliates)
    print(f"making {options.reports:,} reports and their metrics", file=sys.stderr)
    sample.reports(spark, wanted).write.parquet(str(folder / "reports"))
    sample.metrics(spark, wanted).write.parquet(str(folder / "metrics"))
    for table in (tables.reports(), tables.metrics()):
        received = spark.read.parquet(str(folder / table.name)).withColumn(tables.RECEIVED, F.lit(now_ms))
        rows = tables.judged(received, table, DEFAULTS.intake)
        tables.valid(rows, table).write.parquet(str(folder / "silver" / table.name))

    def sides() -> list[DataFrame]:
        return [spark.read.parquet(str(folder / "silver" / name)) for name in ("reports", "metrics")]

    def floor() -> object:
        reports, metrics = sides()
        joined = reports.join(metrics, ["platform", "post_id"], "left")
        everything = [F.sum(F.hash(*joined.columns).cast("bigint"))]
        return joined.agg(*everything).collect()

    def reconciling() -> object:
        reports, metrics = sides()
        results = verdicts.results(verdicts.fresh(reports), metrics, now_ms, DEFAULTS)
        return (
            verdicts.tally(verdicts.changes(results), "affiliate_id").agg(F.sum("steps_bp"), F.sum("reports")).collect()
        )

    jvm: Any = spark._jvm  # noqa: SLF001
    java = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())

    def cpu() -> float:
        return sum(java.cpu_times()[:2])

    taken: dict[str, list[float]] = {"floor": [], "reconciling": []}
    spent: dict[str, list[float]] = {"floor": [], "reconciling": []}
    for repeat in range(options.repeat + 1):  # the first is the cold one
        for name, work in (("floor", floor), ("reconciling", reconciling)):
            start, before = time.perf_counter(), cpu()
            work()
            taken[name].append(time.perf_counter() - start)
            spent[name].append(cpu() - before)
            print(f"{repeat}: {name} {taken[name][-1]:.1f} s", file=sys.stderr)
    skewed = spark.read.parquet(str(folder / "reports")).withColumn(
        "affiliate_id", F.when(F.pmod(F.hash("report_id"), F.lit(2)) == 0, "one").otherwise(F.col("affiliate_id"))
    )
    skewed.write.parquet(str(folder / "skewed"))
    tenth = spark.read.parquet(str(folder / "reports")).where(F.pmod(F.hash("post_id"), F.lit(10)) == 0)
    tenth.write.parquet(str(folder / "tenth"))
    whole: dict[str, tuple[float, float, int]] = {}
    for name in ("tenth", "reports", "skewed"):
        start, before, counted = time.perf_counter(), cpu(), Counters.of(spark)
        out = str(folder / f"{name}-out")
        bulk.reconcile(spark, str(folder / name), str(folder / "metrics"), out, now_ms=now_ms)
        to_driver = Counters.of(spark).since(counted).to_driver_bytes
        whole[name] = time.perf_counter() - start, cpu() - before, to_driver
        print(f"{name}: {whole[name][0]:.1f} s, CPU {whole[name][1]:.1f} s", file=sys.stderr)
    return {
        "cold_s": {name: times[0] for name, times in taken.items()},
        "warm_s": {name: times[1:] for name, times in taken.items()},
        "cpu_s": {name: times[1:] for name, times in spent.items()},
        "whole_pipeline_s": whole["reports"][0],
        "whole_pipeline_cpu_s": whole["reports"][1],
        "skewed_s": whole["skewed"][0],
        "skewed_cpu_s": whole["skewed"][1],
        "to_driver_bytes": {name: each[2] for name, each in whole.items()},
        "rows_in_one_task": rows_in_one_task(spark),
    }


def show(figures: Figures) -> None:
    count = figures["reports"]
    best = {name: min(times) for name, times in figures["warm_s"].items()}
    for name, times in figures["warm_s"].items():
        median = statistics.median(times)
        print(
            f"{name:<12} best {best[name]:6.1f} s  median {median:6.1f} s  cold {figures['cold_s'][name]:6.1f} s"
            f"  cpu {min(figures['cpu_s'][name]):6.1f} s  {count / best[name]:>12,.0f} reports/s"
        )
    print(
        f"reconciling / floor: {statistics.median(ratios(figures)):.2f} (median of turns), "
        f"{best['reconciling'] / best['floor']:.2f} (best of each), session {figures['session_s']:.1f} s"
    )
    whole = figures["whole_pipeline_s"]
    print(f"whole pipeline: {whole:.1f} s, {count / whole:,.0f} reports/s, with bronze, silver, gold and page")
    print(f"half of one affiliate: {figures['skewed_s']:.1f} s, {figures['skewed_s'] / whole:.2f} of even")
    print(told_of_driver(figures))
    print(f"load before {figures['load_before']}, after {figures['machine']['load_average']}")


def ratios(figures: Figures) -> list[float]:
    """Of reconciling to the floor, each to the one before it in the same turn."""
    return [many / one for one, many in zip(figures["warm_s"]["floor"], figures["warm_s"]["reconciling"], strict=True)]


def told_of_driver(figures: Figures) -> str:
    """What came to the driver, and how much went through one task."""
    tenth, even, skewed = (figures["to_driver_bytes"][name] / 2**20 for name in ("tenth", "reports", "skewed"))
    return (
        f"To the driver came {even:.1f} MiB of results in a whole run, {skewed:.1f} MiB with half of all reports from "
        f"one affiliate, and {tenth:.1f} MiB with a tenth of the reports. The largest stage of a single task read "
        f"{figures['rows_in_one_task']:,} rows."
    )


def as_section(figures: Figures) -> str:
    """What was measured, on what, and how it compares."""
    count, facts, turns = figures["reports"], figures["machine"], ratios(figures)
    best = {name: min(times) for name, times in figures["warm_s"].items()}
    cpu = {name: min(times) for name, times in figures["cpu_s"].items()}
    rows = []
    for name, text in (("floor", "the bare join"), ("reconciling", "joined, classified, added up by affiliate")):
        numbers = best[name], statistics.median(figures["warm_s"][name]), figures["cold_s"][name], cpu[name]
        rows.append(f"| {text} | {' | '.join(f'{each:.1f}' for each in numbers)} | {count / best[name]:,.0f} |")
    whole = figures["whole_pipeline_s"]
    rows.append(
        f"| the whole pipeline, once: from files to bronze, silver, gold and page | {whole:.1f} | | "
        f"| {figures['whole_pipeline_cpu_s']:.1f} | {count / whole:,.0f} |"
    )
    skewed = figures["skewed_s"]
    rows.append(
        f"| the same, with half of all reports from one affiliate | {skewed:.1f} | | "
        f"| {figures['skewed_cpu_s']:.1f} | {count / skewed:,.0f} |"
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(facts["versions"].items()))
    return (
        "## Bulk reconciliation\n\n"
        f"{count:,} reports against their metrics, Parquet, `{figures['master']}`; "
        f"best and median of {len(figures['warm_s']['floor'])} warm runs, both taking turns in one session.\n\n"
        "| | best s | median s | cold s | CPU s | reports/s |\n|---|--:|--:|--:|--:|--:|\n"
        + "\n".join(rows)
        + f"\n\nReconciling takes **{statistics.median(turns):.2f} times** as long as the bare join, the median of the "
        f"turns ({', '.join(f'{each:.2f}' for each in turns)}); the goal is 1.25. Best against best: "
        f"{best['reconciling'] / best['floor']:.2f}, CPU time: {cpu['reconciling'] / cpu['floor']:.2f}. "
        f"With half of all reports from one affiliate the pipeline takes **{skewed / whole:.2f} times** as long; the "
        f"goal is 1.5. {told_of_driver(figures)} A session takes {figures['session_s']:.1f} s to start.\n\n"
        f"Machine: {facts['cores']} cores, {facts['cpu']}, {facts['memory_bytes'] / 2**30:.0f} GiB, {facts['system']}, "
        f"Python {facts['python']}, {versions}; revision {facts['revision']}; load before {figures['load_before'][0]}, "
        f"after {facts['load_average'][0]}.\n"
    )


if __name__ == "__main__":
    main()
