"""Reports that wait for figures, back on the broker: one delayed job each, as the reconciliation service reads them.

A job is sent under a dedup key of report and attempt, and carries the same. So sending a run's jobs again, after a
crash in the middle, neither doubles them inside the queue's dedup window nor, later on, makes an attempt twice.
"""

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fila.client import Client, OutgoingMessage
from fila.jobs.broker.message import KEY, headers_of
from fila.jobs.codec import JsonCodec
from fila.jobs.item import QueueItem
from fila.jobs.settings import PRIORITIES


def send(open_reports: DataFrame, addr: str, queue: str, now_ms: int) -> int:
    """Enqueue a job for each open report that is due again. Returns how many. Raises FilaError."""
    due = open_reports.where(F.col("next_attempt_ms").isNotNull()).select(
        "report_id", "affiliate_id", "platform", "attempt", "next_attempt_ms"
    )
    with Client(addr) as client:
        client.ensure_queue(queue, fairness_header=KEY, throttle_headers=["platform"])
        return len(client.enqueue_many(queue, _messages(due, now_ms)))


def _messages(due: DataFrame, now_ms: int) -> Iterator[OutgoingMessage]:
    codec = JsonCodec()
    for row in due.toLocalIterator():
        name = f"reconcile:{row.report_id}:{row.attempt + 1}"
        item = QueueItem(
            {"affiliate_report_id": row.report_id, "attempt": row.attempt + 1},
            "normal",
            PRIORITIES["normal"],
            now_ms / 1000,
            row.next_attempt_ms / 1000,
            seq=0,
            id=name,
            key=row.affiliate_id,
            headers={"platform": row.platform},
        )
        yield OutgoingMessage(
            codec.encode(item.job).encode(),
            headers_of(item),
            delay_ms=max(0, row.next_attempt_ms - now_ms),
            priority=item.priority_value,
            dedup_key=name,
        )
