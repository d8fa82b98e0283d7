"""The page of a reconciliation shows days side by side, from what one run keeps for the next."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.lake.ledger import Intent
from fila.pipelines.pages import reconcile as page
from fila.reconcile.domain.models import Status

DAY_MS = 86_400_000
NOW_MS = int(datetime(2026, 11, 19, 12, tzinfo=UTC).timestamp() * 1000)


def statuses(matched, overclaimed=0, missing=0):
    found = dict.fromkeys(map(str, Status), 0)
    return found | {
        "MATCHED": matched,
        "AFFILIATE_OVERCLAIMED": overclaimed,
        "MISSING_PLATFORM_DATA": missing,
    }


def test_the_last_run_of_a_day_is_what_was_said_on_it():
    days = page.trend([], NOW_MS - DAY_MS, statuses(1))
    days = page.trend(days, NOW_MS, statuses(2))
    days = page.trend(days, NOW_MS + 1000, statuses(3, 1, missing=5))
    assert days == [
        {"day": "2026-11-18", "judged": 1, "MATCHED": 1, "AFFILIATE_OVERCLAIMED": 0},
        {"day": "2026-11-19", "judged": 4, "MATCHED": 3, "AFFILIATE_OVERCLAIMED": 1},
    ]


def test_what_is_kept_does_not_grow_with_the_days():
    days = []
    for number in range(200):
        days = page.trend(days, NOW_MS + number * DAY_MS, statuses(number))
    assert len(days) == 60
    assert days[-1]["MATCHED"] == 199


def rendered(days, **more):
    shown = page.Figures({"affiliates": 1, "alerts": 0}, statuses(3, 1), **more)
    return page.render(shown, {}, {}, days, Intent(1, NOW_MS, "bulk"))


def test_one_day_is_no_trend_and_two_are_drawn():
    days = page.trend([], NOW_MS - DAY_MS, statuses(0))  # nothing could be judged: no point
    assert "Day by day" not in rendered(days)
    text = rendered(page.trend(days, NOW_MS, statuses(3, 1)))
    assert "Day by day" in text
    assert "matched, 2026-11-19: 75<" in text
    assert "overclaimed, 2026-11-19: 25<" in text
    assert "2026-11-18:" not in text


def test_a_run_that_judged_nothing_has_no_empty_plot():
    """As one that tries reports without metrics again, of which there still are none."""
    nothing = "No report of this run could be held against a platform."
    assert nothing in rendered([])
    assert nothing not in rendered([], differences={0: 1})
