"""What must not be enqueued twice."""

from hypothesis import given
from hypothesis import strategies as st

from fila.core.dedup import NOWHERE, DedupKeys, Producers


def test_a_key_is_found_inside_its_window():
    """Until its time is over a key names the message that has it."""
    keys = DedupKeys()
    keys.add("order-1", 7, expires_at=100)
    assert keys.find("order-1", 99) == 7
    assert keys.find("order-1", 100) is None
    assert keys.find("order-2", 0) is None


def test_expired_keys_are_named_oldest_first_and_stay_until_forgotten():
    """Asking changes nothing; forgetting what was named removes it."""
    keys = DedupKeys()
    for seq, name in enumerate("abc", 1):
        keys.add(name, seq, expires_at=10 * seq)
    assert keys.expired(25, 10) == keys.expired(25, 10) == ["a", "b"]
    assert keys.expired(25, 1) == ["a"]
    assert len(keys) == 3
    keys.forget(["a", "b"], 25)
    assert len(keys) == 1
    assert keys.expired(25, 10) == []


def test_a_key_used_anew_outlives_its_first_time():
    """The end of an earlier use does not end a later one."""
    keys = DedupKeys()
    keys.add("a", 1, expires_at=10)
    keys.add("a", 2, expires_at=30)
    assert keys.expired(20, 10) == []
    keys.forget(["a"], 20)
    assert keys.find("a", 20) == 2
    keys.forget(keys.expired(30, 10), 30)
    assert len(keys) == 0


def test_a_key_used_twice_with_one_end_is_forgotten_once():
    """Two uses that end at the same moment are no error."""
    keys = DedupKeys()
    keys.add("a", 1, expires_at=10)
    keys.add("a", 2, expires_at=10)
    keys.forget(keys.expired(10, 10), 10)
    assert len(keys) == 0


@given(st.lists(st.tuples(st.text(max_size=2), st.integers(0, 50))), st.integers(0, 60))
def test_keys_added_in_any_order_expire_in_order_once_sorted(entries, now):
    """As after a restart: whatever the order on disk, all whose time is over are found."""
    keys = DedupKeys()
    for seq, (key, end) in enumerate(entries):
        keys.add(key, seq, end)
    keys.sort()
    keys.forget(keys.expired(now, 1_000), now)
    last = dict(entries)
    assert len(keys) == sum(end > now for end in last.values())


def test_a_producer_is_known_by_its_last_batch():
    """An unknown producer's last batch is 0."""
    producers = Producers()
    producers.advance("p", (0, 3), now=10)
    assert producers.last("p") == (0, 3)
    assert producers.last("q") == NOWHERE


def test_silent_producers_are_named_longest_silent_first():
    """Hearing of a producer again makes it the youngest."""
    producers = Producers()
    for now, name in enumerate("abcd"):
        producers.advance(name, (0, 1), now)
    producers.advance("a", (0, 2), 10)
    assert list(producers.idle(since=2, keep=100)) == ["b", "c"]
    assert list(producers.idle(since=-1, keep=1)) == ["b", "c", "d"]
    assert list(producers.idle(since=-1, keep=100)) == []


def test_forgetting_is_no_error_for_a_stranger():
    """A producer that is not known can be forgotten."""
    producers = Producers()
    producers.advance("p", (0, 1), 0)
    producers.forget("p")
    producers.forget("p")
    assert len(producers) == 0
