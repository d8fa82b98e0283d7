"""More than the server can take: it refuses or waits, and its memory does not grow."""

import asyncio

import grpc
import psutil

from fila import AsyncClient, Client, OverloadedError
from fila.testing import ServerProcess
from fila.v1 import service_pb2, service_pb2_grpc
from tests.e2e.support import contents, eventually

MIB = 1 << 20
SMALL_STORE = {"FILA_STORAGE__WRITE_BUFFER_BYTES": str(2 * MIB), "FILA_STORAGE__BLOCK_CACHE_BYTES": str(MIB)}
"""So that what a store may keep in memory does not hide what it may not."""


def memory_of(server):
    return psutil.Process(server.pid).memory_info().rss


def test_too_many_requests_at_once_are_refused(tmp_path):
    """Past the bound producers get RESOURCE_EXHAUSTED; what was confirmed is there, once, and memory stays small."""
    payload = bytes(100_000)

    async def flood(addr):
        clients = [AsyncClient(addr, timeout=60) for _ in range(20)]
        calls = [client.enqueue("orders", None, payload) for _ in range(30) for client in clients]
        results = await asyncio.gather(*calls, return_exceptions=True)
        for client in clients:
            await client.close()
        return results

    env = {**SMALL_STORE, "FILA_SCHEDULER__MAX_QUEUED_COMMANDS": "10"}
    with ServerProcess(tmp_path, env=env) as server, Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        confirmed, refused, memory = set(), [], []
        for _ in range(5):
            results = asyncio.run(flood(server.addr))
            memory.append(memory_of(server))
            confirmed |= {result for result in results if isinstance(result, str)}
            refused += [result for result in results if not isinstance(result, str)]
        assert refused, "the bound was never reached"
        assert {type(error) for error in refused} == {OverloadedError}
        assert {str(error) for error in refused} == {"too many requests are waiting in the broker; retry later"}
        assert contents(client, "orders") == (len(confirmed), 0, 0)
        assert memory[-1] - memory[0] < 180 * MIB, memory
        client.enqueue("orders", None, b"after the flood")


def test_a_consumer_that_does_not_read_costs_no_memory(tmp_path):
    """200 MiB are leased to consumers that read nothing: the server keeps them on disk, and goes on serving others."""
    count, payload = 200, bytes(MIB)
    with ServerProcess(tmp_path, env=SMALL_STORE) as server, Client(server.addr, timeout=60) as client:
        client.create_queue("orders")
        client.create_queue("others")
        for _ in range(count // 10):
            client.enqueue_many("orders", [payload] * 10)
        before = memory_of(server)
        channels = [grpc.insecure_channel(server.addr, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(4)]
        try:
            streams = [
                service_pb2_grpc.FilaServiceStub(channel).Lease(
                    service_pb2.LeaseRequest(queue="orders", max_in_flight=count // 4)
                )
                for channel in channels
            ]
            eventually(lambda: contents(client, "orders") == (0, count, 0), "everything is leased")
            peak = 0
            for number in range(100):  # others are served meanwhile, which is also the time in which it could grow
                client.enqueue("others", None, b"%d" % number)
                peak = max(peak, memory_of(server))
            assert peak - before < 60 * MIB
            assert contents(client, "others") == (100, 0, 0)
            assert len(next(streams[0]).messages[0].payload) == MIB
        finally:
            for channel in channels:
                channel.close()
        eventually(lambda: contents(client, "orders") == (count, 0, 0), "everything came back")


def test_a_client_that_is_slow_to_ack_is_given_no_more(tmp_path):
    """What is delivered is bounded by `max_in_flight`, so a backlog stays in the store."""
    with ServerProcess(tmp_path, env=SMALL_STORE) as server, Client(server.addr, timeout=60) as client:
        client.create_queue("orders")
        client.enqueue_many("orders", (bytes(1000) for _ in range(20_000)))
        with client.consume("orders", max_in_flight=50) as consumer:
            held = [next(consumer) for _ in range(50)]
            assert contents(client, "orders") == (19_950, 50, 0)
            client.ack_many(held)
            next(consumer)
            eventually(lambda: contents(client, "orders") == (19_900, 50, 0), "the next fifty")
