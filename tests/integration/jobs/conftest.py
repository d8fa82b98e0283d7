"""Redis servers of the tests' own."""

import pytest

from fila.jobs import QueueSettings, RedisQueue
from fila.testing import RedisProcess


@pytest.fixture
def redis_server(tmp_path):
    """To be killed and frozen at will."""
    with RedisProcess(tmp_path) as process:
        yield process
        print(process.log_path.read_text(errors="replace"))


@pytest.fixture
def make_queue(redis_server):
    """Queues on one Redis, as different processes would have them. Quick to notice that it is away, and back."""
    made = []

    def make(url=None, **settings):
        quick = {
            "redis_health_check_timeout": 0.3,
            "redis_health_check_interval": 0.05,
            "lease_seconds": 3.0,
            "on_outage": "memory",
        }
        hooks = settings.pop("hooks", ())
        queue = RedisQueue(
            QueueSettings(use_redis=True, redis_url=url or redis_server.url, **(quick | settings)), hooks=hooks
        )
        made.append(queue)
        return queue

    yield make
    for queue in made:
        queue.close()
