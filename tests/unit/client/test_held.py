"""What a client holds, and what is due to be extended."""

from hypothesis import given
from hypothesis import strategies as st

from fila.client.held import HeldLeases


def due(held: HeldLeases, owner: str = "me") -> dict[str, set[str]]:
    return {lease_id: set(ids) for _, lease_id, ids in held.due(owner)}


def test_what_came_since_the_last_time_is_not_extended_yet():
    held = HeldLeases()
    held.add("me", "q", "l", ["a"])
    assert due(held) == {}
    held.add("me", "q", "m", ["b"])
    assert due(held) == {"l": {"a"}}
    assert due(held) == {"l": {"a"}, "m": {"b"}}


def test_settled_messages_are_forgotten_and_empty_leases_with_them():
    held = HeldLeases()
    held.add("me", "q", "l", ["a", "b"])
    due(held)
    held.forget("q", "l", ["a"])
    assert due(held) == {"l": {"b"}}
    held.forget("q", "l", ["b", "unknown"])
    assert due(held) == {}
    assert len(held) == 0


def test_without_a_lease_id_a_message_is_found_in_its_queue():
    held = HeldLeases()
    held.add("me", "q", "l", ["a"])
    held.add("me", "other", "l", ["a"])
    held.forget("q", "", ["a"])
    assert len(held) == 1


def test_consumers_do_not_extend_for_each_other():
    held = HeldLeases()
    held.add("me", "q", "l", ["a"])
    held.add("you", "q", "m", ["b"])
    due(held), due(held, "you")
    assert due(held, "you") == {"m": {"b"}}
    held.forget_owner("you")
    assert due(held, "you") == {}
    assert due(held) == {"l": {"a"}}


steps = st.tuples(st.booleans(), st.sampled_from("lmn"), st.sets(st.sampled_from("abcd")))


@given(st.lists(steps))
def test_held_is_what_was_delivered_and_not_settled(history):
    held, model = HeldLeases(), set()
    for delivered, lease, ids in history:
        pairs = {(lease, each) for each in ids}
        if delivered:
            held.add("me", "q", lease, ids)
            model |= pairs
        else:
            held.forget("q", lease, ids)
            model -= pairs
    due(held)
    assert {(lease, each) for lease, ids in due(held).items() for each in ids} == model
