"""The messages that this client holds, by lease, so that their leases can be kept alive. Pure: no clock, no stream."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from threading import RLock

Lease = tuple[str, str]  #: queue, lease id


@dataclass(slots=True)
class Group:
    """What was delivered to one consumer under one lease, and is not settled."""

    owner: Hashable
    message_ids: set[str] = field(default_factory=set)
    #: How many times `due` saw it.
    age: int = 0


class HeldLeases:
    """Every delivered and unsettled message of a client.

    Callable from any thread, for some settle where they work, and again from a handler of signals that interrupts it.
    """

    __slots__ = ("_groups", "_lock")

    def __init__(self) -> None:
        self._groups: dict[Lease, Group] = {}
        self._lock = RLock()

    def add(self, owner: Hashable, queue: str, lease_id: str, message_ids: Iterable[str]) -> None:
        with self._lock:
            group = self._groups.get((queue, lease_id))
            if group is None:
                group = self._groups[(queue, lease_id)] = Group(owner)
            group.message_ids.update(message_ids)

    def forget(self, queue: str, lease_id: str, message_ids: Iterable[str]) -> None:
        """Settled, or lost. Without a lease id: whichever lease of the queue they are held under."""
        with self._lock:
            if lease_id:
                self._drop((queue, lease_id), message_ids)
                return
            message_ids = list(message_ids)
            for lease in [lease for lease in list(self._groups) if lease[0] == queue]:
                self._drop(lease, message_ids)

    def forget_owner(self, owner: Hashable) -> None:
        with self._lock:
            for lease in [lease for lease, group in list(self._groups.items()) if group.owner == owner]:
                self._groups.pop(lease, None)

    def due(self, owner: Hashable) -> list[tuple[str, str, list[str]]]:
        """Queue, lease id and message ids to extend now; to be asked at regular intervals.

        What came since the last time is left out: at three times in a visibility timeout it has two more chances.
        """
        due: list[tuple[str, str, list[str]]] = []
        with self._lock:
            for (queue, lease_id), group in list(self._groups.items()):
                if group.owner == owner:
                    if group.age:
                        due.append((queue, lease_id, list(group.message_ids)))
                    group.age += 1
        return due

    def __len__(self) -> int:
        with self._lock:
            return sum(len(group.message_ids) for group in list(self._groups.values()))

    def _drop(self, lease: Lease, message_ids: Iterable[str]) -> None:
        group = self._groups.get(lease)
        if group is not None:
            group.message_ids.difference_update(message_ids)
            if not group.message_ids:
                self._groups.pop(lease, None)
