"""Extends the leases of a consumer's in-flight messages for as long as its process lives.

A consumer whose application has not asked for messages for a whole visibility timeout keeps only what the application
was handed. Its prefetched messages go back to the queue, for other consumers.
"""

import asyncio
from typing import Any

from fila.client.consume_stream import ConsumeStream
from fila.client.errors import FilaError, MessageNotFoundError
from fila.client.in_flight import InFlight
from fila.client.settle_stream import SettleStream
from fila.client.settlements import Extend, Failures

#: How often a lease is extended within the queue's visibility timeout.
TIMES = 3


async def extend_leases(stream: ConsumeStream[Any], in_flight: InFlight, settles: SettleStream) -> None:
    """Extend what a stream delivered, until the stream ends."""
    unasked = 0
    while timeout_s := await stream.visibility_timeout_s():
        if not await stream.stays_for(timeout_s / TIMES):
            continue
        unasked = 0 if stream.was_asked() else unasked + 1
        if unasked >= TIMES:
            stream.pause()
        if due := in_flight.due(stream):
            try:
                await _extend([Extend(*lease, 0) for lease in due], in_flight, settles)
            except FilaError:
                continue  # the next turn tries again; what has expired by then is refused


async def _extend(extends: list[Extend], in_flight: InFlight, settles: SettleStream) -> None:
    reply: asyncio.Future[Failures] = asyncio.get_running_loop().create_future()
    settles.submit(extends, reply)
    failures = await reply
    gone = {message for message, error in failures.items() if isinstance(error, MessageNotFoundError)}
    for extend in extends:
        in_flight.forget(
            extend.queue, extend.lease_id, [each for each in extend.message_ids if (extend.queue, each) in gone]
        )
