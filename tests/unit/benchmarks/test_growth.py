"""What counts as flat, and how a run is made smaller."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.growth.__main__ import main
from benchmarks.growth.page import Curve, render
from benchmarks.growth.ranges import RANGES, Range

FACTS = {"cores": 2, "cpu": "c", "system": "s", "python": "3", "revision": "r", "repeat": 1, "load_average": [1.0]}


def curve(*costs, natural=False):
    what = Range("w", "things", (1, 10, 100), "doing it", lambda point, probe: {}, natural=natural)
    return Curve.of(what, {10**at: [{"cpu_us": cost}] for at, cost in enumerate(costs)})


@pytest.mark.parametrize("costs,verdict", [((4, 9, 5), "flat"), ((4, 4, 5.1), "**rises**"), ((4, 2), "flat")])
def test_a_cost_may_rise_by_a_quarter_from_end_to_end(costs, verdict):
    assert curve(*costs).verdict == verdict


def test_what_grows_by_nature_is_not_judged():
    assert curve(1, 100, natural=True).verdict == "expected to grow"


def test_a_point_is_its_cheapest_repeat_and_one_without_any_is_left_out():
    repeats = [{"cpu_us": 2, "rss_mb": 5}, {"cpu_us": 1, "rss_mb": 7}, {"cpu_us": 9, "rss_mb": 1}]
    made = Curve.of(RANGES[0], {10: repeats, 100: []})
    assert made.points == {10: {"cpu_us": 1, "rss_mb": 7}}
    assert made.rise == 0


@given(st.floats(1e-6, 1), st.sampled_from(RANGES))
def test_a_smaller_run_still_grows_and_keeps_what_is_nothing(scale, what):
    points = what.scaled(scale)
    assert list(points) == sorted(set(points))
    assert (0 in points) == (0 in what.points)
    assert max(points) <= max(what.points)


def test_the_page_shows_every_range_with_its_rise_and_every_point():
    page = render([curve(4, 4, 6)], FACTS, "p.png", "")
    assert "| things | 1 to 100 | doing it | +50% | **rises** |" in page
    assert "| 100 | 6.00 |" in page


@pytest.mark.parametrize("arguments", [("--scale", "0"), ("--scale", "2"), ("--only", "nonsense"), ("--repeat", "0")])
def test_what_cannot_be_run_is_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        main(list(arguments))
    assert "error: argument" in capsys.readouterr().err
