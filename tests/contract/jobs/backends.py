"""One backend of the contract suite: how to make its queue, let its time pass and lose its worker."""

import time
import uuid

from fila.jobs import FilaQueue, FilaSettings, PriorityDelayQueue, QueueSettings, RedisQueue
from tests.helpers.clock import ManualClock

LEASE = 30.0


class Memory:
    """Time is ours."""

    name = "memory"

    def __init__(self):
        self.clock = ManualClock()
        self.queues = []

    def make(self, **settings):
        queue = PriorityDelayQueue(QueueSettings(lease_seconds=LEASE, **settings), clock=self.clock)
        self.queues.append(queue)
        return queue

    def make_small(self, limit):
        return self.make(max_in_memory=limit)

    def advance(self, seconds):
        self.clock.advance(seconds)

    def lose_worker(self, queue):
        """Whoever held claims of the queue is gone. Returns the queue as the next worker sees it."""
        self.clock.advance(LEASE)
        return queue

    def close(self):
        for queue in self.queues:
            queue.close()


class Redis(Memory):
    """A real Redis, with our time. Each queue has keys of its own."""

    name = "redis"

    def __init__(self, url):
        super().__init__()
        self.url = url

    def make(self, **settings):
        name = uuid.uuid4().hex
        queue = RedisQueue(
            QueueSettings(
                lease_seconds=LEASE,
                use_redis=True,
                redis_url=self.url,
                redis_ready_key=name,
                redis_scheduled_key=name + ":later",
                **settings,
            ),
            clock=self.clock,
        )
        self.queues.append(queue)
        return queue

    def make_small(self, limit):
        return self.make(max_depth=limit)


class Fila:
    """A real broker, which has time of its own. Each queue is one of its own."""

    name = "fila"

    def __init__(self, addr):
        self.addr = addr
        self.queues = []

    def make(self, *, queue=None, **settings):
        fila = FilaSettings(addr=self.addr, queue=queue or uuid.uuid4().hex, timeout=30)
        made = FilaQueue(QueueSettings(lease_seconds=LEASE, fila=fila, **settings))
        self.queues.append(made)
        return made

    def make_small(self, limit):
        return self.make(max_depth=limit)

    def advance(self, seconds):
        time.sleep(seconds)

    def lose_worker(self, queue):
        """Its connection breaks without a word; the broker gives what it held to others."""
        queue._client.close()
        return self.make(queue=queue._name)

    def close(self):
        for queue in self.queues:
            queue.close()
