"""What follows from samples: rates, cells of the heat map, problems, what a limit means."""

from collections import deque
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest

from fila.client import ConsumerStats, QueueConfig, QueueCounters, QueueInfo, QueueStats, SchedulerStats, WaitStats
from fila.client.stats import ThrottleStats
from fila.client.throttle_limit import ThrottleLimit
from fila.console import heat
from fila.console.forecast import empty_in, ladder
from fila.console.history import History, KeyPoint, Point
from fila.console.pages.throttles import FORM, read_limit
from fila.console.problems import headline, problems

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def history(*points):
    return History(deque(points))


def point(at, delivered, keys=None, enqueued=0, acked=0):
    made = {name: KeyPoint(*figures) for name, figures in (keys or {}).items()}
    return Point(at, enqueued, delivered, acked, 0, 0, made)


def test_rates_are_differences_over_time_and_unknown_over_a_restart():
    seen = history(point(0.0, 100), point(2.0, 120), point(4.0, 5), point(6.0, 15))
    assert [step and step.delivered for step in seen.steps()] == [10.0, None, 5.0]
    assert history(point(0.0, 1)).rates() is None


@pytest.mark.parametrize("own, level", [(25, 0), (50, 1), (100, 2), (12, -1), (3, -3), (0, -3)])
def test_a_level_is_the_logarithm_of_share_by_entitlement(own, level):
    seen = history(point(0, 0, {"k": (0, 500, 0.25)}), point(2, 100, {"k": (own, 400, 0.25)}))
    [cell] = heat.cells(seen, "k", turn=4)
    assert cell.level == level


def test_a_cell_looks_back_over_whole_turns_so_that_turns_look_fair():
    """Of 100 keys each gets 4 messages in every tenth sample: fair, although it looks like all or nothing."""
    points = [point(at, at * 40, {"k": ((at + 9) // 10 * 4, 500, 0.01)}) for at in range(91)]
    levels = [cell.level for cell in heat.cells(history(*points), "k", turn=4) if cell is not None]
    assert len(levels) > 40
    assert set(levels) == {0}


def test_nothing_is_said_of_a_key_that_was_not_seen_or_over_a_restart():
    seen = history(point(0, 100, {"k": (50, 9, 0.5)}), point(2, 10, {"k": (5, 9, 0.5)}), point(4, 20))
    assert heat.cells(seen, "k", turn=1) == [None, None]


def test_a_key_without_a_backlog_that_is_served_got_what_it_wanted():
    seen = history(point(0, 0, {"k": (0, 0, 0.0)}), point(2, 100, {"k": (1, 0, 0.0)}))
    assert heat.cells(seen, "k", turn=4)[0].level == 0


def stats(**changes):
    summary = QueueInfo("orders", 10, 0, 0, 1, 0, "orders.dlq", paused=False)
    config = QueueConfig(30_000, "", "", 4, 0, (), "", 0, 0, 1.0, 0, 0.0, "", 10, 1 << 20)
    waits = WaitStats(0, 0.0, 0.0, 0.0, {}, {})
    known = QueueStats(
        summary=replace(summary, **changes.pop("summary", {})),
        config=config,
        counters=QueueCounters(0, 0, 0, 0, 0, 0, 0, 0, 0),
        scheduler=SchedulerStats(4, 0, 1),
        created_at=NOW,
        runnable=10,
        oldest_at=NOW - timedelta(minutes=12),
        deliveries_per_second=0.0,
        consumers=(),
        groups=(),
        throttles=(),
        keys=(),
        total_keys=1,
        waits=waits,
    )
    return replace(known, **changes)


def told(each):
    return [(one.text, one.mend) for one in problems([each.summary], {"orders": each}, None, NOW)]


def test_each_problem_is_named_with_what_mends_it():
    assert told(stats()) == [("nobody consumes, 10 wait since 12 min", "queue")]
    assert told(stats(summary={"paused": True})) == [("paused, 10 wait since 12 min", "resume")]
    busy = (ConsumerStats(1, 5, 5, 0),)
    assert told(stats(summary={"consumers": 1}, consumers=busy)) == [
        ("1 consumer without credit, 10 wait since 12 min", "queue")
    ]
    held = (ThrottleStats("aws", "rate=1", 0.0, 0, 0, 0, 3),)
    assert told(stats(summary={"consumers": 1}, runnable=0, throttles=held)) == [
        ("the throttle aws holds 3 keys up, 10 wait since 12 min", "throttles")
    ]
    assert told(stats(summary={"consumers": 1, "depth": 0}, oldest_at=None)) == []
    fresh = stats(summary={"consumers": 1}, oldest_at=NOW - timedelta(seconds=1))
    assert told(fresh) == []


def test_the_worst_problem_is_the_headline_and_dead_letters_alone_are_not():
    one, other = stats(), stats(summary={"name": "mail", "depth": 99})
    dead = QueueInfo("orders.dlq", 5, 0, 0, 1, 0, "", paused=False)
    queues = [one.summary, other.summary, dead]
    found = problems(queues, {"orders": one, "mail": other}, None, NOW)
    assert [each.queue for each in found] == ["mail", "orders", "orders.dlq"]
    assert headline(found, queues) == "mail: nobody consumes, 99 wait since 12 min"
    assert headline(found[2:], queues) == "All queues flow"
    assert headline([], []) == "No queue yet"


def test_the_form_has_every_part_of_a_limit():
    assert [part.name for part in FORM] == [part.name for part in fields(ThrottleLimit) if part.name != "others"]


def test_a_form_that_is_sent_as_it_was_shown_changes_nothing():
    """Also of parts that only a later broker knows, and of numbers with many digits."""
    limit = ThrottleLimit.parse("rate=1234567.5,max_in_flight=3,bytes_per_second=100")
    assert read_limit(limit.texts() | {"others": limit.others}) == limit


def test_a_line_is_empty_when_its_messages_have_passed():
    assert empty_in(100, 50) == 2
    assert empty_in(100, 50, tokens=60) == 0.8
    assert ladder(10, 25) == [5, 10, 20, 25, 50]
    assert ladder(10, float("inf")) == [5, 10, 20, 50]
