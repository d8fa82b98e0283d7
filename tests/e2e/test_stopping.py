"""The server is asked to stop: it finishes what it took, says so to everyone, and comes back with everything."""

import asyncio
import signal
import time

import grpc
import pytest

from fila import Client, UnavailableError
from fila.testing import ServerProcess
from fila.v1 import service_pb2, service_pb2_grpc
from tests.e2e.load import Load
from tests.e2e.support import PATIENCE_S, Inbox, contents, eventually

GRACE_S = 10


def test_a_stop_under_load_is_clean_and_clients_come_back_by_themselves(tmp_path):
    """SIGTERM under load: exit code 0 within the grace time, nothing confirmed is lost, the SDK reconnects."""

    async def scenario(server):
        load = Load(server.addr, "orders")
        exits = []
        async with load.running():
            for _ in range(2):
                await load.progress()
                began = time.monotonic()
                exits.append((await asyncio.to_thread(server.stop), time.monotonic() - began < GRACE_S))
                await asyncio.to_thread(server.start)
            await load.progress()
        return load, exits

    with ServerProcess(tmp_path, env={"FILA_SERVER__SHUTDOWN_GRACE_MS": str(GRACE_S * 1000)}) as server:
        with Client(server.addr) as client:
            client.create_queue("orders", fairness_header="tenant", visibility_timeout_ms=2000)
        load, exits = asyncio.run(scenario(server))
        print(server.log)
    assert exits == [(0, True), (0, True)]
    load.check()


def test_streams_end_as_unavailable(server):
    """Consumers, producers and settlers whose streams are open learn that the server is going away."""
    with Client(server.addr) as client:
        client.create_queue("orders")
    with grpc.insecure_channel(server.addr) as channel:
        stub = service_pb2_grpc.FilaServiceStub(channel)
        lease = stub.Lease(service_pb2.LeaseRequest(queue="orders"))
        lease.initial_metadata()  # it is open
        asking = {
            stub.EnqueueStream: service_pb2.EnqueueBatchRequest(messages=[service_pb2.EnqueueRequest(queue="orders")]),
            stub.Settle: service_pb2.SettleRequest(sequence=1),
        }
        streams = [lease]
        for method, request in asking.items():
            streams.append(method(_then_nothing(request)))
            next(streams[-1])
        assert next(lease).messages[0].metadata.attempt_count == 0
        assert server.stop() == 0
        for stream in streams:
            with pytest.raises(grpc.RpcError) as raised:
                next(stream)
            assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
            assert "shutting down" in raised.value.details()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_stops_at_once(tmp_path, number):
    """With nothing to finish the grace time is not waited for, though consumers are connected."""
    server = ServerProcess(tmp_path, env={"FILA_SERVER__SHUTDOWN_GRACE_MS": "600000"})
    try:
        process = server.launch()
        with Client(server.addr) as client:
            eventually(lambda: _created(client, "orders"), "the server is there")
            with Inbox(client, "orders"):
                eventually(lambda: client.queue_stats("orders").summary.consumers == 1, "the consumer is there")
                process.send_signal(number)
                assert process.wait(PATIENCE_S) == 0
    finally:
        server.close()


def test_leases_survive_a_stop(server):
    """What a consumer holds stays leased over a graceful restart, and its ack counts."""
    with Client(server.addr, timeout=30) as client:
        client.create_queue("orders")
        client.enqueue_many("orders", [b"held", b"waiting"])
        with Inbox(client, "orders", max_in_flight=1) as inbox:
            [held] = inbox.wait(1)
            server.restart()
            held.ack()
            waiting = inbox.wait(2)[1]
            assert (waiting.payload, waiting.attempt_count) == (b"waiting", 0)
            waiting.ack()
        assert contents(client, "orders") == (0, 0, 0)


def test_a_call_without_a_server_fails_in_time(server):
    """An administrative call to a stopped server is refused as unavailable."""
    with Client(server.addr, timeout=2) as client:
        client.create_queue("orders")
        server.stop()
        with pytest.raises(UnavailableError):
            client.queue_stats("orders")


def _created(client, queue):
    try:
        return client.create_queue(queue)
    except UnavailableError:
        return None


def _then_nothing(request):
    """A stream of one request that stays open."""
    yield request
    eventually(lambda: False, "the server ended the stream", timeout=60)
