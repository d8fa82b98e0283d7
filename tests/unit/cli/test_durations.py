"""Times on the command line are written in one way."""

from fractions import Fraction

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.cli.durations import AGE_MS, MILLISECONDS, SECONDS, Duration, milliseconds
from fila.cli.main import cli
from website.reference.cli import commands

SECONDS_OF = {"ms": Fraction(1, 1000), "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


@given(st.integers(0, 10**4), st.integers(0, 999), st.sampled_from(sorted(SECONDS_OF)))
def test_a_number_and_a_unit(whole, part, unit):
    expected = (whole + Fraction(part, 1000)) * SECONDS_OF[unit] * 1000
    assert milliseconds(f"{whole}.{part:03}{unit}") == pytest.approx(float(expected))
    assert milliseconds(f"{whole}{unit}") == whole * SECONDS_OF[unit] * 1000


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        " ",
        "s",
        "-1s",
        "1 s",
        "1e3s",
        "1.s",
        ".5s",
        "inf",
        "nan",
        "1y",
        "1S",
        "٣s",
        "1s\n",
        "9" * 400 + "d",
        "36501d",
    ],
)
def test_what_is_no_time_is_refused(wrong):
    with pytest.raises(ValueError, match="is not a time such as"):
        milliseconds(wrong, "s")


def test_a_number_without_a_unit_is_in_the_unit_of_the_option():
    assert MILLISECONDS.convert("250", None, None) == 250
    assert SECONDS.convert("250", None, None) == 250.0
    assert SECONDS.convert("250ms", None, None) == 0.25
    with pytest.raises(click.BadParameter):
        AGE_MS.convert("250", None, None)


def test_a_time_out_of_range_is_refused():
    kind = Duration("s", bare="s", low_s=0.1, high_s=60)
    assert kind.convert("1m", None, None) == 60
    for wrong in ("99ms", "61s"):
        with pytest.raises(click.BadParameter, match=r"at least 0\.1s and at most 60s"):
            kind.convert(wrong, None, None)


def test_every_option_that_is_a_time_is_written_so():
    """No option of any command counts milliseconds or seconds in a way of its own."""
    left = [
        (" ".join(path), option.name)
        for path, command in commands(cli, ("fila",))
        for option in command.params
        if option.metavar in {"MS", "SECONDS", "TIME"} and not isinstance(option.type, Duration)
    ]
    assert left == []
