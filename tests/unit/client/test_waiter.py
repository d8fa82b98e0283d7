"""Requests that wait for an answer."""

import asyncio

from fila.client.errors import from_error
from fila.client.waiter import Waiter
from fila.v1 import errors_pb2


def test_each_waiter_of_a_refused_batch_gets_an_error_of_its_own_that_says_all_that_the_broker_said():
    refusal = errors_pb2.Error(
        code=8, message="full", kind=errors_pb2.ERROR_KIND_QUEUE_FULL, retryable=True, retry_after_ms=500
    )
    error, loop = from_error(refusal), asyncio.new_event_loop()
    waiters = [Waiter(loop.create_future(), 0.0) for _ in range(2)]
    for waiter in waiters:
        waiter.fail(error)
    first, second = (waiter.reply.exception() for waiter in waiters)
    assert first is not second
    for told in (first, second):
        assert type(told) is type(error)
        assert (told.kind, told.retryable, told.retry_after_s, str(told)) == ("queue_full", True, 0.5, "full")
    loop.close()
