"""Dramatiq on Redis, with its default middleware but for Prometheus."""

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.jobs import meter

broker = RedisBroker(url=meter.REDIS_URL)
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="bench")
def noop(_n: int) -> None:
    meter.tick()


def enqueue(n: int) -> None:
    noop.send(n)
