"""Patterns are globs by dot segments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.auth.patterns import check_pattern, matches

SEGMENT = st.text("ab-*", min_size=1, max_size=7).filter(lambda text: "**" not in text)
NAMES = st.lists(st.text("ab-", max_size=8), min_size=1, max_size=4).map(".".join)


@st.composite
def patterns(draw):
    segments = draw(st.lists(SEGMENT, max_size=3))
    last = draw(st.sampled_from([[], ["**"]]))
    return ".".join(segments + last) or "**"


def expected(pattern: list[str], name: list[str]) -> bool:
    """The rule, segment by segment, without regular expressions."""
    if not pattern or not name:
        return not pattern and not name
    if pattern == ["**"]:
        return ".".join(name) != ""
    return letters(pattern[0], name[0]) and expected(pattern[1:], name[1:])


def letters(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(letters(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return bool(text) and text[0] == pattern[0] and letters(pattern[1:], text[1:])


@given(patterns(), NAMES)
def test_a_pattern_matches_what_the_rule_says(pattern, name):
    check_pattern(pattern)
    assert matches(pattern, name) == expected(pattern.split("."), name.split("."))


@pytest.mark.parametrize(
    "pattern, name, fits",
    [
        ("orders", "orders", True),
        ("orders.*", "orders.new", True),
        ("orders.*", "orders.new.eu", False),
        ("orders.*", "orders", False),
        ("orders.**", "orders.new.eu", True),
        ("orders.**", "orders", False),
        ("orders.**", "ordersx.new", False),
        ("**", "anything.at:all\n", True),
        ("orders-*", "orders-eu", True),
        ("*.eu", "orders.eu", True),
        ("a+b", "aab", False),
        ("Orders", "orders", False),
    ],
)
def test_examples(pattern, name, fits):
    assert matches(pattern, name) is fits


@pytest.mark.parametrize("pattern", ["", "orders**", "**.orders", "a.**.b", "***", "x" * 301, "a\nb"])
def test_patterns_that_mean_nothing_are_refused(pattern):
    with pytest.raises(ValueError):
        check_pattern(pattern)


@pytest.mark.parametrize("stars", [5, 50, 149])
def test_many_stars_take_no_time(stars):
    """Fails by the timeout of the test: trying every way to place the stars would take years."""
    assert not matches("*a" * stars + "*b", "a" * 255)
    assert matches("*a" * stars + "*", "a" * 255)
