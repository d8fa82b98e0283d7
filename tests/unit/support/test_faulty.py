"""The store that fails on purpose."""

import pytest

from fila.core.errors import StoreFailed, StoreFull
from fila.storage.base import Batch, Family
from fila.storage.memory import MemoryStorage
from tests.support.faulty import FaultyStorage


def write(store, key):
    batch = Batch()
    batch.put(Family.MESSAGES, key, b"")
    store.write(batch)


def kept(store):
    return [key for key, _ in store.scan(Family.MESSAGES)]


def outcomes(store, keys):
    """Which of some writes were refused."""
    refused = []
    for key in keys:
        try:
            write(store, key)
        except StoreFailed:
            refused.append(key)
    return refused


def test_the_nth_write_fails_and_is_not_applied():
    """All others are as if it had never been tried."""
    store = FaultyStorage(MemoryStorage(), fail_on=2)
    assert outcomes(store, [b"1", b"2", b"3"]) == [b"2"]
    assert kept(store) == [b"1", b"3"]
    assert (store.writes, store.refused) == (3, 1)


def test_writes_fail_until_it_is_healed():
    """After some that work, none does; then all do."""
    store = FaultyStorage(MemoryStorage(), fail_after=1)
    assert outcomes(store, [b"1", b"2", b"3"]) == [b"2", b"3"]
    store.heal()
    assert outcomes(store, [b"4"]) == []
    assert kept(store) == [b"1", b"4"]


def test_it_can_break_at_any_time():
    """A test decides when."""
    store = FaultyStorage(MemoryStorage())
    assert outcomes(store, [b"1"]) == []
    store.break_now()
    assert outcomes(store, [b"2"]) == [b"2"]
    assert store.get(Family.MESSAGES, b"1") == b""
    assert store.get_many(Family.MESSAGES, [b"1", b"2"]) == [b"", None]


def test_it_fails_the_way_it_is_told():
    """A full disk is one way."""
    store = FaultyStorage(MemoryStorage(), fail_on=1, error=lambda: StoreFull("no room"))
    with pytest.raises(StoreFull):
        write(store, b"1")
    store.close()
