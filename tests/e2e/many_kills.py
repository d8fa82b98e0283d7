"""A server is killed again and again with every feature on, and the books are balanced at the end.

    python -m tests.e2e.many_kills --kills 1000

What is on: a script with both hooks, fairness keys with weights, priorities, a throttle, delays, dedup keys, retries
and dead letters, transactions, the journal in half of the runs, and beside it all a backlog that is still being read
when the next kill comes. One kill in eight hits a server that has not begun to serve.

What must hold: every confirmed message is delivered, under one id; no acked one comes back; what fails three times is
in the dead-letter queue, and nothing else; every transaction is there once; the backlog is there once, in its order.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

from fila import AsyncClient, OutgoingMessage
from fila.testing import ServerProcess
from tests.e2e.load import UNDER_WAY, Load

QUEUE, BACKLOG, COMMITTED = "orders", "backlog", "committed"
WAITING, TENANTS = 80_000, 100
"""Messages of the backlog, and its fairness keys. More than a start reads before it serves."""
KILLS_A_RUN = 50
"""A new server and new books after so many, so that a run of any length takes little memory."""
PATIENCE_S = 90
"""How long a start may take: the machine may be busy."""
PART = 20
"""Messages of a transaction"""

POLICY = """
function on_enqueue(msg)
  local answer = { fairness_key = msg.headers.tenant, weight = tonumber(msg.headers.share) }
  if msg.headers.tenant == "limited" then answer.throttle_keys = { "provider" } end
  if msg.headers.tenant == "delayed" then answer.delay_ms = 30 end
  if msg.headers.tenant == "urgent" then answer.priority = 1 end
  return answer
end

function on_failure(msg, error)
  if msg.attempts >= 3 then return { action = "dlq" } end
  return { action = "retry", delay_ms = 10 }
end
"""
KEYS = ("plain", "heavy", "limited", "delayed", "urgent")


def is_poison(number):
    return number % 50 == 13


class EveryFeature(Load):
    """One producer for each key; what a consumer nacks three times becomes a dead letter."""

    def __init__(self, addr):
        super().__init__(addr, QUEUE, producers=len(KEYS))
        self.committed = 0

    @asynccontextmanager
    async def running(self):
        async with super().running():
            writer = asyncio.create_task(self._commit())
            try:
                yield
                self._producing = False
                await writer
            finally:
                writer.cancel()

    async def _produce(self, key):
        key = KEYS[int(key.removeprefix("key-"))]
        headers = {"tenant": key, "share": "5" if key == "heavy" else "1"}
        async with AsyncClient(self._addr, timeout=60) as client, asyncio.TaskGroup() as calls:
            room = asyncio.Semaphore(UNDER_WAY)

            async def enqueue(number):
                self.ids[key, number] = await client.enqueue(
                    QUEUE, headers, b"%d" % number, dedup_key=f"{key}/{number}"
                )
                room.release()

            number = 0
            while self._producing:
                await room.acquire()
                calls.create_task(enqueue(number))
                number += 1
                await asyncio.sleep(0.004)

    def must_fail(self, message, number):
        return is_poison(number) or super().must_fail(message, number)

    async def _commit(self):
        """Stages and commits each number until it is told that it is done."""
        async with AsyncClient(self._addr, timeout=60) as client:
            while self._producing:
                transaction = client.transaction("writer", self.committed)
                parts = [await transaction.stage(COMMITTED, [b"%d" % self.committed] * PART)]
                await transaction.commit(parts)
                self.committed += 1
                await asyncio.sleep(0.02)


async def run(server, kills, chance):
    """Kill a server so often, and check everything. Returns how many messages were acked."""
    async with AsyncClient(server.addr, timeout=60) as client:
        await client.create_queue(
            QUEUE, script=POLICY, visibility_timeout_ms=2000, max_attempts=100, dedup_window_ms=600_000
        )
        await client.create_queue(COMMITTED)
        await client.create_queue(BACKLOG, fairness_header="tenant")
        await client.set_config("throttle.provider", "rate=400,burst=50")
        await client.enqueue_many(
            BACKLOG, (OutgoingMessage(b"%d" % n, {"tenant": f"{n % TENANTS}"}) for n in range(WAITING))
        )
    load = EveryFeature(server.addr)
    async with load.running():
        for _ in range(kills):
            if chance.random() < 1 / 8:
                server.kill()
                server.launch()
                await asyncio.sleep(chance.random() * 0.5)
            else:
                await load.progress(chance.randrange(1, 80))
            server.kill()
            await asyncio.to_thread(server.start)
        await load.progress()
    load.check()
    async with AsyncClient(server.addr, timeout=60) as client:
        await check_dead_letters(client, load)
        await check_copies(client, load)
        await check_backlog(client)
    return len(load.acked)


async def check_dead_letters(client, load):
    """Poison is there, once, and nothing else is."""
    dead = Counter()
    async for batch in client.read_queue(f"{QUEUE}.dlq"):
        dead.update((message.headers["tenant"], int(message.payload)) for message in batch)
    poison = {(key, number) for key, number in load.ids if is_poison(number)}
    assert dead == Counter(poison), f"dead letters differ: {dead - Counter(poison)}, {Counter(poison) - dead}"


async def check_copies(client, load):
    """Every transaction is there once."""
    found = Counter()
    async for batch in client.read_queue(COMMITTED):
        found.update(int(message.payload) for message in batch)
    assert found == Counter(dict.fromkeys(range(load.committed), PART)), "transactions differ"


async def check_backlog(client):
    """All of it is there, each tenant's in its order."""
    last, left = dict.fromkeys(range(TENANTS), -1), WAITING
    async with client.consume_batches(BACKLOG, max_in_flight=2000) as consumer:
        async for batch in consumer:
            for message in batch:
                number = int(message.payload)
                assert last[number % TENANTS] < number, f"{number} after {last[number % TENANTS]}"
                last[number % TENANTS] = number
            await client.ack_many(batch)
            left -= len(batch)
            if left <= 0:
                break
    assert left == 0
    assert (await client.queue_stats(BACKLOG)).summary.depth == 0


def rounds(kills, seed):
    """The runs: how many kills each, and whether the journal is on."""
    chance = random.Random(seed)
    for number, first in enumerate(range(0, kills, KILLS_A_RUN)):
        yield min(KILLS_A_RUN, kills - first), bool(number % 2), random.Random(chance.random())


def kill_often(folder, kills, journal, chance):
    config = f"[journal]\nenabled = {str(journal).lower()}\n"
    with ServerProcess(folder, config=config, start_timeout=PATIENCE_S) as server:
        return asyncio.run(run(server, kills, chance))


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.many_kills", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000, metavar="N", help="default: 1000")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the moments of the kills; default: 1")
    options = parser.parse_args()
    done = acked = 0
    began = time.monotonic()
    for kills, journal, chance in rounds(options.kills, options.seed):
        with tempfile.TemporaryDirectory() as folder:
            acked += kill_often(Path(folder), kills, journal, chance)
        done += kills
        sys.stdout.write(f"{done} kills, {acked} messages acked, 0 lost, 0 back, {time.monotonic() - began:.0f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
