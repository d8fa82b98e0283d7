"""What the file and the table say about samples."""

import json

import pytest

from benchmarks.report import rows
from benchmarks.results import Report, Result, Sample
from benchmarks.scale import QUICK
from benchmarks.stats import Spread
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.base import Figure, Goal, Workload

SPEED = Figure("speed", "throughput", "msg/s", Goal(">=", 100), ("bare", "speed"))
HIDDEN = Figure("hidden", "not in the table", "s", shown=False)
WORKLOAD = Workload("w", "a workload", lambda scale: "a setting", (SPEED, HIDDEN), lambda run: {})


def sample(speed, floor):
    return Sample({"speed": speed, "hidden": 1.0}, {"bare": {"speed": floor}}, [0.5, 0.5, 0.5])


@pytest.fixture
def result():
    return Result(WORKLOAD, "a setting", [sample(80, 100), sample(120, 300), sample(110, 200)])


def test_each_repeat_is_divided_by_its_own_floor(result):
    assert result.ratio(SPEED) == Spread(median=0.55, min=0.4, max=0.8)


def test_a_figure_without_a_floor_has_no_ratio(result):
    assert result.ratio(HIDDEN) is None


def test_a_goal_is_held_against_the_median(result):
    assert result.as_json()["figures"]["speed"]["goal_met"] is True


@pytest.mark.parametrize(
    "sign,value,met", [("<", 1.0, False), ("<", 0.9, True), ("<=", 1.0, True), (">=", 1.0, True), (">=", 0.9, False)]
)
def test_a_goal_means_what_its_sign_says(sign, value, met):
    assert Goal(sign, 1.0).met_by(value) is met


def test_the_table_has_what_is_meant_to_be_read(result):
    assert rows(result) == [("throughput", "110 msg/s", "80.0 - 120", ">= 100 msg/s", "yes", "0.55")]


def test_a_workload_that_failed_at_once_has_no_rows_but_says_why():
    failed = Result(WORKLOAD, "a setting", [], "it broke")
    assert rows(failed) == []
    assert failed.as_json()["error"] == "it broke"


def test_a_report_is_one_json_file_per_run(result, tmp_path):
    report = Report("2026-01-02T03:04:05Z", 1.23, True, 3, QUICK, {"cores": 2}, [1.0, 1.0, 1.0], [result])
    path = report.write(tmp_path / "new")
    assert path.name == "2026-01-02T030405Z.json"
    assert json.loads(path.read_text()) == json.loads(json.dumps(report.as_json()))


def test_workloads_and_their_figures_have_names_of_their_own():
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)
    for workload in WORKLOADS:
        assert len({figure.name for figure in workload.figures}) == len(workload.figures)
