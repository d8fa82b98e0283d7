"""What members say of themselves to each other."""

import asyncio
import json
from time import monotonic_ns

import pytest

from fila.replicas.view import Beat, View
from fila.replicas.watching import WATCH, Watching, read_beat
from fila.wire import server as wire
from fila.wire.limits import Limits
from fila.wire.method import Method


@pytest.mark.parametrize(
    "told, beat",
    [
        ([True, 3, 7, False], Beat(True, 3, 7, False)),
        ([False, 3, -1, True, "of a later version", {}], Beat(False, 3, -1, True)),
        ([True, 3, 7], Beat(True, 3, 7)),
    ],
)
def test_what_an_older_or_a_later_version_says_is_read(told, beat):
    assert read_beat(json.dumps(told).encode()) == beat


@pytest.mark.parametrize("told", [b"", b"\xff", b"nothing", b"{}", b"7", b"[]", b"[1, 2, 3]", b'[true, "1", 2]'])
def test_what_cannot_be_read_says_nothing(told):
    assert read_beat(told) is None


def test_a_member_that_once_said_what_cannot_be_read_is_still_heard():
    async def play():
        async def tell(asked, call):
            for beat in (b"<html>", json.dumps([True, 3, 7, False, "new"]).encode()):
                await call.write(beat)
            await asyncio.Event().wait()

        server = wire.Server({WATCH: Method(tell, bytes, bytes, gives_stream=True, standing=True)}, Limits())
        port = await server.listen("127.0.0.1", 0)
        view = View(0, 2, monotonic_ns())
        watching = Watching("c", 1, f"127.0.0.1:{port}", view)
        try:
            async with asyncio.timeout(30):
                while view.owner(monotonic_ns()) is None:
                    await asyncio.sleep(0.01)
        finally:
            await watching.stop()
            await server.stop(0)

    asyncio.run(play())
