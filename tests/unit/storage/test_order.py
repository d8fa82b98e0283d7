"""Sorting keys that come as short ascending runs."""

from hypothesis import given
from hypothesis import strategies as st

from fila.storage.order import positions_in_order

some_keys = st.lists(st.integers(0, 50).map(lambda number: number.to_bytes(8, "big")))


@given(some_keys)
def test_keys_of_any_order_are_sorted(keys):
    """Also where the runs are of any length, or a key stands twice."""
    positions = positions_in_order(keys)
    if positions is None:
        positions = list(range(len(keys)))
    assert sorted(positions) == list(range(len(keys)))
    assert [keys[at] for at in positions] == sorted(keys)


def test_keys_that_ascend_stay_as_they_are():
    keys = [b"a", b"b", b"c"]
    assert positions_in_order(keys) is None
    assert positions_in_order([b"a", b"a"]) == [0, 1], "whoever takes them for ascending must not meet one twice"


@given(st.integers(100, 200), st.integers(2, 8), st.integers(0, 7))
def test_turns_of_many_tenants_are_sorted_in_one_pass(tenants, quantum, cut):
    """What tenants have their turns for came in the order of their turns: sorting then compares neighbours only."""
    compared = 0

    class Key(bytes):
        def __lt__(self, other):
            nonlocal compared
            compared += 1
            return bytes.__lt__(self, other)

    keys = [Key((at * tenants + who).to_bytes(4, "big")) for who in range(tenants) for at in range(quantum)][cut:]
    positions = positions_in_order(keys)
    assert positions is not None
    assert [bytes(keys[at]) for at in positions] == sorted(map(bytes, keys))
    assert compared <= 2 * len(keys)
