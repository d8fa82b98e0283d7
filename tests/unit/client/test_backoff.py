"""How long to wait before the next attempt."""

from fila.client.backoff import ASKED_MOST_S, Backoff


def test_a_broker_can_ask_for_a_longer_pause_but_not_for_hours():
    backoff = Backoff(first_s=0.02, most_s=0.04)
    assert [backoff.next_wait_s(asked_s) for asked_s in (7.0, 3600.0)] == [7.0, ASKED_MOST_S]
    assert 0.02 <= backoff.next_wait_s() <= 0.04
