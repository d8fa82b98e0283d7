"""Figures in a page that several benchmarks share: each replaces its own section and leaves the others alone."""

from pathlib import Path

SPARK_PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-spark.md"
_HEAD = """# Benchmarks on Spark

Written by `make bench-connector` and `make bench-spark`, each its own section. Figures of different machines, and of
different loads of one, do not compare; those of one table do: they were measured in turns in one run.
"""


def replace(page: Path, name: str, text: str) -> None:
    """Put `text` between the marks of section `name`, at the end of the page if it has none yet."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    whole = page.read_text() if page.exists() else _HEAD
    section = f"{begin}\n{text.strip()}\n{end}"
    if begin in whole:
        before, rest = whole.split(begin, 1)
        whole = before + section + rest.split(end, 1)[1]
    else:
        whole = f"{whole.rstrip()}\n\n{section}\n"
    page.write_text(whole)
