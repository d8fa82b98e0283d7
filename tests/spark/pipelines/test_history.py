"""What a run reads does not grow with history: by Spark's own counters, not by time."""

import pytest

pytest.importorskip("pyspark")

from benchmarks.lake import News, measure

ROWS, WINDOW, LONG = 60, 9, 60
"""Ids and metrics are remembered for a week and a little: both histories fill that window, and have all affiliates"""
LOOKS_AT_LOGS = 30
"""A day of history is a file of several tables, and each look at the list of a table's files reads a row for it"""


@pytest.mark.slow
def test_what_a_run_reads_does_not_grow_with_history(spark, tmp_path):
    """To read any table whole once, the owners of posts too, would be twice what logs may take."""
    short, _, _, _ = measure(spark, tmp_path / "short", WINDOW, News(ROWS))
    long, _, _, _ = measure(spark, tmp_path / "long", LONG, News(ROWS))
    assert long - short <= LOOKS_AT_LOGS * (LONG - WINDOW)
