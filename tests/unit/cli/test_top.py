"""`fila top`."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from fila import CapacityStats, QueueNotFoundError
from fila.cli.top import Samples
from fila.cli.top.grid import Cell, Column, grid
from fila.cli.top.live import screen_of
from fila.cli.top.samples import KEY_SORTS, QUEUE_ORDERS
from fila.cli.top.screen import Keys
from fila.cli.top.view import View
from tests.unit.cli.conftest import FakeClient, stats, summary


@pytest.fixture
def busy(client, monkeypatch):
    """A broker on which 100 messages are delivered between two looks."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    clock = iter(range(100))
    monkeypatch.setattr("fila.cli.top.samples.time.monotonic", lambda: float(next(clock)))
    looks = iter(range(100))

    def queue_stats(name, max_keys=20, **_):
        seen = stats(name)
        number = next(looks)
        keys = tuple(replace(key, delivered=key.delivered + 100 * number) for key in seen.keys)
        return replace(seen, keys=keys, counters=replace(seen.counters, delivered=7 + 100 * number))

    monkeypatch.setattr(client, "queue_stats", queue_stats)
    client.queues = [summary("orders"), summary("idle", depth=0, in_flight=0)]
    return client


def test_one_queue_shows_rates_shares_limits_waits_and_consumers(fila, busy):
    shown = fila("top", "orders", "--once").stdout
    for part in ("out 100/s", "depth 12,000", "acme", "100% of 75%", "throttled", "provider:aws", "rate=5"):
        assert part in shown
    assert "half up to 1.0 s, 99 % up to 2.0 s: throttle 83%, no consumer 17%" in shown
    assert "#4 2/100" in shown


@pytest.mark.parametrize("held, told", [(80, False), (95, True)])
def test_a_queue_says_how_full_it_is_and_warns_when_it_nearly_is(fila, client, monkeypatch, held, told):
    limited = replace(
        stats("orders"), script_error="", capacity=CapacityStats(messages=held, bytes=10, max_depth=100, max_bytes=1000)
    )
    monkeypatch.setattr(client, "queue_stats", lambda *_, **__: limited)
    shown = fila("top", "orders", "--once").stdout
    assert f"% full {held}" in shown
    assert (f"The queue is {held}% full." in shown) is told


def test_all_queues_are_shown_the_fullest_first(fila, busy):
    lines = fila("top", "--once").stdout.splitlines()
    assert lines[1].split()[:3] == ["QUEUE", "DEPTH", "RUNNABLE"]
    assert lines[2].startswith("orders")
    assert lines[3].startswith("idle")


def test_what_does_not_fit_is_counted(fila, busy):
    assert "1 more queue: " in fila("top", "--once", "--keys", "1").stdout


def test_a_look_in_json_has_rates(fila, busy):
    shown = json.loads(fila("top", "orders", "--once", "--json").stdout)
    (queue,) = shown["queues"]
    assert queue["name"] == "orders"
    assert queue["per_second"]["delivered"] == 100


def test_a_live_view_needs_a_terminal(fila, busy):
    result = fila("top")
    assert result.exit_code == 2
    assert "--once or --json" in result.stderr


def test_names_cannot_command_the_terminal(fila, busy):
    busy.queues = [summary("evil\x1b[2J")]
    assert "\x1b[2J" not in fila("top", "--once").stdout


class TestTheGrid:
    COLUMNS = (Column("NAME", 0, left=True), Column("FIRST", 1), Column("LAST", 3), Column("SECOND", 2))

    @given(st.lists(st.tuples(*[st.text(max_size=40)] * 4), max_size=5), st.integers(1, 120))
    def test_no_line_is_wider_than_the_screen(self, rows, width):
        cells = [[Cell(text) for text in row] for row in rows]
        assert all(cell_len(line) <= width for line in grid(self.COLUMNS, cells, width))

    def test_the_least_important_columns_give_way(self):
        rows = [[Cell("a" * 10), Cell("1"), Cell("2"), Cell("3")]]
        shown = {width: grid(self.COLUMNS, rows, width)[0].split() for width in (None, 31, 30, 24, 16)}
        assert shown[None] == shown[31] == ["NAME", "FIRST", "LAST", "SECOND"]
        assert shown[30] == ["NAME", "FIRST", "SECOND"]
        assert shown[24] == ["NAME", "FIRST"]
        assert shown[16] == ["NAME"]

    def test_of_a_long_name_beginning_and_end_stay(self):
        names = [[Cell(f"team-with-a-long-name-{number}")] for number in (17, 18)]
        assert grid([Column("NAME", 0, left=True)], names, 16)[1:] == ["team-wi...ame-17", "team-wi...ame-18"]


