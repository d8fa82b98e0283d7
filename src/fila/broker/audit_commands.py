"""What the audit is told: who asks for a change, and the commands that write entries and change nothing else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fila.core.errors import BrokerError
from fila.storage.audit import OK, AuditRecord, Values

MAX_WHO = 300
"""Characters of a principal or a credential: a token and a certificate may name anything."""


class Origin(NamedTuple):
    """Who asks for a change, from where, and by which call."""

    action: str
    """The RPC by its name"""
    principal: str = ""
    """Empty: there are no keys."""
    key_id: str = ""
    """Of a caller with a certificate or a token: that name, behind what it is"""
    peer: str = ""

    @property
    def by(self) -> str:
        """Who it is, in one word or two."""
        return f"{self.principal} {self.peer}" if self.principal else self.peer

    def record(self, at: int, kind: str, resource: str, **more: Any) -> AuditRecord:
        """An entry about something that it has changed."""
        who, shown = self.principal[:MAX_WHO], self.key_id[:MAX_WHO]
        return AuditRecord(at, self.action, kind, resource, who, shown, self.peer, **more)

    def entry(self, at: int, kind: str, resource: str, changes: Mapping[str, Values], count: int = 0) -> AuditRecord:
        """As `record`, with what was changed."""
        return self.record(at, kind, resource, changes=changes, count=count)


INTERNAL = Origin("Internal", peer="the broker itself")
"""No caller: what a program does that has the broker inside itself."""


@dataclass(slots=True)
class BeginSweep:
    """Messages of a queue are going to be purged or redriven. Answered with the number of the entry that says so."""

    origin: Origin
    queue: str
    asked: Mapping[str, Values]
    """Which messages, in words of the request"""
    reply: Callable[[int | BrokerError], None]
    identity: bytes = b""
    """The same in every call that goes on with it"""
    size: int = 1


@dataclass(slots=True)
class EndSweep:
    """A sweep has ended. Does nothing for one that has ended before."""

    number: int
    reply: Callable[[BrokerError | None], None]
    outcome: str = OK
    size: int = 1


@dataclass(slots=True)
class RecordRefusals:
    """Calls that would have changed something and were refused."""

    records: Sequence[AuditRecord]
    reply: Callable[[BrokerError | None], None]
    size: int = 1
