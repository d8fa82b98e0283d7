"""What became of messages that somebody settles and nobody holds: whether they still exist.

An ack whose answer was lost is sent again. It may count as done only if the message is gone for good, whatever happened
in between: it may have come back, died, been sent back from the dead letters, or be held by another consumer, also over
a restart. None of that can be told from leases, so the store is asked. It is asked for both queues in which the message
can be, the queue and its dead letters, in one go: between two ticks nothing moves. What is gone then stays gone, since
no sequence number is used twice.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from fila.broker.commands import Failure
from fila.broker.queue import QueueState
from fila.broker.state import BrokerState
from fila.core.errors import BrokerError, LeaseEnded, MessageGone, MessageNotFound, StoreFailed, StoreUnusable
from fila.storage import keys
from fila.storage.base import Family, Storage

LOOKUPS_A_TICK = 64
"""Messages: about 4 ms, at 30 us for each of two queues."""


class Lookups:
    """Settlements that failed, to be answered when it is known which of their messages exist."""

    __slots__ = ("_lookups", "_state", "_store", "messages")

    def __init__(self, state: BrokerState, store: Storage) -> None:
        self._state = state
        self._store = store
        self._lookups: deque[_Lookup] = deque()
        self.messages = 0
        """That are to be looked up, or were for settlements that are not answered yet"""

    def __bool__(self) -> bool:
        return bool(self._lookups)

    def answer(self, room: int, reply: Callable[[Any], None], failures: list[Failure]) -> None:
        """Answer at once, or when it is known which messages exist if that is to be found out and there is room."""
        lookup = _Lookup(reply, failures) if failures else None
        if lookup is None or not 0 < lookup.size <= room:
            reply(failures)
        else:
            self.messages += lookup.size
            self._lookups.append(lookup)

    def go_on(self) -> None:
        """Look some up, in turn. Only between writes: what the store says is the answer."""
        budget = LOOKUPS_A_TICK
        while self._lookups and budget > 0:
            lookup = self._lookups.popleft()
            budget -= lookup.go_on(self._state, self._store, budget)
            if lookup.done:
                self.messages -= lookup.size
            else:
                self._lookups.append(lookup)

    def give_up(self, error: BrokerError) -> None:
        """Answer all with an error."""
        lookups, self._lookups, self.messages = self._lookups, deque(), 0
        for lookup in lookups:
            lookup.give_up(error)


class _Lookup:
    """The failures of one settlement."""

    __slots__ = ("_failures", "_reply", "_unclear", "size")

    def __init__(self, reply: Callable[[Any], None], failures: list[Failure]) -> None:
        self._reply = reply
        self._failures = failures
        self._unclear = [index for index, failure in enumerate(failures) if type(failure.error) is MessageNotFound]
        self.size = len(self._unclear)
        """How many messages are to be looked up"""

    @property
    def done(self) -> bool:
        """Whether it is answered."""
        return not self._unclear

    def go_on(self, state: BrokerState, store: Storage, most: int) -> int:
        """Look up some more, `most` at most, and answer if that was all. Returns how many."""
        chosen = self._unclear[:most]
        for index in chosen:
            queue, message_id = self._failures[index].queue, self._failures[index].message_id
            self._failures[index] = Failure(queue, message_id, _find_out(state, store, queue, message_id))
        del self._unclear[:most]
        if self.done:
            self._reply(self._failures)
        return len(chosen)

    def give_up(self, error: BrokerError) -> None:
        self._reply(error)


def _find_out(state: BrokerState, store: Storage, name: str, message_id: str) -> BrokerError:
    queue, seq = state.queues.get(name), state.ids.seq(message_id)
    if queue is None or seq is None or seq > state.sequence.last:
        return MessageGone(message_id, name)
    try:
        exists = any(_holds(store, each, seq) for each in whereabouts(state, queue))
    except (StoreFailed, StoreUnusable):
        return MessageNotFound(message_id, name)
    return LeaseEnded(message_id, name) if exists else MessageGone(message_id, name)


def whereabouts(state: BrokerState, queue: QueueState) -> list[QueueState]:
    """Where a message can be that was in a queue: the ways from queue to queue are written down here."""
    other = state.queues.get(queue.record.source) if queue.record.source else queue.dead_letters
    return [queue] if other is None else [queue, other]


def _holds(store: Storage, queue: QueueState, seq: int) -> bool:
    if seq in queue.leases or seq in queue.attempts:  # which of most is known without the store
        return True
    start, end = (keys.message((queue.prefix, b""), number) for number in (seq, seq + 1))
    return store.has_any(Family.MESSAGES, start, end)
