"""Backlogs that are large from a few messages on: tests meet every border of what is packed and what is read later."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def chunks_of(count: int) -> Iterator[None]:
    """Pack so many messages together, in lanes that hold more than that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fila.core.packed.CHUNK", count)
        patch.setattr("fila.core.lane.CHUNK", count)
        patch.setattr("fila.core.lane.LONG", count)
        yield


@contextmanager
def reads_of(count: int) -> Iterator[None]:
    """Read so many messages of a queue before a start is done, and so many at a time afterwards, in turns of two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fila.broker.recovery.LOADED_FIRST", count)
        patch.setattr("fila.broker.recovery.LOADED_AT_LEAST", count)
        patch.setattr("fila.broker.loading.LOADED_AT_ONCE", count)
        patch.setattr("fila.broker.loading.TURN", 2)
        yield
