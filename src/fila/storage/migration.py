"""Bringing a store of an older format to the present one, when it is opened.

`STEPS` says for each older format which entries have to be changed, how, and which format the store has then. The
format is written, durably, after the last one. So a start that is killed in the middle begins the step again, and goes
over entries that it has changed already: they are told by their version byte. What only looks at a store (`check`)
changes nothing, and reads each entry through the same steps (`as_present`).

Add a step: raise `FORMAT` in `format.py`, and write here what makes a store of the format before it readable. Even a
step that changes nothing has a row: from then on an older broker refuses the store instead of misreading it. Keep a
store of the old format for the tests: `tests/fixtures/stores/make.py`.
"""

from collections.abc import Callable, Iterator
from struct import Struct, error
from typing import Final, NamedTuple

from fila.core.errors import StoreCorrupt
from fila.storage import codec, keys
from fila.storage.base import Batch, Family, Storage

AT_ONCE: Final = 1_000
"""Entries of one write"""

_UNCHECKED = Struct(">BQ")  # version, heard at: a producer's batch in format 4
_PLAIN = bytes([codec.VERSION])

Progress = Callable[[int, int, int], None]
"""Is told the format that is left, the one that is made, and how many entries are changed"""


class Step(NamedTuple):
    """All steps so far change producers' batches of version 1."""

    to: int
    change: Callable[[bytes], bytes]
    """Raises StoreCorrupt."""


def _producer_of_4(value: bytes) -> bytes:
    """Format 4 has no checksum of a producer's batch, and both 4 and 5 say version 1: so they go straight to version 2,
    which tells an entry that is done. Without its checksum a batch that is sent again is believed to be the same.
    """
    try:
        _, heard_at = _UNCHECKED.unpack_from(value)
    except error as cause:
        raise StoreCorrupt("a producer's batch cannot be read") from cause
    return _rewritten(heard_at, codec.NO_DIGEST, value[_UNCHECKED.size :])


def _producer_of_5(value: bytes) -> bytes:
    """Format 5 has no epoch of a producer: it is its first."""
    known = codec.read_produced(value)
    return codec.produced(known.heard_at, known.digest, known.epoch, known.results)


def _rewritten(heard_at: int, digest: int, results: bytes) -> bytes:
    """Results are written alike in all formats."""
    value = codec.produced(heard_at, digest, 0, ()) + results
    codec.read_produced(value)
    return value


STEPS: Final = {4: Step(6, _producer_of_4), 5: Step(6, _producer_of_5)}


def as_present(found: int, family: Family, key: bytes, value: bytes) -> bytes:
    """What the value of an entry is after a migration from the format that was found. Raises StoreCorrupt."""
    while (step := STEPS.get(found)) is not None:
        if family is Family.DEDUP and key.startswith(keys.PRODUCER_MARK) and value[:1] == _PLAIN:
            value = step.change(value)
        found = step.to
    return value


def _batches(store: Storage, step: Step) -> Iterator[Batch]:
    """What is left to change, a few entries at a time."""
    batch = Batch()
    for key, value in store.scan(Family.DEDUP, keys.PRODUCER_MARK, keys.after(keys.PRODUCER_MARK)):
        if value[:1] == _PLAIN:
            batch.put(Family.DEDUP, key, step.change(value))
        if len(batch) >= AT_ONCE:
            yield batch
            batch = Batch()
    if len(batch):
        yield batch


def migrate(
    store: Storage, found: int, wanted: int, done: Callable[[int], None], progress: Progress = lambda *_: None
) -> int:
    """Take every step from the format that was found to the one that is wanted. `done` makes what was written durable
    and notes the new format. Returns how many entries changed.
    """
    changed = 0
    while found < wanted:
        step = STEPS[found]
        progress(found, step.to, changed)
        for batch in _batches(store, step):
            store.write(batch)
            changed += len(batch)
            progress(found, step.to, changed)
        done(step.to)
        found = step.to
    return changed
