from fila.auth.failed_logins import FORGET_S, LONGEST_S, MAX_ADDRESSES, FailedLogins


def test_each_failure_in_a_row_waits_twice_as_long_up_to_a_limit():
    failed = FailedLogins()
    waits = [failed.fail("203.0.113.9", 0.0)[1] for _ in range(20)]
    assert waits[:3] == [0.05, 0.1, 0.2]
    assert waits[-1] == max(waits) == LONGEST_S


def test_after_a_while_without_one_it_begins_anew():
    failed = FailedLogins()
    for _ in range(5):
        failed.fail("203.0.113.9", 0.0)
    assert failed.fail("203.0.113.9", FORGET_S + 1) == (1, 0.05)


def test_a_network_of_ipv6_counts_as_one():
    failed = FailedLogins()
    assert [failed.fail(f"2001:db8::{n}", 0.0)[0] for n in (1, 2, 3)] == [1, 2, 3]
    assert failed.fail("2001:db8:0:1::1", 0.0)[0] == 1


def test_memory_is_bounded():
    failed = FailedLogins()
    for number in range(MAX_ADDRESSES + 500):
        failed.fail(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0.0)
    assert len(failed) == MAX_ADDRESSES
