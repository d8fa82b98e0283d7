"""A broker whose member was deposed and does not know it yet: what it still says, and what it still delivers."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from fila.broker.broker import Broker
from fila.broker.commands import AckGroup, Settle
from fila.broker.engine import Engine
from fila.broker.journal import Journal
from fila.broker.recovery import recover
from fila.config import JournalConfig, LimitsConfig, SchedulerConfig
from fila.core.errors import SteppedDown
from fila.core.ids import NS_PER_MS
from fila.replicas.memory import MemoryEngine
from fila.replicas.owner import take_over
from fila.replicas.replica import Replica
from fila.replicas.shared import SharedCommitter, SharedStore
from fila.replicas.tail import Tail
from fila.server.deliveries import Deliveries
from fila.server.message_codec import read_message
from fila.storage.memory import MemoryStorage
from fila.v1 import service_pb2
from fila.wire.channel import Channel
from fila.wire.limits import Limits
from fila.wire.method import Method
from fila.wire.server import Server
from fila.wire.stream import EOF
from tests.helpers.broker import NODE, incoming, queue_record

LEASE_MS = 60_000
PATH = "/fila.v1.FilaService/Lease"


class Clock:
    def __init__(self):
        self.ahead = 0

    def __call__(self):
        return time.time_ns() + self.ahead


class Owning:
    """A broker on a log in memory, whose member owns the shard."""

    def __init__(self, engine, clock):
        self._tail = Tail(engine.open(), Replica(MemoryStorage(), 0))
        self._clock = clock

    async def start(self, name):
        owner = await take_over(self._tail, name, lambda _: None)
        store = SharedStore(self._tail.replica.store, NODE)
        journal = Journal(store, JournalConfig(enabled=False))
        committer = SharedCommitter(store, owner)
        state = recover(store, NODE, LimitsConfig())
        self.broker = Broker(Engine(state, store, SchedulerConfig(), journal, committer), store, self._clock)
        return self

    async def ack(self, message_id):
        return await self.broker.settle(lambda reply: Settle(reply, acks=[AckGroup("q", [message_id])]))

    @asynccontextmanager
    async def leasing(self):
        """A consumer that takes a response when it is asked to."""

        async def lease(_, call):
            await Deliveries(self.broker, call, None).serve("q", 10)

        server = Server({PATH: Method(lease, bytes, bytes, gives_stream=True)})
        channel = Channel(f"127.0.0.1:{await server.listen('127.0.0.1', 0)}", Limits(stream_window=1 << 16))
        try:
            yield channel.unary_stream(PATH)(b"")
        finally:
            await channel.close()
            await server.stop(0)


def scenario(test):
    def run():
        async def play():
            engine, clock = MemoryEngine(), Clock()
            first = await Owning(engine, clock).start("first")
            await first.broker.create_queue(queue_record("q", visibility_timeout_ms=LEASE_MS))
            async with asyncio.timeout(30):
                await test(engine, clock, first)

        asyncio.run(play())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@scenario
async def test_it_does_not_say_of_a_message_of_its_successor_that_it_is_gone(engine, clock, first):
    second = await Owning(engine, clock).start("second")
    (message,) = await second.broker.enqueue([incoming("q", b"lives")])
    with pytest.raises(SteppedDown, match="second has taken the shard over"):
        await first.ack(second.broker.state.ids.text(message))


@scenario
async def test_it_does_not_say_that_a_queue_of_its_successor_does_not_exist(engine, clock, first):
    second = await Owning(engine, clock).start("second")
    await second.broker.create_queue(queue_record("new"))
    with pytest.raises(SteppedDown, match="second has taken the shard over"):
        await first.broker.enqueue([incoming("new", b"")])


@scenario
async def test_it_does_not_deliver_what_was_granted_before_when_the_lease_has_ended(engine, clock, first):
    """A consumer that reads slowly, at a member that is cut off from the log."""
    await first.broker.enqueue(large(4))
    async with first.leasing() as slow:
        got = len(ids_in(await slow.read()))
        engine.fail()
        clock.ahead += (LEASE_MS + 1) * NS_PER_MS
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                while (response := await slow.read()) is not EOF:
                    got += len(ids_in(response))
    assert got < 4


@scenario
async def test_it_delivers_what_was_granted_before_while_the_lease_lasts(engine, clock, first):
    await first.broker.enqueue(large(4))
    async with first.leasing() as slow:
        got = len(ids_in(await slow.read()))
        engine.fail()
        while got < 4:
            got += len(ids_in(await slow.read()))


def large(count):
    """Messages that come in a response each."""
    return [read_message(service_pb2.EnqueueRequest(queue="q", payload=bytes(1 << 20))) for _ in range(count)]


def ids_in(response):
    return service_pb2.LeaseResponse.FromString(bytes(response)).messages
