"""Celery on Redis, results off, as its documentation suggests for jobs whose result nobody wants."""

from celery import Celery

from benchmarks.jobs import meter

app = Celery("bench", broker=meter.REDIS_URL)
app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False)


@app.task(name="noop")
def noop(_n: int) -> None:
    meter.tick()


def enqueue(n: int) -> None:
    noop.delay(n)
