"""The copy of a member as the store of its broker."""

from fila.broker.commit import LocalCommitter
from fila.core.errors import StoreFailed
from fila.core.ids import NODE_BITS
from fila.replicas.shared import SharedCommitter, SharedStore, node_of
from fila.storage.base import Batch, Family
from fila.storage.memory import MemoryStorage
from tests.helpers.broker import LateCommitter, WatchedStore


def put(key):
    batch = Batch()
    batch.put(Family.STATE, key, b"")
    return batch


def keys_in(store):
    return [key for key, _ in store.scan(Family.STATE)]


def test_what_a_start_writes_is_written_with_the_first_tick():
    copy = MemoryStorage()
    store = SharedStore(copy, 1)
    store.write(put(b"left"))
    assert keys_in(copy) == []
    done = []
    SharedCommitter(store, LocalCommitter(copy)).write(put(b"tick"), done.append)
    assert done == [None]
    assert keys_in(store) == [b"left", b"tick"]
    assert store.left == []


def test_it_is_written_with_the_next_one_when_that_fails():
    copy = WatchedStore(MemoryStorage())
    store, committer = SharedStore(copy, 1), LateCommitter(copy)
    shared = SharedCommitter(store, committer)
    store.write(put(b"left"))
    done = []
    shared.write(put(b"tick"), done.append)
    committer.finish(StoreFailed("no room"))
    assert keys_in(copy) == []
    shared.write(put(b"next"), done.append)
    committer.finish()
    assert keys_in(copy) == [b"left", b"next"]


def test_what_comes_while_a_tick_is_written_is_written_with_the_next_one():
    copy = MemoryStorage()
    store, committer = SharedStore(copy, 1), LateCommitter(copy)
    shared = SharedCommitter(store, committer)
    for key in (b"left", b"meanwhile"):
        store.write(put(key))
        if key == b"left":
            shared.write(put(b"tick"), lambda error: None)
    committer.finish()
    assert keys_in(copy) == [b"left", b"tick"]
    shared.write(put(b"tick 2"), lambda error: None)
    committer.finish()
    assert keys_in(copy) == [b"left", b"meanwhile", b"tick", b"tick 2"]
    assert store.left == []


def test_a_batch_that_is_tried_again_is_as_it_was():
    """The engine makes a new one, but nobody has to know that."""
    store = SharedStore(MemoryStorage(), 1)
    store.write(put(b"left"))
    batch = put(b"tick")
    SharedCommitter(store, LocalCommitter(MemoryStorage())).write(batch, lambda _: None)
    assert len(batch) == 1


def test_all_members_of_a_cluster_make_the_same_ids_and_others_do_not():
    assert node_of("orders") == node_of("orders") != node_of("mails")
    assert 0 <= node_of("orders") < 1 << NODE_BITS


def test_closing_leaves_the_copy_open():
    copy = MemoryStorage()
    SharedStore(copy, 1).close()
    assert keys_in(copy) == []
