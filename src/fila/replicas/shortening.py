"""Keeps the log of a shard short: a snapshot when it is worth one, and then what stood before it is cut off.

How long the log is since the last snapshot is told by positions, which a restart does not forget, and by how large
entries are on average.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from fila.core.errors import StoreFailed
from fila.replicas.log import LogUnavailable, ReplicatedLog
from fila.replicas.owner import Owner
from fila.replicas.replica import Replica
from fila.replicas.snapshots import is_due, read_current, trim, write_snapshot
from fila.replicas.tail import Wait, pause

LOOK_S = 5.0
"""How often to look whether a snapshot is due"""
MARGIN_BYTES = 64 << 20
"""Of log that stay before a snapshot, for members that are a little behind"""


async def rest() -> None:
    """Between two looks."""
    await asyncio.sleep(LOOK_S)


async def keep_short(
    log: ReplicatedLog,
    snaps: ReplicatedLog,
    replica: Replica,
    owner: Owner,
    stored_bytes: Callable[[], int],
    look: Wait = rest,
    wait: Wait = pause,
) -> None:
    """Until the owner has ended. May be cancelled at any time. `stored_bytes`: how large the store is, about. What
    fails is tried again: an engine that is away, a store that cannot be read.
    """
    while owner.ended is None:
        await look()
        length = replica.mark.position - read_current(replica.store).position
        if is_due(int(length * replica.entry_bytes), stored_bytes()):
            with suppress(StoreFailed, LogUnavailable):
                await owner.accept(await write_snapshot(snaps, replica, wait))
                await trim(log, snaps, replica.store, int(MARGIN_BYTES / replica.entry_bytes))
