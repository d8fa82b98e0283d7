"""A worker process for tests: adds each job's amount to a balance in SQLite, as one transaction with the note of it.

worker_program.py REDIS_URL DATABASE [die-before-commit | die-before-ack]
"""

import os
import signal
import sqlite3
import sys

from fila.jobs import PoolSettings, QueueSettings, RedisQueue, RunnerSettings, WorkerPool


class Log:
    """The note, in the database of the effects."""

    def finished(self, session, key):
        return session.execute("SELECT 1 FROM attempts WHERE key = ?", (key,)).fetchone() is not None

    def record(self, session, key, attempt):
        session.execute("INSERT INTO attempts VALUES (?, ?)", (key, attempt))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class DyingQueue(RedisQueue):
    def ack(self, item):
        die()


def main():
    url, database, *fault = sys.argv[1:]
    kind = DyingQueue if "die-before-ack" in fault else RedisQueue
    queue = kind(QueueSettings(use_redis=True, redis_url=url, lease_seconds=0.5, redis_health_check_timeout=30.0))

    def add(context):
        context.session.execute("UPDATE balance SET amount = amount + ?", (context.job["amount"],))
        if "die-before-commit" in fault:
            die()

    run = RunnerSettings(
        session_factory=lambda: sqlite3.connect(database, check_same_thread=False, timeout=30), attempts=Log()
    )
    pool = WorkerPool(queue, add, PoolSettings(concurrency=2), run)
    pool.start()
    signal.sigwait({signal.SIGTERM})
    sys.exit(0 if pool.stop() else 1)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main()
