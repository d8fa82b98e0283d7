"""What a run reads does not grow with history, but for the owners of posts: by Spark's own counters, not by time."""

import pytest

pytest.importorskip("pyspark")

from benchmarks.lake import measure

ROWS, WINDOW, LONG = 60, 9, 60
"""Ids and metrics are remembered for a week and a little: both histories fill that window, and have all affiliates"""
LOOKS_AT_LOGS = 30
"""A day of history is a file of several tables, and each look at the list of a table's files reads a row for it"""


@pytest.mark.slow
def test_a_run_reads_of_history_only_the_owners_of_posts(spark, tmp_path):
    """To read any other table whole once would be as much as the owners once, which is twice what logs may take."""
    short, _, _, _ = measure(spark, tmp_path / "short", WINDOW, ROWS)
    long, _, _, _ = measure(spark, tmp_path / "long", LONG, ROWS)
    days = LONG - WINDOW
    read_twice = 2  # whose post is it, and which posts are new
    assert long - short <= read_twice * days * ROWS + LOOKS_AT_LOGS * days
