"""Ways of doing the same work, side by side in a page."""

from dataclasses import replace

from benchmarks import side_by_side
from benchmarks.results import Report, Result, Sample
from benchmarks.scale import QUICK
from benchmarks.workloads.base import Figure, Ways, Workload

WORKLOAD = Workload(
    name="travel",
    title="",
    setting=lambda _: "",
    figures=(Figure("foot_speed", "", "m/s"), Figure("bike_speed", "", "m/s"), Figure("bike_gain", "", "%")),
    sample=lambda _: {},
    ways=Ways("page.md", {"foot": "on foot", "bike": "by bike"}, {"speed": "speed", "gain": "faster, %"}),
)
SAMPLES = [
    Sample({"foot_speed": foot, "bike_speed": 5 * foot, "bike_gain": 400.0}, {}, (0.1,)) for foot in (1.0, 1.5, 2.0)
]
MACHINE = {"load_average": (0.5, 1), "cores": 2, "system": "Linux", "python": "3.11"}


def report(**changes):
    result = replace(Result(WORKLOAD, "100 m", SAMPLES), **changes)
    return Report("2026-01-02T03:04:05Z", 1.0, False, 3, QUICK, MACHINE, (), [result])


def test_a_column_for_each_way_and_a_row_for_each_figure():
    made = report()
    lines = side_by_side.section(made, made.results[0]).splitlines()
    assert lines[2:] == [
        "| | on foot | by bike |",
        "|---|---|---|",
        "| speed | 1.50 (1.00 - 2.00) | 7.50 (5.00 - 10.0) |",
        "| faster, % |  | 400 (400 - 400) |",
    ]
    assert "python -m benchmarks --only travel --pages" in lines[0]
    assert "100 m" in lines[0]


def test_only_what_was_measured_replaces_a_section(tmp_path, monkeypatch):
    monkeypatch.setattr(side_by_side, "DOCS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- travel: begin -->\nold\n<!-- travel: end -->\nbehind\n")
    assert side_by_side.write_pages(report(error="failed")) == []
    assert "old" in page.read_text()
    assert side_by_side.write_pages(report()) == [page]
    assert "old" not in page.read_text()
    assert page.read_text().startswith("before\n<!-- travel: begin -->\n`python")
    assert page.read_text().endswith("<!-- travel: end -->\nbehind\n")
