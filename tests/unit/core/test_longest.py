"""The longest fairness key is found whatever grew and shrank, though only growth is told."""

from hypothesis import given
from hypothesis import strategies as st

from fila.core.fair_key import FairKey
from fila.core.longest import LongestKeys

steps = st.lists(
    st.tuples(st.sampled_from(["grow", "grow", "shrink", "ask"]), st.sampled_from("abcd"), st.integers(1, 4))
)


@given(steps)
def test_it_is_the_one_with_most_messages_or_the_first_of_them(steps):
    keys: dict[str, FairKey] = {}
    longest = LongestKeys(keys)
    for what, name, count in steps:
        if what == "grow":
            key = keys.setdefault(name, FairKey(name))
            key.outside_lanes += count
            longest.grew([key])
        elif what == "shrink" and name in keys:
            keys[name].outside_lanes = max(0, keys[name].outside_lanes - count)
            if not keys[name].outside_lanes:
                del keys[name]
        elif what == "ask":
            expected = min(((-key.live, key.name) for key in keys.values()), default=None)
            found = longest.peek({})
            assert found == (expected and (-expected[0], expected[1]))


def test_what_is_to_go_is_counted_as_gone():
    keys = {name: FairKey(name) for name in "ab"}
    keys["a"].outside_lanes, keys["b"].outside_lanes = 5, 4
    longest = LongestKeys(keys)
    assert longest.peek({}) == (5, "a")
    assert longest.peek({"a": 2}) == (4, "b")
