"""Pipelines on real data: a broker whose queue is fought over, and files of reports against files of metrics.

1. A real server process. One tenant floods a queue, others want their share, one is held back by a limit for two
   seconds, a part of the messages fails.
2. Its journal: who got what, who waited for what, who was starved and why, and the proof that nothing was lost.
3. Made-up reports and metrics are reconciled, then more of them, which does only the new work; half an hour later
   reports whose platform told nothing are tried again.
4. Some more reports come as messages and are reconciled as a stream, whose discrepancies and alerts go to queues.

    python -m examples.pipeline.run [--messages N] [--reports N] [--out FOLDER]

Opens nothing: it prints where the pages are. Exit code 0 if every message is accounted for, 1 if not.
"""

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

from fila import Client, FilaError, OutgoingMessage
from fila.pipelines.errors import PipelineError
from fila.pipelines.session import open_session
from fila.spark.errors import SparkMissing
from fila.testing import ServerProcess

QUEUE = "orders"
TENANTS = {"flood": (1, 0.55), "ada": (1, 0.15), "bob": (2, 0.2), "cyd": (3, 0.1)}
"""Weight, and part of all messages."""
CONSUMERS = 2
WORK_S = 0.0005
"""What a message takes."""
LIMITED, LIMITED_AFTER_S, LIMITED_FOR_S = "ada", 1.5, 2.0
"""Who is held back by a limit, and when."""
STREAMED = 2_000
"""Reports that come as messages, at most."""


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
    except (PipelineError, SparkMissing) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def run(out, messages, reports, say) -> int:
    say("starting Spark")
    spark = open_session("fila demo")
    from fila.pipelines.fairness import analysis
    from fila.pipelines.reconcile import bulk
    from fila.pipelines.reconcile.sample import Sample
    from fila.pipelines.reconcile.sample import metrics as make_metrics
    from fila.pipelines.reconcile.sample import reports as make_reports

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
        later_ms = now_ms + 31 * 60_000
        outcome = bulk.reconcile(
            spark, str(out / "reports"), str(out / "metrics"), str(out / "reconciled"), now_ms=later_ms
        )
        again = outcome.summary["looked_at_again"]
        say(f"reconciliation: half an hour later, run {outcome.run} tries {again:,} reports without metrics again")
        count = min(STREAMED, reports)
        say(f"stream: {count:,} reports as messages")
        found_in = streamed(spark, server.addr, out, Sample(count, now_ms, seed=2, first=reports))
        say("stream: " + ", ".join(f"{held:,} {name}" for name, held in found_in.items()))
    spark.stop()
    say("done")
    print(f"\nFairness:       {found.report}\nReconciliation: {outcome.report}\nStream:         {out / 'streamed'}")
    return 0 if found.summary["conserved"] else 1


def streamed(spark, addr, out, sample) -> dict[str, int]:
    """Reconcile reports from a queue. Returns what became of them: messages by queue."""
    from pyspark.sql import functions as F  # noqa: N812

    from fila.pipelines.reconcile import sample as made
    from fila.pipelines.reconcile import stream

    made.metrics(spark, sample).coalesce(1).write.parquet(str(out / "streamed-metrics"))
    queues = stream.Queues.beside(addr, "reports")
    with Client(addr) as client:
        for name in (queues.reports, queues.discrepancies, queues.alerts):
            client.create_queue(name)
        rows = made.reports(spark, sample)
        told = rows.select(F.to_json(F.struct(*rows.columns)).alias("line")).collect()
        client.enqueue_many(queues.reports, (OutgoingMessage(row.line.encode()) for row in told))
        query = stream.start(
            spark,
            queues,
            str(out / "streamed-metrics"),
            str(out / "streamed"),
            clock_ms=lambda: sample.until_ms,
            trigger={"availableNow": True},
        )
        stream.wait(query)
        held = {queue.name: queue.depth for queue in client.list_queues()}
    return {name: held[f"{queues.reports}.{name}"] for name in ("discrepancies", "alerts", "dlq")}


def fight(addr: str, messages: int) -> None:
    """All tenants enqueue, then two consumers work off three quarters of it."""
    with Client(addr) as client:
        client.create_queue(
            QUEUE, fairness_header="tenant", weight_header="weight", throttle_headers=["tenant"], max_attempts=2
        )
        for tenant, (weight, part) in TENANTS.items():
            headers = {"tenant": tenant, "weight": str(weight)}
            client.enqueue_many(QUEUE, (OutgoingMessage(b"x" * 200, headers) for _ in range(int(messages * part))))
    left = threading.Semaphore(messages * 3 // 4)
    consumers = [threading.Thread(target=consume, args=(addr, left)) for _ in range(CONSUMERS)]
    for consumer in consumers:
        consumer.start()
    with Client(addr) as client:
        time.sleep(LIMITED_AFTER_S)
        client.set_config(f"throttle.tenant:{LIMITED}", "rate=1")
        time.sleep(LIMITED_FOR_S)
        client.delete_config(f"throttle.tenant:{LIMITED}")
    for consumer in consumers:
        consumer.join()


def consume(addr: str, left: threading.Semaphore) -> None:
    with Client(addr) as client, client.consume(QUEUE, max_in_flight=20) as delivered:
        for number, message in enumerate(delivered):
            time.sleep(WORK_S)
            try:
                message.nack("out of stock") if number % 40 == 0 else message.ack()
            except FilaError:
                continue
            if not left.acquire(blocking=False):
                return


if __name__ == "__main__":
    sys.exit(main())
