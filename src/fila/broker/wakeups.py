"""What the next ticks have to look at: queues that may have something to deliver, and when the next lease or delay
ends.

These are hints. A queue may be named in vain, and a time may be too early; neither may be left out or too late.
"""

from collections.abc import Iterable, Mapping

from fila.broker.queue import QueueState
from fila.core.schedule import Delayed
from fila.core.throttle import ThrottleManager

NEVER = 1 << 63


class Wakeups:
    """Changed by whatever becomes durable, read by the engine."""

    __slots__ = ("_freed", "_unfinished", "due_at", "overfull", "wanted")

    def __init__(self) -> None:
        self.wanted: dict[str, None] = {}
        """Queues that may have something to deliver, in turn"""
        self._unfinished: dict[str, None] = {}
        """Queues in which there was more to look at than one tick may"""
        self.due_at = NEVER
        """No lease and no delay ends before this. Looked up anew when it has passed, not whenever one is settled."""
        self.overfull: dict[str, None] = {}
        """Queues that are to drop messages"""
        self._freed: dict[str, QueueState] = {}
        """Queues whose consumers have just got credit and in which nothing waits: only their ledgers are told
        (`note_idle`)"""

    def want(self, queue: QueueState) -> None:
        """Look at a queue in the next tick, if it has consumers."""
        if len(queue.consumers):
            self.wanted[queue.name] = None

    def look_again(self, queue: QueueState) -> None:
        """There was more to look at in a queue than one tick may: look again in the next one, after all others."""
        self._unfinished[queue.name] = None

    def end_round(self) -> None:
        """All queues had their turn in this tick."""
        self.wanted.update(self._unfinished)
        self._unfinished.clear()

    def want_throttled(self, queues: Mapping[str, QueueState], throttles: ThrottleManager, now: int) -> None:
        """Look at the queues that wait for a throttle which may let something pass."""
        due = [name for name in throttles.due(now) if name in queues and len(queues[name].consumers)]
        if due:
            self.wanted = in_turn(self.wanted, due)

    def delay(self, queue: QueueState, delayed: Delayed) -> None:
        """Put a message into a queue's schedule."""
        queue.schedule.add(delayed)
        self.ends(delayed[0])

    def ends(self, at: int) -> None:
        """A lease or a delay ends then."""
        self.due_at = min(self.due_at, at)

    def look_up_due(self, queues: Iterable[QueueState]) -> None:
        ends = ((queue.leases.next_expiry(), queue.schedule.next_due()) for queue in queues)
        self.due_at = min((end for pair in ends for end in pair if end is not None), default=NEVER)

    def note_overfull(self, queue: QueueState) -> None:
        """A queue holds more, or more of it can be dropped."""
        if queue.overfull:
            self.overfull[queue.name] = None

    def free_credit(self, queue: QueueState, number: int, count: int) -> None:
        """A consumer holds so many messages less."""
        consumer = queue.consumers.find(number)
        if consumer is not None:
            consumer.in_flight -= count
            if consumer.trying and not consumer.in_flight:
                consumer.stop_trying()
        elif not queue.leases.of_consumer(number):  # it has gone, and this was the last that it held
            queue.consumers.forget(number)
        if queue.ready or len(queue.suspects):
            self.want(queue)
        else:
            self._freed[queue.name] = queue

    def note_idle(self, now: int) -> None:
        """Whether queues without messages now have a consumer that waits. A tick would find nothing else to do."""
        for queue in self._freed.values():
            queue.ledger.idle.set(queue.record.paused or not queue.consumers.has_credit, now)
        self._freed.clear()


def in_turn(wanted: dict[str, None], due: list[str]) -> dict[str, None]:
    """Queues that are wanted, with those that are due among them, and these in their order.

    The positions of all others stay as they are: a queue that waits for a throttle does not put off one that does not,
    nor is it put off by one that waits for the same throttle and was served last.
    """
    turn = iter(due)
    known = set(due)
    return {next(turn) if name in known else name: None for name in {**wanted, **dict.fromkeys(due)}}
