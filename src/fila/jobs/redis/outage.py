"""What this process keeps during an outage of Redis: jobs that were enqueued, and settlements to send later.

Rules:
- A job is in memory or in Redis, never in both. It leaves memory before it is sent; one that was not sent goes back.
- A job whose enqueue had no response is uncertain: it may be in Redis. Nobody runs it here. When Redis answers again it
  is sent once more under its id, which Redis takes once.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import replace

from fila.jobs.codec import JobCodec
from fila.jobs.errors import QueueUnavailable
from fila.jobs.item import QueueItem
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.redis.client import NotExecuted, RedisUnavailable
from fila.jobs.redis.commands import OutgoingJob, QueueCommands, Settlement

logger = logging.getLogger(__name__)

#: How many jobs move to Redis in one call.
_CHUNK = 200


class OutageBuffer:
    """A queue in memory, uncertain jobs, and settlements that Redis has not been told."""

    def __init__(self, memory: PriorityDelayQueue, codec: JobCodec) -> None:
        self.memory = memory
        self._codec = codec
        self._lock = threading.Lock()
        self._uncertain: list[OutgoingJob] = []
        self._settlements: deque[Settlement] = deque()

    def add(self, outgoing: OutgoingJob) -> QueueItem:
        """Keep a job that is certainly not in Redis. Raises QueueFull or QueueClosed."""
        return self.memory.put(replace(outgoing.item, job=self._codec.decode(outgoing.text)))

    def add_uncertain(self, outgoing: OutgoingJob) -> None:
        """Keep a job that may be in Redis."""
        with self._lock:
            self._uncertain.append(outgoing)

    def add_settlement(self, settlement: Settlement) -> None:
        """Keep what Redis is to be told later."""
        self._settlements.append(settlement)

    @property
    def uncertain(self) -> int:
        """How many jobs may be in Redis."""
        return len(self._uncertain)

    @property
    def waiting(self) -> int:
        """Jobs that wait here."""
        return self.memory.snapshot()["depth"] + self.uncertain

    @property
    def empty(self) -> bool:
        """Whether Redis has everything."""
        return not self._settlements and not self.waiting and not self.memory.snapshot()["dead"]

    def clear(self) -> None:
        with self._lock:
            self._uncertain.clear()
            self._settlements.clear()
        self.memory.purge()

    def send_settlements(self, commands: QueueCommands) -> None:
        """Settle in Redis what was settled meanwhile. Raises RedisUnavailable; what was not sent stays here."""
        while self._settlements:
            settlement = self._settlements[0]
            was_claimed = commands.settle(settlement)
            self._settlements.popleft()
            if not was_claimed:
                logger.warning(
                    "a job was settled during an outage of Redis, and its claim is gone",
                    extra={"job_id": settlement.item.id},
                )

    def send_jobs(self, commands: QueueCommands) -> None:
        """Move the jobs to Redis, in the order in which they would be handed out.

        Raises RedisUnavailable or QueueUnavailable; jobs that were not moved stay here.
        """
        encode = self._codec.encode
        with self._lock:
            outgoing, self._uncertain = self._uncertain, []
        outgoing += [OutgoingJob(each.item, encode(each.item.job), each.error) for each in self.memory.take_dead()]
        runnable_from = len(outgoing)
        outgoing += [OutgoingJob(item, encode(item.job)) for item in self.memory.take_all()]
        for start in range(0, len(outgoing), _CHUNK):
            chunk = outgoing[start : start + _CHUNK]
            try:
                commands.add(chunk)
            except (RedisUnavailable, QueueUnavailable) as error:
                # Uncertain and dead ones stay uncertain in any case: nobody is to run them from here.
                uncertain_until = start if isinstance(error, NotExecuted) else start + len(chunk)
                self._put_back(outgoing[start:], max(uncertain_until, runnable_from) - start)
                raise
        if outgoing:
            logger.info("moved jobs from memory to Redis", extra={"jobs": len(outgoing)})

    def _put_back(self, outgoing: list[OutgoingJob], uncertain: int) -> None:
        with self._lock:
            self._uncertain = outgoing[: max(0, uncertain)] + self._uncertain
        self.memory.restore(each.item for each in outgoing[max(0, uncertain) :])
