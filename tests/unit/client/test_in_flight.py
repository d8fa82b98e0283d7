"""What a client holds, and what is due to be extended."""

from hypothesis import given
from hypothesis import strategies as st

from fila.client.in_flight import InFlight


def due(in_flight: InFlight, owner: str = "me") -> dict[str, set[str]]:
    return {lease_id: set(ids) for _, lease_id, ids in in_flight.due(owner)}


def test_what_came_since_the_last_time_is_not_extended_yet():
    in_flight = InFlight()
    in_flight.add("me", "q", "l", ["a"])
    assert due(in_flight) == {}
    in_flight.add("me", "q", "m", ["b"])
    assert due(in_flight) == {"l": {"a"}}
    assert due(in_flight) == {"l": {"a"}, "m": {"b"}}


def test_settled_messages_are_forgotten_and_empty_leases_with_them():
    in_flight = InFlight()
    in_flight.add("me", "q", "l", ["a", "b"])
    due(in_flight)
    in_flight.forget("q", "l", ["a"])
    assert due(in_flight) == {"l": {"b"}}
    in_flight.forget("q", "l", ["b", "unknown"])
    assert due(in_flight) == {}
    assert len(in_flight) == 0


def test_without_a_lease_id_a_message_is_found_in_its_queue():
    in_flight = InFlight()
    in_flight.add("me", "q", "l", ["a"])
    in_flight.add("me", "other", "l", ["a"])
    in_flight.forget("q", "", ["a"])
    assert len(in_flight) == 1


def test_consumers_do_not_extend_for_each_other():
    in_flight = InFlight()
    in_flight.add("me", "q", "l", ["a"])
    in_flight.add("you", "q", "m", ["b"])
    due(in_flight), due(in_flight, "you")
    assert due(in_flight, "you") == {"m": {"b"}}
    in_flight.forget_owner("you")
    assert due(in_flight, "you") == {}
    assert due(in_flight) == {"l": {"a"}}


steps = st.tuples(st.booleans(), st.sampled_from("lmn"), st.sets(st.sampled_from("abcd")))


@given(st.lists(steps))
def test_held_is_what_was_delivered_and_not_settled(history):
    in_flight, model = InFlight(), set()
    for delivered, lease, ids in history:
        pairs = {(lease, each) for each in ids}
        if delivered:
            in_flight.add("me", "q", lease, ids)
            model |= pairs
        else:
            in_flight.forget("q", lease, ids)
            model -= pairs
    due(in_flight)
    assert {(lease, each) for lease, ids in due(in_flight).items() for each in ids} == model
