"""The seam between the engine and what makes a tick durable: the store, or a log that is kept in several places.

Rules of this file:
- one batch at a time: the next one comes after `done` was called for the one before;
- `done` is called once, from the thread of the engine: before `write` returns, or at any later time;
- until then the store is as it was before the batch. When `done` says that it is durable, the store holds it;
- `done` is told of a failure after which the store is as it was, or of `SteppedDown`: then the engine ends;
- a batch without changes is written like any other: that it counts shows that nobody else has taken over before.
"""

from collections.abc import Callable
from typing import Protocol

from fila.core.errors import StoreFailed
from fila.storage.base import Batch, Storage

Done = Callable[[StoreFailed | None], None]


class Committer(Protocol):
    """Makes the batch of a tick durable, one at a time."""

    def write(self, batch: Batch, done: Done) -> None: ...


class LocalCommitter:
    """Writes to the store, and is done before it returns."""

    def __init__(self, store: Storage) -> None:
        self._store = store

    def write(self, batch: Batch, done: Done) -> None:
        try:
            self._store.write(batch)
        except StoreFailed as error:
            done(error)
        else:
            done(None)
