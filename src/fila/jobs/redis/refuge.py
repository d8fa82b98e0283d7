"""What this process keeps while Redis is away: jobs that were taken in, and what is owed to Redis.

Rules:
- A job is in one place. What moves to Redis has left memory before; what was not sent goes back.
- A job whose taking was not answered may be in Redis. It is held, run by nobody, until Redis can be asked: then it is
  sent again under its id, which Redis takes once.
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
from fila.jobs.redis.link import Away, NotSent
from fila.jobs.redis.remote import Remote, Sending, Settlement

logger = logging.getLogger(__name__)

#: How many jobs move to Redis in one call.
_CHUNK = 200


class Refuge:
    """A queue in memory, jobs of which nobody knows where they are, and settlements that Redis has not heard of."""

    def __init__(self, memory: PriorityDelayQueue, codec: JobCodec) -> None:
        self.memory = memory
        self._codec = codec
        self._lock = threading.Lock()
        self._uncertain: list[Sending] = []
        self._owed: deque[Settlement] = deque()

    def take(self, sending: Sending) -> QueueItem:
        """Take a job that is certainly not in Redis. Raises QueueFull or QueueClosed."""
        return self.memory.put(replace(sending.item, job=self._codec.decode(sending.text)))

    def hold(self, sending: Sending) -> None:
        """Keep a job that may be in Redis."""
        with self._lock:
            self._uncertain.append(sending)

    def owe(self, settlement: Settlement) -> None:
        """Redis is to be told later."""
        self._owed.append(settlement)

    @property
    def held(self) -> int:
        """Jobs of which nobody knows where they are."""
        return len(self._uncertain)

    @property
    def waiting(self) -> int:
        """Jobs that wait here."""
        return self.memory.snapshot()["depth"] + self.held

    @property
    def empty(self) -> bool:
        """Whether Redis has everything."""
        return not self._owed and not self.waiting and not self.memory.snapshot()["dead"]

    def clear(self) -> None:
        with self._lock:
            self._uncertain.clear()
            self._owed.clear()
        self.memory.purge()

    def pay(self, remote: Remote) -> None:
        """Settle what was settled meanwhile. Raises Away, with what is unpaid still owed."""
        while self._owed:
            settlement = self._owed[0]
            held = remote.settle(settlement)
            self._owed.popleft()
            if not held:
                logger.warning(
                    "a job was settled while Redis was away, and its claim is gone",
                    extra={"job_id": settlement.item.id},
                )

    def move(self, remote: Remote) -> None:
        """Send what is here to Redis, in the order in which it would be handed out.

        Raises Away, or QueueUnavailable, with what was not taken still here.
        """
        encode = self._codec.encode
        with self._lock:
            sendings, self._uncertain = self._uncertain, []
        sendings += [Sending(each.item, encode(each.item.job), each.error) for each in self.memory.take_dead()]
        runnable_from = len(sendings)
        sendings += [Sending(item, encode(item.job)) for item in self.memory.take_all()]
        for start in range(0, len(sendings), _CHUNK):
            chunk = sendings[start : start + _CHUNK]
            try:
                remote.add(chunk)
            except (Away, QueueUnavailable) as error:
                # Uncertain and dead ones are held in any case: nobody is to run them from here.
                unsure_until = start if isinstance(error, NotSent) else start + len(chunk)
                self._put_back(sendings[start:], max(unsure_until, runnable_from) - start)
                raise
        if sendings:
            logger.info("moved jobs from memory to Redis", extra={"jobs": len(sendings)})

    def _put_back(self, sendings: list[Sending], unsure: int) -> None:
        with self._lock:
            self._uncertain = sendings[: max(0, unsure)] + self._uncertain
        self.memory.restore(each.item for each in sendings[max(0, unsure) :])
