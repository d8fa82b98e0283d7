"""Huey on Redis, results off."""

from huey import RedisHuey

from benchmarks.jobs import meter

huey = RedisHuey("bench", url=meter.REDIS_URL, results=False)


@huey.task()
def noop(_n: int) -> None:
    meter.tick()


def enqueue(n: int) -> None:
    noop(n)
