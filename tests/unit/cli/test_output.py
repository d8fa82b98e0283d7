"""What reaches a terminal."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from fila.cli import output


@given(st.text())
def test_nothing_that_acts_on_a_terminal_survives(text):
    assert output.printable(text).isprintable()


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_ordinary_text_is_left_alone(text):
    assert output.printable(text) == text


def test_escapes_can_be_recognised():
    assert output.printable("a\x1b[31mb\u202e\n") == r"a\x1b[31mb\u202e\n"


def test_what_is_kept_is_kept():
    assert output.printable("a\tb\n", keep="\t") == "a\tb\\n"


@given(st.recursive(st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner)))
def test_json_is_one_printable_ascii_line_that_means_the_same(value):
    line = output.to_json(value)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == value


@pytest.mark.parametrize(
    "milliseconds,words",
    [(0, "0 ms"), (250, "250 ms"), (1500, "1.5 s"), (30_000, "30 s"), (300_000, "5 min"), (3_600_000, "1 h")],
)
def test_durations_are_said_in_the_largest_exact_unit(milliseconds, words):
    assert output.duration(milliseconds) == words


def test_counts_agree_with_their_noun():
    assert output.count(1, "message") == "1 message"
    assert output.count(20_000, "message") == "20,000 messages"


def test_moments_are_in_utc():
    assert output.moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02 03:04:05 UTC"


def test_columns_are_aligned_and_numbers_stand_to_the_right(capsys):
    output.table(("NAME", "DEPTH"), [("a", 5), ("longer name", 12_000)])
    header, short, long = capsys.readouterr().out.splitlines()
    assert len(header) == len(short) == len(long)
    assert long == "longer name  12,000"
    assert short.endswith(" 5")


def test_a_table_is_never_folded_in_a_pipe(capsys):
    output.table(("NAME", "DEPTH"), [("x" * 500, 1)])
    assert "x" * 500 in capsys.readouterr().out


def test_a_cell_cannot_bring_markup_or_escapes(capsys):
    output.table(("NAME", "DEPTH"), [("[red]\x1b[2J", 1)])
    assert r"[red]\x1b[2J" in capsys.readouterr().out


WORDS = st.lists(st.text("ab漢", min_size=1, max_size=20), min_size=1)


@given(WORDS, st.integers(10, 60))
def test_folded_text_breaks_no_part_and_fills_its_lines(parts, width):
    lines = output.folded(parts, gap="  ", indent=3, width=width).split("\n")
    words = [line.split() for line in lines]
    assert [word for line in words for word in line] == parts
    assert all(line.startswith("   ") for line in lines[1:])
    assert all(cell_len(line) <= width or len(line.split()) == 1 for line in lines)
    assert all(cell_len(line) + 2 + cell_len(after[0]) > width for line, after in zip(lines, words[1:], strict=False))


@given(WORDS)
def test_without_a_width_it_is_one_line(parts):
    assert output.folded(parts, gap=" ", indent=3, width=None) == " ".join(parts)


def test_colour_takes_no_room():
    assert output.folded(["\x1b[31mabc\x1b[0m", "def"], gap=" ", indent=0, width=7) == "\x1b[31mabc\x1b[0m def"
