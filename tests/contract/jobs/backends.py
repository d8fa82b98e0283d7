"""One backend of the contract suite: how to make its queue, let its time pass and lose its worker."""

import time

from fila.jobs import PriorityDelayQueue, QueueSettings
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


class RealTime:
    """A backend whose service reads a clock of its own."""

    def advance(self, seconds):
        time.sleep(seconds)
