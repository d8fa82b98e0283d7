"""Rights in a store that somebody else writes."""

import pytest

from fila.auth.keys import Key, new_key
from fila.auth.records import Assignment, Principal
from fila.auth.registry import Put, Remove
from fila.broker.access import has_keys, write_changes
from fila.server.first_key import ADMIN, rights_of
from fila.storage.base import Batch
from fila.storage.memory import MemoryStorage

NOW = 1


class OneLook(MemoryStorage):
    """A store in which nobody reads more than he needs."""

    def scan(self, family, start=b"", end=None):
        raise AssertionError("all of it is read")


def change(store, *changes):
    batch = Batch()
    write_changes(batch, changes)
    store.write(batch)


@pytest.mark.parametrize("store", [MemoryStorage, OneLook])
def test_whether_there_is_a_key_is_told_by_one_look(store):
    store = store()
    assert not has_keys(store)
    change(store, Put(Principal("p", (Assignment(ADMIN),), NOW)))
    assert not has_keys(store)
    first, second = (new_key("p", NOW)[0] for _ in range(2))
    change(store, Put(first), Put(second))
    assert has_keys(store)
    change(store, Remove(Key, first.id))
    assert has_keys(store)
    change(store, Remove(Key, second.id))
    assert not has_keys(store)


def test_it_says_what_all_rights_together_say():
    store = MemoryStorage()
    for changes in ([], [Put(Principal("p", (), NOW))], [Put(new_key("p", NOW)[0])]):
        change(store, *changes)
        assert has_keys(store) is rights_of(store).enforced
