"""Sizes by sequence number are those of a dictionary, in little memory."""

from hypothesis import given
from hypothesis import strategies as st

from fila.core import sizes
from fila.core.sizes import Sizes

steps = st.lists(st.tuples(st.sampled_from(["next", "next", "any", "take", "take first"]), st.integers(0, 400)))


@given(steps)
def test_it_is_as_a_dictionary(steps):
    found, model, last = Sizes(), {}, 0
    for what, number in steps:
        if what in {"next", "any"}:
            seq = last + 1 + number % 3 if what == "next" else number
            assert found.add(seq, number) == (seq not in model)
            model.setdefault(seq, number)
            last = max(last, seq)
        else:
            seq = number if what == "take" else min(model, default=0)
            assert found.get(seq) == model.get(seq, 0)
            assert found.take(seq) == model.pop(seq, 0)
        assert len(found) == len(model)
    assert {seq: found.take(seq) for seq in list(model)} == model
    assert not found._chunks


def test_many_that_come_late_find_their_place(monkeypatch):
    monkeypatch.setattr(sizes, "CHUNK", 4)
    found = Sizes()
    for seq in [*range(0, 200, 2), *range(199, 0, -2)]:
        found.add(seq, seq)
    assert all(len(chunk.seqs) <= 8 for chunk in found._chunks)
    assert [found.take(seq) for seq in range(200)] == list(range(200))


def test_one_that_stays_does_not_keep_the_places_of_all_that_came_after_it():
    found = Sizes()
    for seq in range(50_000):
        found.add(seq, 1)
        if seq:
            found.take(seq)
    assert len(found) == 1
    assert sum(len(chunk.seqs) for chunk in found._chunks) < 2 * sizes.CHUNK
