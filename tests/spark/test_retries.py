"""Reports that wait for figures go back to the broker as jobs that the reconciliation service understands."""

import pytest

pytest.importorskip("pyspark")

from fila import Client
from fila.jobs import create_queue
from fila.jobs.settings import FilaSettings, QueueSettings
from fila.reconcile.dispatch import ReconciliationJob
from fila.spark.retries import send
from fila.testing import ServerProcess

NOW_MS = 1_790_000_000_000
OPEN = "report_id string, affiliate_id string, platform string, attempt bigint, next_attempt_ms bigint"


def test_a_retry_is_a_delayed_job_and_is_sent_once(spark):
    waiting = spark.createDataFrame(
        [
            ("r1", "ada", "clipshare", 1, NOW_MS + 50),
            ("r2", "bob", "clipshare", 2, NOW_MS + 3_600_000),
            ("r3", "bob", "x", 6, None),
        ],
        OPEN,
    )
    with ServerProcess() as server, Client(server.addr) as client:
        assert send(waiting, server.addr, "reconcile", NOW_MS) == 2
        assert send(waiting, server.addr, "reconcile", NOW_MS) == 2
        [stats] = [info for info in client.list_queues() if info.name == "reconcile"]
        assert (stats.depth, stats.delayed) in {(2, 1), (2, 2)}
        queue = create_queue(QueueSettings(fila=FilaSettings(addr=server.addr, queue="reconcile")))
        item = queue.dequeue(timeout=30)
        assert item is not None
        assert ReconciliationJob.from_payload(item.job) == ReconciliationJob("r1", 2)
        assert (item.key, item.headers["platform"]) == ("ada", "clipshare")
        queue.ack(item)
        queue.shutdown()
