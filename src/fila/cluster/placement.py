"""Which worker has which queue.

The shard of a queue is `jump_hash(fnv1a_64(name), shards)`, and shard *n* is worker *n*'s. A dead-letter queue is with
its queue, so that a message moves between them in one write. Clients compute the same (docs/protocol.md, Clusters).
"""

from functools import lru_cache
from typing import Final

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_U64: Final = (1 << 64) - 1
_STEP: Final = 2862933555777941757
DEAD_LETTERS: Final = ".dlq"


def fnv1a_64(data: bytes) -> int:
    """FNV-1a of 64 bits."""
    value = _OFFSET
    for byte in data:
        value = (value ^ byte) * _PRIME & _U64
    return value


def jump_hash(key: int, buckets: int) -> int:
    """The bucket of a key: Lamping and Veach's jump consistent hash."""
    chosen, candidate = -1, 0
    while candidate < buckets:
        chosen = candidate
        key = (key * _STEP + 1) & _U64
        candidate = int((chosen + 1) * ((1 << 31) / ((key >> 33) + 1)))
    return chosen


@lru_cache(maxsize=1 << 14)
def shard_of(queue: str, shards: int) -> int:
    """The shard of a queue, or of a dead-letter queue. Any text has one, also what is no name of a queue."""
    return jump_hash(fnv1a_64(queue.removesuffix(DEAD_LETTERS).encode(errors="replace")), shards)
