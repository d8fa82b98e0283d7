"""The in-flight messages of a client (delivered, not yet settled), by lease. Pure: no clock, no stream.

`lease_extension` asks here which leases to extend.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from threading import RLock

Lease = tuple[str, str]  #: queue, lease id


@dataclass(slots=True)
class _Leased:
    """The in-flight messages that one consumer received under one lease."""

    owner: Hashable
    message_ids: set[str] = field(default_factory=set)
    #: How many times `due` has seen it.
    age: int = 0


class InFlight:
    """Every delivered and unsettled message of a client.

    Callable from any thread, since threads settle messages themselves. The lock is reentrant: a signal handler may
    settle a message while it interrupts a call here.
    """

    __slots__ = ("_leases", "_lock")

    def __init__(self) -> None:
        self._leases: dict[Lease, _Leased] = {}
        self._lock = RLock()

    def add(self, owner: Hashable, queue: str, lease_id: str, message_ids: Iterable[str]) -> None:
        with self._lock:
            leased = self._leases.get((queue, lease_id))
            if leased is None:
                leased = self._leases[(queue, lease_id)] = _Leased(owner)
            leased.message_ids.update(message_ids)

    def forget(self, queue: str, lease_id: str, message_ids: Iterable[str]) -> None:
        """Drop messages that are settled or lost. Without a lease id, under whichever lease of the queue they are."""
        with self._lock:
            if lease_id:
                self._drop((queue, lease_id), message_ids)
                return
            message_ids = list(message_ids)
            for lease in [lease for lease in list(self._leases) if lease[0] == queue]:
                self._drop(lease, message_ids)

    def forget_owner(self, owner: Hashable) -> None:
        with self._lock:
            for lease in [lease for lease, leased in list(self._leases.items()) if leased.owner == owner]:
                self._leases.pop(lease, None)

    def holds(self, owner: Hashable) -> bool:
        """Whether anything that this one has added is not settled."""
        with self._lock:
            return any(leased.owner == owner for leased in self._leases.values())

    def due(self, owner: Hashable) -> list[tuple[str, str, list[str]]]:
        """Queue, lease id and message ids to extend now. Call it at regular intervals.

        Leases that are new since the last call are left out: with three calls per visibility timeout they have two
        more chances.
        """
        due: list[tuple[str, str, list[str]]] = []
        with self._lock:
            for (queue, lease_id), leased in list(self._leases.items()):
                if leased.owner == owner:
                    if leased.age:
                        due.append((queue, lease_id, list(leased.message_ids)))
                    leased.age += 1
        return due

    def __len__(self) -> int:
        with self._lock:
            return sum(len(leased.message_ids) for leased in list(self._leases.values()))

    def _drop(self, lease: Lease, message_ids: Iterable[str]) -> None:
        leased = self._leases.get(lease)
        if leased is not None:
            leased.message_ids.difference_update(message_ids)
            if not leased.message_ids:
                self._leases.pop(lease, None)
