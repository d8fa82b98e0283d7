"""Where queues are: as docs/protocol.md says, so that clients compute the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.cluster.placement import fnv1a_64, jump_hash, shard_of


@pytest.mark.parametrize(
    "data, digest",
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_the_hash_is_fnv_1a(data, digest):
    """The test vectors of its authors."""
    assert fnv1a_64(data) == digest


@given(st.integers(0, 2**64 - 1), st.integers(1, 200))
def test_a_bucket_that_is_added_takes_keys_and_moves_no_others(key, buckets):
    """What makes it a consistent hash."""
    before, after = jump_hash(key, buckets), jump_hash(key, buckets + 1)
    assert 0 <= before < buckets
    assert after in {before, buckets}


def test_queues_are_spread_evenly():
    counts = [0] * 4
    for number in range(4000):
        counts[shard_of(f"queue-{number}", 4)] += 1
    assert min(counts) > 850


@given(st.text(max_size=30), st.integers(2, 9))
def test_a_dead_letter_queue_is_with_its_queue(name, shards):
    assert shard_of(f"{name}.dlq", shards) == shard_of(name, shards) or name.endswith(".dlq")
