"""The table of a message's life."""

from pathlib import Path

import pytest

from fila.core.lifecycle import COUNTS_AN_ATTEMPT, TRANSITIONS, State, after, diagram

DOCUMENT = Path(__file__).parents[3] / "docs" / "lifecycle.md"


def reachable(start):
    """All states that some way leads to from `start`."""
    found, border = set(), {start}
    while border:
        found |= border
        border = {then for (state, _), then in TRANSITIONS.items() if state in border} - found
    return found


def test_every_state_can_be_reached():
    """No state of the table is unreachable."""
    assert reachable(State.NONE) == set(State)


@pytest.mark.parametrize("state", State)
def test_every_message_can_end(state):
    """From every state some way leads out of the broker."""
    assert State.NONE in reachable(state)


def test_only_a_leased_message_can_be_settled():
    """Acks, nacks, extensions and expiry need a lease."""
    leased = {event for (state, event) in TRANSITIONS if state is State.LEASED}
    others = {event for (state, event) in TRANSITIONS if state is not State.LEASED}
    assert leased & others == {"delete queue"}


def test_what_counts_an_attempt_is_what_brings_a_message_back():
    """Exactly the ways from a lease back to the queue count, but for those that are made not to."""
    back = {
        event
        for (state, event), then in TRANSITIONS.items()
        if state is State.LEASED and then in {State.READY, State.DELAYED}
    }
    assert back - {"release", "release with delay", "never handed"} == COUNTS_AN_ATTEMPT


def test_an_illegal_move_is_refused():
    """What the table does not say cannot happen."""
    assert after(State.READY, "lease") is State.LEASED
    with pytest.raises(KeyError):
        after(State.READY, "ack")


def test_the_documented_diagram_is_the_table():
    """docs/lifecycle.md shows what `diagram()` draws."""
    assert f"```mermaid\n{diagram()}```" in DOCUMENT.read_text()
