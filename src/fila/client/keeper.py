"""Keeps the leases of what a consumer holds alive, a group at a time, for as long as the consumer's process lives."""

import asyncio
from typing import Any

from fila.client.admin import Admin
from fila.client.backoff import Backoff
from fila.client.errors import FilaError, MessageNotFoundError, QueueNotFoundError
from fila.client.feed import Feed
from fila.client.held import HeldLeases
from fila.client.settler import Extend, Failures, Settler

#: How often a lease is extended within the queue's visibility timeout.
TIMES = 3


async def keep_leases(feed: Feed[Any], admin: Admin, held: HeldLeases, settler: Settler) -> None:
    """Extend what was delivered by a feed, until cancelled. Ends at once when there is no such queue."""
    interval_s = await _visibility_timeout_s(feed.queue, admin) / TIMES
    while interval_s:
        await asyncio.sleep(interval_s)
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


async def _visibility_timeout_s(queue: str, admin: Admin) -> float:
    """0 when there is no such queue, which the consumer itself is told."""
    backoff = Backoff()
    while True:
        try:
            return (await admin.queue_stats(queue, max_keys=1)).config.visibility_timeout_ms / 1000
        except QueueNotFoundError:
            return 0
        except FilaError:
            await asyncio.sleep(backoff.next_wait_s())
