"""Figures of workloads that do the same work in several ways: a column a way, written into the page about them."""

from pathlib import Path

from benchmarks import sections
from benchmarks.report import digits
from benchmarks.results import Report, Result

DOCS = Path(__file__).parents[1] / "docs"


def write_pages(report: Report) -> list[Path]:
    """Replace the section of each workload that has one. Returns the pages."""
    written = []
    for result in report.results:
        ways = result.workload.ways
        if ways is not None and not result.error:
            sections.replace(DOCS / ways.page, result.workload.name, section(report, result))
            written.append(DOCS / ways.page)
    return written


def section(report: Report, result: Result) -> str:
    """A sentence on how it was measured, and the table."""
    ways, machine = result.workload.ways, report.machine
    assert ways is not None
    load = ", ".join(f"{each:g}" for each in machine["load_average"])
    known = {figure.name: figure for figure in result.workload.figures}
    how = (
        f"`python -m benchmarks --only {result.workload.name} --pages` on {report.began[:10]}: {result.setting}. One "
        f"server and two clients on a machine with {machine['cores']} cores, {machine['system']}, Python "
        f"{machine['python']}, load average {load} before. Median and range of {report.repeat} repeats:"
    )
    lines = [
        how,
        "",
        f"| | {' | '.join(ways.columns.values())} |",
        "|---" * (len(ways.columns) + 1) + "|",
    ]
    for row, label in ways.rows.items():
        figures = (known.get(f"{column}_{row}") for column in ways.columns)
        spreads = [None if figure is None else result.spread(figure) for figure in figures]
        cells = (
            "" if each is None else f"{digits(each.median)} ({digits(each.min)} - {digits(each.max)})"
            for each in spreads
        )
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)
