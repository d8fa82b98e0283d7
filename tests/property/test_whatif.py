"""A replay of the journal chooses again what the broker chose, whatever happened to the broker."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from fila.pipelines.whatif.follow import follow
from tests.helpers.whatif import busy, entries_of
from tests.property.test_broker_model import BrokerMachine

MOMENTS = st.sampled_from([0, 0, 1, 999, 1500, 2_000, 2_000, 30_000, 30_000, 601_000])


class WhatifMachine(BrokerMachine):
    """The broker with all that can happen to it; at the end its journal is followed.

    A real clock shows each tick another time, and so it does here.
    """

    @rule(ms=MOMENTS)
    def tick(self, ms: int) -> None:
        self.driver.now += 1
        super().tick(ms)

    @rule(ms=MOMENTS)
    def tick_that_is_put_off(self, ms: int) -> None:
        self.driver.now += 1
        super().tick_that_is_put_off(ms)

    @rule(ms=MOMENTS)
    def tick_that_cannot_write(self, ms: int) -> None:
        self.driver.now += 1
        super().tick_that_cannot_write(ms)

    @rule()
    def crash(self) -> None:
        """With a clock that does not go back."""
        super().crash(0)

    def teardown(self) -> None:
        told = entries_of(self.driver)
        found = follow(told)
        assert (found.different, found.unknown, found.first) == (0, 0, [])
        assert found.alike + found.skipped == sum(entry.kind == "leased" for entry in told)


TestWhateverHappens = pytest.mark.timeout(900)(WhatifMachine.TestCase)
TestWhateverHappens.settings = settings(max_examples=100, stateful_step_count=40)


@pytest.mark.timeout(900)
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32))
def test_many_keys_that_compete_are_chosen_again(seed):
    told = busy(seed).entries()
    found = follow(told)
    assert (found.different, found.unknown, found.skipped) == (0, 0, 0)
    assert found.alike == sum(entry.kind == "leased" for entry in told)
