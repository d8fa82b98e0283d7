"""A store that is behind with its files (RocksDB's write stall) puts writes off and holds up nothing else."""

import re

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fila import Client
from tests.helpers.telemetry import Watched, get

PAYLOAD = bytes(100_000)
CONFIG = '[storage]\nwrite_buffer_bytes = 65_536\n[telemetry]\nprometheus_listen = "127.0.0.1:0"\n'


def metric(server, name):
    return float(re.search(rf"^{name} ([\d.e+]+)$", get(server.http + "/metrics")[1], re.MULTILINE)[1])


def test_writes_wait_for_rocksdb_while_everything_else_goes_on(tmp_path):
    """With buffers far smaller than what is written, RocksDB asks for patience all the time. No message is refused, and
    health is answered beside it.
    """
    with Watched(tmp_path, config=CONFIG) as server, Client(server.addr, timeout=60) as client:
        client.create_queue("q")
        with grpc.insecure_channel(server.addr) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            ids = []
            for _ in range(20):
                ids += client.enqueue_many("q", [PAYLOAD] * 20)
                assert health.Check(health_pb2.HealthCheckRequest(), timeout=30).status == 1
        assert len(set(ids)) == 400
        assert client.queue_stats("q").summary.depth == 400
        assert metric(server, "fila_broker_write_stalls_total") > 0
        assert metric(server, "fila_broker_write_failures_total") == 0
