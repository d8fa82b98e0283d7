"""The axes of pages tell each window by a label of its own."""

import re
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.pages import fairness, moments

S = 10**9
DAY = 86_400 * S
BEGIN = 1_790_000_000 * S + 987_654_321


@pytest.mark.parametrize(
    "step, count, first, last",
    [
        (60 * S, 3, "14:13:20", "14:15:20"),
        (S // 10, 12, "14:13:20.9", "14:13:22.0"),
        (S // 1000, 2, "14:13:20.987", "14:13:20.988"),
        (6 * 3600 * S, 9, "09-21 14:13:20", "09-23 14:13:20"),
        (DAY, 366, "2026-09-21 14:13:20", "2027-09-21 14:13:20"),
    ],
)
def test_no_two_windows_have_one_label(step, count, first, last):
    found = moments.starts(BEGIN, step, count)
    assert len(set(found)) == count
    assert (found[0], found[-1]) == (first, last)


def test_no_label_of_the_fairness_page_comes_twice_on_an_axis():
    """Though a second has ten windows."""
    count = 45
    cell = {"wanted_ns": 1, "cost": 1, "owed": 1.0, "key": "a"}
    names = "weight leased retries dead cost retry_cost p95_wait_ns longest_wait_ns"
    key = {"key": "a", "share": 1.0, "entitled": 1.0} | dict.fromkeys(names.split(), 1)
    key |= {f"{name}_ns": 1 for name in fairness._TURNS}
    summary = {"first_ns": BEGIN, "end_ns": BEGIN + count * S // 10, "window_s": 0.1, "conserved": True}
    counts = "enqueued carried acked dead pending starved broken missing_entries entries"
    summary |= dict.fromkeys(counts.split(), 0)
    windows = [cell | {"window": number} for number in range(count)]
    jain = [{"window": number, "jain": 1.0} for number in range(count)]
    shown = fairness.Figures(summary, ["q"], {"q": [key]}, {"q": windows}, {"q": jain}, [], [], [])
    for plot in re.findall(r"<svg.*?</svg>", fairness.render(shown, SimpleNamespace(run=1))):
        labels = re.findall(r"<text[^>]*>(\d\d:[^<]*)</text>", plot)
        assert len(labels) == len(set(labels)) > 2
