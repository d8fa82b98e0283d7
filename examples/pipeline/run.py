"""Pipelines on real data: a broker whose queue is fought over, and files of reports against files of metrics.

1. A real server process. One tenant floods a queue, others want their share, a part of the messages fails.
2. Its journal: who got what, who waited for what, and the proof that nothing was lost.
3. Made-up reports and metrics are reconciled, then more of them, which does only the new work; reports whose
   platform told nothing go back to the broker as delayed jobs.

    python examples/pipeline/run.py [--messages N] [--reports N] [--out FOLDER]

Opens nothing: it prints where the pages are. Exit code 0 if every message is accounted for, 1 if not.
"""

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

from fila import Client, FilaError, OutgoingMessage
from fila.spark.errors import PipelineError
from fila.spark.session import open_session
from fila.testing import ServerProcess

QUEUE = "orders"
TENANTS = {"flood": (1, 0.55), "ada": (1, 0.15), "bob": (2, 0.2), "cyd": (3, 0.1)}
"""Weight, and part of all messages."""
CONSUMERS = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=12_000)
    parser.add_argument("--reports", type=int, default=60_000)
    parser.add_argument("--out", type=Path, help="default: a new folder")
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="fila-pipeline-"))
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    try:
        return run(out.resolve(), options.messages, options.reports, say)
    except PipelineError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def run(out, messages, reports, say) -> int:
    say("starting Spark")
    spark = open_session("fila demo")
    from fila.spark import analysis, bulk, retries
    from fila.spark.sample import Sample
    from fila.spark.sample import metrics as make_metrics
    from fila.spark.sample import reports as make_reports

    now_ms = time.time_ns() // 1_000_000
    with ServerProcess(config="[journal]\nenabled = true\n") as server:
        say(f"broker: {messages:,} messages of {len(TENANTS)} tenants, {CONSUMERS} consumers")
        fight(server.addr, messages)
        say("fairness: reading the journal")
        found = analysis.analyse(spark, str(out / "fairness"), now_ms=now_ms, broker=server.addr)
        total = found.summary["enqueued"]
        ends = " + ".join(f"{found.summary[name]:,} {name}" for name in ("acked", "dead", "dropped", "pending"))
        say(f"fairness: {total:,} messages = {ends}: {'holds' if found.summary['conserved'] else 'BROKEN'}")
        for part in range(2):
            say(f"reconciliation: making {reports // 2:,} reports")
            sample = Sample(reports // 2, now_ms, seed=1, first=part * (reports // 2))
            make_reports(spark, sample).coalesce(1).write.mode("append").parquet(str(out / "reports"))
            make_metrics(spark, sample).coalesce(1).write.mode("append").parquet(str(out / "metrics"))
            outcome = bulk.reconcile(
                spark, str(out / "reports"), str(out / "metrics"), str(out / "reconciled"), now_ms=now_ms
            )
            done, known = outcome.summary["classified"], outcome.summary["reports"]
            say(f"reconciliation: run {outcome.run} classified {done:,} of {known:,} reports")
        due = spark.read.parquet(f"{outcome.folder}/gold/open")
        jobs = retries.send(due, server.addr, "reconcile", now_ms)
        say(f"reconciliation: {jobs:,} reports are tried again later, as jobs")
    spark.stop()
    say("done")
    print(f"\nFairness:       {found.report}\nReconciliation: {outcome.report}")
    return 0 if found.summary["conserved"] else 1


def fight(addr: str, messages: int) -> None:
    """All tenants enqueue, then two consumers work off three quarters of it."""
    with Client(addr) as client:
        client.create_queue(QUEUE, fairness_header="tenant", weight_header="weight", max_attempts=2)
        for tenant, (weight, part) in TENANTS.items():
            headers = {"tenant": tenant, "weight": str(weight)}
            client.enqueue_many(QUEUE, (OutgoingMessage(b"x" * 200, headers) for _ in range(int(messages * part))))
    left = threading.Semaphore(messages * 3 // 4)
    consumers = [threading.Thread(target=consume, args=(addr, left)) for _ in range(CONSUMERS)]
    for consumer in consumers:
        consumer.start()
    for consumer in consumers:
        consumer.join()


def consume(addr: str, left: threading.Semaphore) -> None:
    with Client(addr) as client, client.consume(QUEUE, max_in_flight=20) as delivered:
        for number, message in enumerate(delivered):
            try:
                message.nack("out of stock") if number % 40 == 0 else message.ack()
            except FilaError:
                continue
            if not left.acquire(blocking=False):
                return


if __name__ == "__main__":
    sys.exit(main())
