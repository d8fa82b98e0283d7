"""Makes the queue that the settings ask for. Precedence: 1. broker, 2. Redis, 3. memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.util import find_spec

from fila.jobs.codec import JobCodec
from fila.jobs.errors import QueueUnavailable
from fila.jobs.events import Hook
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.queue import JobQueue
from fila.jobs.settings import QueueSettings

logger = logging.getLogger(__name__)


def create_queue(
    settings: QueueSettings | None = None, *, codec: JobCodec | None = None, hooks: Sequence[Hook] = ()
) -> JobQueue:
    """The queue that the settings (those of the environment, if none are given) ask for.

    If Redis does not answer, this raises QueueUnavailable. With `on_outage = "memory"` the queue begins in memory and
    moves to Redis when it answers. A broker is never replaced by memory.
    """
    settings = QueueSettings.from_env() if settings is None else settings
    if settings.fila is not None:
        from fila.jobs.broker.queue import FilaQueue

        return FilaQueue(settings, codec=codec)
    if settings.use_redis:
        if find_spec("redis") is not None:
            return _redis_queue(settings, codec, hooks)
        if settings.on_outage == "refuse":
            raise QueueUnavailable("the package redis is not installed: pip install 'fila-client[redis]'")
        logger.warning("the package redis is not installed, using a queue in memory: pip install 'fila-client[redis]'")
    return PriorityDelayQueue(settings, codec=codec)


def _redis_queue(settings: QueueSettings, codec: JobCodec | None, hooks: Sequence[Hook]) -> JobQueue:
    from fila.jobs.redis.queue import RedisQueue

    queue = RedisQueue(settings, codec=codec, hooks=hooks)
    if not queue.health_check():
        if settings.on_outage == "refuse":
            queue.close()
            raise QueueUnavailable(f"Redis does not answer at {settings.redis_url_redacted}")
        logger.warning("Redis unavailable, using in-memory queue until it answers")
    return queue
