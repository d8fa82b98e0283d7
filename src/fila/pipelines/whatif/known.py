"""What a replay knows of the state in which it begins, so that its choices can be held against what was chosen.

A replay that begins with its queues, or when a broker starts, knows all. One that begins in the middle knows
- the rounds of a queue once nothing waits in it;
- the tokens of a limit once it has passed nothing for as long as an empty bucket takes to fill;
- nothing of a queue that held messages of which no entry tells.
"""

from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.core.throttle import Limit

_NS = 1_000_000_000


class Known:
    """Of one part."""

    def __init__(self, *, whole: bool, since: int) -> None:
        """`since`: when the part begins. What is told of earlier times says nothing of what is there."""
        self._whole = whole
        self._since = since
        self._settled: set[str] = set()
        self._unseen: set[str] = set()
        self._limits_known = False
        self._passed: dict[str, tuple[int, Limit, int]] = {}
        """By limit: how many messages it had passed, how it was, and since when both are so"""
        self._dearest = 1

    def of(self, queue: QueueState) -> bool:
        """Whether the scheduler of a queue is as it was."""
        return self._whole or queue.name in self._settled

    def counted(self, queue: QueueState, messages: int, now: int) -> None:
        """How many messages a queue held."""
        if not self._whole and now >= self._since and queue.size != messages:
            self._unseen.add(queue.name)

    def began_anew(self) -> None:
        """The broker started: all rounds begin anew, and all buckets are full."""
        self._whole = not self._unseen

    def look(self, state: BrokerState, now: int, dearest: int) -> None:
        """After a tick. `dearest`: the largest cost in it."""
        if self._whole or now < self._since:
            return
        self._dearest = max(self._dearest, dearest)
        self._limits_known = self._limits_known or self._are_full(state, now)
        if not self._limits_known:
            return
        for name, queue in state.queues.items():
            if name not in self._unseen and not queue.ready and not len(queue.drr):
                self._settled.add(name)

    def _are_full(self, state: BrokerState, now: int) -> bool:
        """Whether the buckets are full whatever was in them, debts for dear messages included."""
        full = True
        for throttle in state.throttles.limited():
            limit = throttle.limit
            if limit is None or limit.rate is None:
                continue
            passed, before, since = self._passed.get(throttle.name, (-1, limit, now))
            if (passed, before) != (throttle.passed, limit):
                since = now
                self._passed[throttle.name] = (throttle.passed, limit, now)
            burst = limit.burst if limit.burst is not None else max(1.0, limit.rate)
            full = full and (now - since) * limit.rate >= (burst + self._dearest) * _NS
        return full
