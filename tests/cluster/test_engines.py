"""Engines of three nodes, of which any are killed and stopped: nothing acknowledged is lost, moved or told twice."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from fila.replicas.log import InDoubt, LogUnavailable, Refused, Unfit
from fila.replicas.opening import open_log
from tests.support.engines import nats_servers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HEAL_S = 120
"""Far longer than any engine takes to serve again."""


@asynccontextmanager
async def opened(url):
    async with asyncio.timeout(HEAL_S):
        while True:
            try:
                log = await open_log(url)
                break
            except LogUnavailable:
                await asyncio.sleep(0.2)
    try:
        yield log
    finally:
        await log.close()


class Writer:
    """Appends without pause, and notes what it was told."""

    def __init__(self, log):
        self._log = log
        self.told = {}
        self.in_doubt = 0
        self.refused = 0
        self.stop = asyncio.Event()

    async def run(self):
        number, after = 0, await self._log.end() - 1
        while not self.stop.is_set():
            number += 1
            body = b"%d " % number + bytes(2000)
            try:
                after = await self._log.append(body, after)
            except InDoubt:
                self.in_doubt += 1
            except Refused:
                self.refused += 1
            except LogUnavailable:
                pass
            else:
                assert after not in self.told, f"position {after} was told twice"
                self.told[after] = body
                continue
            after = await self._last()

    async def told_more(self):
        """Returns when the engine works."""
        before = len(self.told)
        async with asyncio.timeout(HEAL_S):
            while len(self.told) < before + 50:
                await asyncio.sleep(0.05)

    async def _last(self):
        async with asyncio.timeout(HEAL_S):
            while True:
                try:
                    return await self._log.end() - 1
                except LogUnavailable:
                    await asyncio.sleep(0.1)


async def follow(log, read):
    async for batch in log.read(0):
        for entry in batch:
            assert entry.position == len(read)
            read.append(entry.body)


@asynccontextmanager
async def books_that_balance(url):
    """A writer and a reader; at the end the reader, and one that begins anew, have exactly what was told."""
    async with opened(url) as writing, opened(url) as reading:
        writer, read = Writer(writing), []
        tasks = asyncio.create_task(writer.run()), asyncio.create_task(follow(reading, read))
        await writer.told_more()
        yield writer
        await writer.told_more()
        writer.stop.set()
        await tasks[0]
        again = []
        async with opened(url) as fresh, asyncio.timeout(HEAL_S):
            end = await fresh.end()
            rereading = asyncio.create_task(follow(fresh, again))
            while len(read) < end or len(again) < end:
                await asyncio.sleep(0.05)
                assert not tasks[1].done(), tasks[1].exception()
        await rereading
        print(f"told {len(writer.told)}, read {len(read)}, in doubt {writer.in_doubt}, refused {writer.refused}")
        assert read == again
        assert all(read[position] == body for position, body in writer.told.items())
    await tasks[1]


async def test_each_node_is_killed_in_turn(engine):
    nodes, url = engine
    async with books_that_balance(url) as writer:
        for node in nodes:
            node.kill()
            await writer.told_more()
            node.start()
            await asyncio.to_thread(node.wait_until, node.ready)
            await asyncio.sleep(3)  # it catches up


async def test_each_node_stops_for_a_while_and_goes_on(engine):
    nodes, url = engine
    async with books_that_balance(url) as writer:
        for node in nodes:
            node.pause()
            await writer.told_more()
            node.resume()
            await asyncio.sleep(3)


async def test_all_nodes_are_killed_at_once(engine):
    nodes, url = engine
    async with books_that_balance(url):
        for node in nodes:
            node.kill()
        await asyncio.sleep(1)
        for node in nodes:
            node.start()
        for node in nodes:
            await asyncio.to_thread(node.wait_until, node.ready)


async def test_servers_of_nats_that_do_not_sync_or_cannot_be_seen_are_unfit(tmp_path):
    with nats_servers(tmp_path, 3) as nodes:
        hosts = ",".join(node.addr for node in nodes)
        monitors = [node.monitor for node in nodes]
        async with opened(f"nats://{hosts}/log?monitor={','.join(monitors)}") as log:
            assert await log.append(b"x", -1) == 0
        with pytest.raises(Unfit, match="say monitor="):
            await open_log(f"nats://{hosts}/log")
        with pytest.raises(Unfit, match="n2 has no sync_interval: always"):
            await open_log(f"nats://{hosts}/log?monitor={','.join(monitors[:2])}")
        nodes[0].kill()
        async with opened(f"nats://{hosts}/log?monitor={','.join(monitors)}"):
            pass  # a member can start while one server is down
        with pytest.raises(LogUnavailable, match="monitoring of most servers"):
            await open_log(f"nats://{hosts}/log?monitor={monitors[0]},{monitors[1]}")
        nodes[0].start()
        await asyncio.to_thread(nodes[0].wait_until, nodes[0].ready)
        config = tmp_path / "n1" / "nats.conf"
        config.write_text(config.read_text().replace(", sync_interval: always", ""))
        nodes[1].kill()
        nodes[1].start()
        await asyncio.to_thread(nodes[1].wait_until, nodes[1].ready)
        with pytest.raises(Unfit, match="n1 has no sync_interval: always"):
            async with opened(f"nats://{hosts}/log?monitor={','.join(monitors)}"):
                pass
