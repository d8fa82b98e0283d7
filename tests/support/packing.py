"""Lanes that pack after a few messages, so that tests meet every border of what is packed."""

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