class TestKeys:
    @pytest.mark.parametrize(
        "data, keys",
        [
            (b"qs", ["q", "s"]),
            (b"\x1b[A\x1bOB\r\n", ["up", "down", "enter", "enter"]),
            (b"\x1b", ["esc"]),
            (b"\x1b[5~\x7f", ["page up", "backspace"]),
            (b"\x1b[1;5D\x00\x01\xff\xc3\xa4", []),
        ],
    )
    def test_have_names(self, data, keys):
        assert Keys().feed(data) == keys

    def test_may_come_in_pieces(self):
        keys = Keys()
        assert [keys.feed(piece) for piece in (b"j\x1b[", b"A", b"\x1b[9", b"9" * 40, b"q")][-1] == ["q"]
        keys = Keys()
        assert (keys.feed(b"\x1b["), keys.feed(b"B")) == ([], ["down"])

    @given(st.lists(st.binary(max_size=40)))
    def test_any_bytes_are_known_keys_or_none(self, pieces):
        keys = Keys()
        for piece in pieces:
            assert all(key.isprintable() for key in keys.feed(piece))
        assert keys.feed(b"\r\r")[-1] == "enter"


class TestView:
    NAMES = ("a", "b", "c")

    def press(self, view, *keys):
        for key in keys:
            view = view.press(key, self.NAMES)
        return view

    def test_a_queue_is_chosen_and_opened(self):
        assert self.press(View(), "enter").queue == "a"
        assert self.press(View(), "down", "j", "down", "down", "enter").queue == "c"
        assert self.press(View(), "page down", "up", "k", "k", "enter").queue == "a"
        assert View().press("enter", ()).queue is None

    @pytest.mark.parametrize("key", ["esc", "left", "backspace"])
    def test_back_leads_to_all_queues_and_to_the_one_that_was_open(self, key):
        assert self.press(View(queue="b"), key) == View(selected="b")

    def test_a_chosen_one_that_is_gone_is_the_first(self):
        assert View(selected="gone").marked(self.NAMES) == "a"
        assert View(selected="b").marked(self.NAMES) == "b"
        assert View(selected="gone").marked(()) == ""

    def test_sorting_goes_through_all_orders(self):
        seen = [self.press(View(), *"s" * count).order for count in range(len(QUEUE_ORDERS) + 1)]
        assert seen == [*QUEUE_ORDERS, QUEUE_ORDERS[0]]
        seen = [self.press(View(queue="a"), *"s" * count).sort for count in range(len(KEY_SORTS) + 1)]
        assert seen == [*KEY_SORTS, KEY_SORTS[0]]

    @given(st.lists(st.sampled_from(["up", "down", "enter", "esc", "s", "x", "page up", "right"])))
    def test_other_keys_do_nothing_and_none_fails(self, keys):
        view = self.press(View(), *keys)
        assert view.press("x", self.NAMES) is view
        assert view.queue in {None, *self.NAMES}


@pytest.mark.parametrize("queue", [None, "orders"])
@pytest.mark.parametrize("width, height", [(80, 23), (40, 10), (20, 5), (200, 60), (1, 1)])
def test_a_screen_is_not_wider_than_the_terminal(width, height, queue):
    client = FakeClient(queues=[summary(f"{'long-' * 20}{number}") for number in range(100)])
    samples = Samples(client, queue, 20, "pending")
    samples.take()
    lines = screen_of(samples, View(queue), width, height)
    assert all(cell_len(line) <= max(width, 16) for line in lines)


def test_queues_are_shown_on_the_page_of_the_chosen_one():
    client = FakeClient(queues=[summary(f"q{number:02}") for number in range(25)])
    samples = Samples(client, None, 10, "pending", order="name", selected="q12")
    assert list(samples.take().stats) == [f"q{number:02}" for number in range(10, 20)]


def test_a_queue_that_is_deleted_while_all_are_looked_at_is_left_out(monkeypatch):
    client = FakeClient(queues=[summary("stays"), summary("goes")])

    def queue_stats(name, *_):
        if name == "goes":
            raise QueueNotFoundError(name)
        return stats(name)

    monkeypatch.setattr(client, "queue_stats", queue_stats)
    assert list(Samples(client, None, 10, "pending").take().stats) == ["stays"]
