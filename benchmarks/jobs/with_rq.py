"""RQ without a fork for each job (SimpleWorker): its fastest, and the only one with a process to count in."""

import logging

from redis import Redis
from rq import Queue, SimpleWorker

from benchmarks.jobs import meter

connection = Redis.from_url(meter.REDIS_URL)
queue = Queue("bench", connection=connection)


def noop(_n: int) -> None:
    meter.tick()


def enqueue(n: int) -> None:
    queue.enqueue(noop, n, result_ttl=0)


def main() -> None:
    logging.disable(logging.INFO)
    SimpleWorker([queue], connection=connection).work(logging_level="WARNING")


if __name__ == "__main__":
    # Jobs name their function by its module, and it must be counted where it is run.
    from benchmarks.jobs.with_rq import main as run

    run()
