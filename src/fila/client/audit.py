"""The broker's audit: who changed what, from where and when, with old and new values."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, Unpack

from fila.client.admin_service import AdminCalls, AdminService
from fila.client.arguments import known_names, made
from fila.client.backoff import Backoff
from fila.client.enums import name_of
from fila.client.errors import FilaTimeoutError, UnavailableError
from fila.v1 import admin_pb2

_WAIT_MS = 5_000
"""How long the broker lets a follower wait for the next entry before it answers that there is none."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AuditChange:
    """One setting that changed. None where there is no value, before a creation or after a removal."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change, or one call that was refused."""

    #: The number of the entry, from 1, over restarts too.
    seq: int
    #: Nanoseconds since the epoch.
    at_ns: int
    #: The RPC by its name, such as "PauseQueue"; "InitKey" for a key that was created on the data directory.
    action: str
    #: Empty when the broker had no keys.
    principal: str
    #: The id of its key; of a caller with a certificate or a token "certificate:..." or "token:...".
    key_id: str
    #: The address that the call came from.
    peer: str
    #: "queue", "throttle", "config", "key", "certificate" (a rule), "principal" or "role".
    resource_kind: str
    resource: str
    #: "ok", "interrupted", or the status of a refused call, such as "PERMISSION_DENIED".
    outcome: str
    #: "begin" or "end" of a purge or redrive; else empty.
    stage: str
    #: Messages that were moved, removed, or deleted with their queue.
    count: int
    #: How many refused calls the entry stands for.
    times: int
    #: Of an end: the number of its begin.
    began_seq: int
    changes: tuple[AuditChange, ...]

    @property
    def at(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.at_ns // 1000)


class AuditOptions(TypedDict, total=False):
    """Which entries to read. An entry must match all that is given."""

    #: The last so many matching entries, instead of those from `from_seq` on.
    last: int
    #: Only entries about this queue and its dead-letter queue. Needs the permission `audit` on that queue alone.
    queue: str
    #: A pattern of principals or ids of keys.
    who: str
    #: A pattern of actions, such as "PauseQueue" or "*Key".
    action: str
    #: A pattern of names, or "kind:pattern", such as "queue:orders.**".
    resource: str
    #: Not before this time.
    since: datetime
    #: Before this time.
    until: datetime
    #: Only calls that were refused.
    refused: bool
    #: Go on with new entries, over restarts of the broker, until the iteration is ended.
    follow: bool


class AuditCalls(AdminCalls):
    """The call that reads the audit, as `AsyncClient` has it."""

    async def read_audit(self, from_seq: int = 0, **options: Unpack[AuditOptions]) -> AsyncIterator[AuditEntry]:
        """The entries of the audit from `from_seq` on (0: the oldest). `AuditOptions` lists the options."""
        async for page in audit_pages(self._admin(), from_seq, options):
            for entry in page:
                yield entry


async def audit_pages(admin: AdminService, from_seq: int, options: AuditOptions) -> AsyncIterator[list[AuditEntry]]:
    """Pages of entries. Raises InvalidArgumentError for options that there are not."""
    known_names("option", options, AuditOptions.__annotations__)
    request, follow = _request(from_seq, options), bool(options.get("follow"))
    end = None
    while True:
        response = await _ask(admin, request, follow)
        yield [_read(entry) for entry in response.entries]
        end = response.next_seq if end is None else end
        request.from_seq, request.last = response.position, 0
        if not follow and response.position >= end:
            return
        request.wait_ms = _WAIT_MS if follow else 0


async def _ask(admin: AdminService, request: admin_pb2.ReadAuditRequest, follow: bool) -> admin_pb2.ReadAuditResponse:
    """The next page. A follower waits for a broker that is away."""
    backoff = Backoff()
    while True:
        try:
            return await admin.call(admin.stub.ReadAudit, request, timeout_s=admin.timeout_s + request.wait_ms / 1000)
        except (UnavailableError, FilaTimeoutError):
            if not (follow and request.from_seq):  # a wrong address should fail
                raise
            await asyncio.sleep(backoff.next_wait_s())


def _request(from_seq: int, options: AuditOptions) -> admin_pb2.ReadAuditRequest:
    given: dict[str, Any] = {name: value for name, value in options.items() if name not in {"since", "until", "follow"}}
    times = {f"{name}_ns": _ns(options[name]) for name in ("since", "until") if name in options}
    return made(admin_pb2.ReadAuditRequest, from_seq=from_seq, **given, **times)


def _ns(moment: datetime) -> int:
    """A time without a zone is local time."""
    return max(0, (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) * 1000)


def _read(entry: admin_pb2.AuditEntry) -> AuditEntry:
    return AuditEntry(
        seq=entry.seq,
        at_ns=entry.at_ns,
        action=entry.action,
        principal=entry.principal,
        key_id=entry.key_id,
        peer=entry.peer,
        resource_kind=name_of(admin_pb2.AuditResource, entry.resource_kind),
        resource=entry.resource,
        outcome=entry.outcome,
        stage=name_of(admin_pb2.AuditStage, entry.stage),
        count=entry.count,
        times=entry.times,
        began_seq=entry.began_seq,
        changes=tuple(
            AuditChange(
                change.name,
                change.before if change.HasField("before") else None,
                change.after if change.HasField("after") else None,
            )
            for change in entry.changes
        ),
    )
