"""Keeps the leases of what a consumer holds alive, a group at a time, for as long as the consumer's process lives.

A consumer that is not asked for messages for a visibility timeout keeps only what its application was handed: the rest
goes back, for others.
"""

import asyncio
from typing import Any

from fila.client.errors import FilaError, MessageNotFoundError
from fila.client.feed import Feed
from fila.client.held import HeldLeases
from fila.client.settler import Extend, Failures, Settler

#: How often a lease is extended within the queue's visibility timeout.
TIMES = 3


async def keep_leases(feed: Feed[Any], held: HeldLeases, settler: Settler) -> None:
    """Extend what was delivered by a feed, until it ends."""
    unasked = 0
    while timeout_s := await feed.visibility_timeout_s():
        if not await feed.stays_for(timeout_s / TIMES):
            continue
        unasked = 0 if feed.was_asked() else unasked + 1
        if unasked >= TIMES:
            feed.pause()
        if due := held.due(feed):
            try:
                await _extend([Extend(*lease, 0) for lease in due], held, settler)
            except FilaError:
                continue  # the next turn tries again; what has expired by then is refused


async def _extend(extends: list[Extend], held: HeldLeases, settler: Settler) -> None:
    reply: asyncio.Future[Failures] = asyncio.get_running_loop().create_future()
    settler.submit(extends, reply)
    failures = await reply
    gone = {message for message, error in failures.items() if isinstance(error, MessageNotFoundError)}
    for extend in extends:
        held.forget(
            extend.queue, extend.lease_id, [each for each in extend.message_ids if (extend.queue, each) in gone]
        )
