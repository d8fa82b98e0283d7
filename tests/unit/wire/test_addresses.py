"""The addresses of a cluster: one in use, the others in turn."""

import pytest

from fila.wire.addresses import MAX_ADDRESSES, Addresses


@pytest.mark.parametrize("given", ["a:1,b:2, c:3", ["a:1", " b:2", "c:3"], ("a:1", "b:2", "", "c:3")])
def test_they_are_given_in_one_text_or_as_a_list(given):
    assert Addresses(given).in_turn() == ["a:1", "b:2", "c:3"]


@pytest.mark.parametrize("given", ["", " , ", [], [""]])
def test_there_must_be_one(given):
    with pytest.raises(ValueError, match="host:port is needed"):
        Addresses(given)


def test_the_next_one_takes_over_and_after_the_last_the_first():
    addresses = Addresses("a:1,b:2")
    addresses.leave("a:1")
    assert addresses.in_turn() == ["b:2", "a:1"]
    addresses.leave("a:1")  # of somebody who was late: it is not in use any more
    assert addresses.current == "b:2"
    addresses.leave("b:2")
    assert addresses.current == "a:1"
    addresses.use("b:2")
    assert addresses.current == "b:2"


def test_one_that_a_server_names_is_used_and_remembered():
    addresses = Addresses("a:1")
    assert addresses.follow("c:3")
    assert addresses.in_turn() == ["c:3", "a:1"]


@pytest.mark.parametrize("named", ["", "nowhere", "host:port", "a:99999999"])
def test_what_is_no_address_is_not_followed(named):
    addresses = Addresses("a:1")
    assert not addresses.follow(named)
    assert addresses.in_turn() == ["a:1"]


def test_a_server_that_names_ever_new_ones_takes_no_memory_and_cannot_displace_those_that_were_given():
    addresses = Addresses("a:1,b:2")
    for number in range(1000):
        addresses.follow(f"h{number}:1")
    assert len(addresses) == MAX_ADDRESSES
    assert {"a:1", "b:2", "h999:1"} <= set(addresses.in_turn())
