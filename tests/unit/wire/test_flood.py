"""A budget: a burst, then a rate."""

from fila.wire.flood import FloodLimit


def test_a_burst_then_a_rate():
    budget = FloodLimit(3, per_s=2)
    assert [budget.spend(10.0) for _ in range(4)] == [True, True, True, False]
    assert [budget.spend(10.5), budget.spend(10.5)] == [True, False]


def test_it_never_holds_more_than_the_burst_and_time_that_goes_back_gives_nothing():
    budget = FloodLimit(2, per_s=1)
    budget.spend(0.0)
    assert [budget.spend(1000.0) for _ in range(3)] == [True, True, False]
    assert not budget.spend(500.0)
