"""Futures that coroutines of a call wait for."""

from asyncio import Future


def wake(waiter: Future[None] | None) -> None:
    """Let whoever waits go on, if somebody does and has not been cancelled."""
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
