"""What a call leaves behind in a server when it has ended: nothing that takes the garbage collector to find."""

import gc

import pytest

from fila.wire.server_call import ServerCall
from fila.wire.status import RpcError
from tests.integration.wire.conftest import Handlers, own_client, own_server

CALLS = 50


@pytest.mark.parametrize("path", ["/t/echo", "/t/refuse", "/t/fail", "/t/none"])
async def test_a_call_that_has_ended_is_in_no_cycle(path):
    """A flood of calls would leave so much that to collect it keeps the event loop for long."""
    async with own_server(Handlers()) as (_, port), own_client(port) as channel:
        gc.collect()
        gc.disable()
        try:
            for _ in range(CALLS):
                try:
                    await channel.unary_unary(path)(b"x")
                except RpcError:
                    assert path != "/t/echo"
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            assert not [each for each in gc.garbage if isinstance(each, ServerCall)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
