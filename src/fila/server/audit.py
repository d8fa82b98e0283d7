"""ReadAudit: entries of the audit, a page at a time, chosen by who, what and when. And each entry as a line of the log.

A call looks at `EFFORT` entries at most, some at a time, and lets others work in between.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Final

import structlog

from fila.auth.patterns import check_pattern, matches
from fila.broker.audit_entries import cut
from fila.broker.broker import Broker
from fila.broker.queue import dead_letter_name
from fila.core.errors import InvalidArgument, ShuttingDown
from fila.server.enums import number_of
from fila.storage.audit import AuditRecord, Values
from fila.v1 import admin_pb2 as pb
from fila.wire.status import StatusCode

MAX_PAGE: Final = 1_000
PAGE_BYTES: Final = 1 << 20
"""About what one answer weighs"""
EFFORT: Final = 20_000
AT_ONCE: Final = 200
"""Entries that are read in one go: about 2 ms"""
MAX_WAIT_MS: Final = 10_000
LOOK_AGAIN_S: Final = 0.05
"""How often a reader that waits looks whether there is a new entry"""
FROM_CALL_TO_CALL: Final = ("cursor", "count", "bounded", "final", "dry_run")
"""Fields that may differ in calls of one purge or redrive"""
KINDS: Final = frozenset({"queue", "throttle", "config", "key", "certificate", "principal", "role"})

log = structlog.get_logger(__name__)

Matches = Callable[[AuditRecord], bool]


def log_entry(number: int, record: AuditRecord) -> None:
    """An entry as a line of the log."""
    changes = {name: list(values) for name, values in record.changes.items()}
    more = {name: value for name in ("stage", "count", "began") if (value := getattr(record, name))}
    if record.times > 1:
        more["times"] = record.times
    (log.warning if record.outcome == StatusCode.PERMISSION_DENIED.name else log.info)(
        "audit",
        entry=number,
        action=record.action,
        resource=f"{record.kind}:{record.resource}",
        principal=record.principal,
        key=record.key_id,
        peer=record.peer,
        outcome=record.outcome,
        changes=changes,
        **more,
    )


async def read_audit(broker: Broker, request: pb.ReadAuditRequest) -> pb.ReadAuditResponse:
    """Raises InvalidArgument or ShuttingDown."""
    if request.from_seq and request.last:
        raise InvalidArgument("from_seq and last cannot both be set")
    if request.wait_ms > MAX_WAIT_MS:
        raise InvalidArgument(f"wait_ms must not exceed {MAX_WAIT_MS}, {request.wait_ms} was given")
    reading = _Reading(broker, request)
    await reading.seek()
    until = asyncio.get_running_loop().time() + request.wait_ms / 1000
    while True:
        response = await reading.page()
        if response.entries or response.position < response.next_seq or asyncio.get_running_loop().time() >= until:
            return response
        if not broker.ready:
            raise ShuttingDown
        await asyncio.sleep(LOOK_AGAIN_S)


class _Reading:
    """How far one call is."""

    def __init__(self, broker: Broker, request: pb.ReadAuditRequest) -> None:
        self._audit = broker.state.audit
        self._store = broker.store
        self._request = request
        self._matches = matcher(request)
        self._position = max(request.from_seq, self._audit.first_entry)

    async def seek(self) -> None:
        """Go to where the last so many matching entries begin."""
        left = self._request.last
        if not left:
            return
        self._position = self._audit.next_entry
        while left > 0 and self._position > self._audit.first_entry:
            start = max(self._audit.first_entry, self._position - AT_ONCE)
            found = self._read(start, self._position)
            left -= len(found)
            self._position = found[-left][0] if left < 0 else start
            await asyncio.sleep(0)

    async def page(self) -> pb.ReadAuditResponse:
        """The next matching entries. Its position is behind all that was looked at."""
        limit, size = min(self._request.limit or MAX_PAGE, MAX_PAGE), 0
        end = min(self._audit.next_entry, self._position + EFFORT)
        response = pb.ReadAuditResponse(first_available_seq=self._audit.first_entry)
        while self._position < end and size < PAGE_BYTES and len(response.entries) < limit:
            behind = min(end, self._position + AT_ONCE)
            for number, record in self._read(self._position, behind)[: limit - len(response.entries)]:
                response.entries.append(write_entry(number, record))
                size += response.entries[-1].ByteSize()
            full = len(response.entries) == limit
            self._position = response.entries[-1].seq + 1 if full else behind
            await asyncio.sleep(0)
        response.position, response.next_seq = self._position, self._audit.next_entry
        return response

    def _read(self, start: int, end: int) -> list[tuple[int, AuditRecord]]:
        entries = self._audit.read(self._store, start, end, self._request.refused)
        return [(number, record) for number, record in entries if self._matches(record)]


def matcher(request: pb.ReadAuditRequest) -> Matches:
    """Whether an entry is what a request asks for. Raises InvalidArgument."""
    who, action = _pattern(request.who), _pattern(request.action)
    kind, pattern = _read_resource(request.resource)
    queues = {request.queue, dead_letter_name(request.queue)} if request.queue else None
    since, until = request.since_ns, request.until_ns or 1 << 64

    def check(record: AuditRecord) -> bool:
        return (
            since <= record.at < until
            and (queues is None or (record.kind == "queue" and record.resource in queues))
            and (not kind or record.kind == kind)
            and (not pattern or matches(pattern, record.resource))
            and (not action or matches(action, record.action))
            and (not who or matches(who, record.principal) or matches(who, record.key_id))
        )

    return check


def _read_resource(text: str) -> tuple[str, str]:
    kind, colon, pattern = text.partition(":")
    if not colon or kind not in KINDS:
        kind, pattern = "", text
    return kind, _pattern(pattern)


def _pattern(text: str) -> str:
    if text:
        try:
            check_pattern(text)
        except ValueError as cause:
            raise InvalidArgument(str(cause)) from cause
    return text


def write_entry(number: int, record: AuditRecord) -> pb.AuditEntry:
    entry = pb.AuditEntry(
        seq=number,
        at_ns=record.at,
        action=record.action,
        principal=record.principal,
        key_id=record.key_id,
        peer=record.peer,
        resource_kind=number_of(pb.AuditResource, record.kind),
        resource=record.resource,
        outcome=record.outcome,
        stage=number_of(pb.AuditStage, record.stage),
        count=record.count,
        times=record.times,
        began_seq=record.began,
    )
    for name, (before, after) in record.changes.items():
        entry.changes.add(name=name, before=before, after=after)
    return entry


def identity_of_sweep(request: pb.RedriveRequest | pb.PurgeRequest) -> bytes:
    """What every call of a purge or redrive asks for alike: all of its request but how far it is and how much of it
    one call does. A field that is added counts.
    """
    same = deepcopy(request)
    for name in FROM_CALL_TO_CALL:
        same.ClearField(name)
    return hashlib.sha256(same.SerializeToString(deterministic=True)).digest()


def describe_sweep(request: pb.RedriveRequest | pb.PurgeRequest) -> Mapping[str, Values]:
    """Which messages a purge or redrive asks for. Header values and texts of errors are not told: they come from
    messages.
    """
    chosen, asked = request.filter, dict[str, str]()
    if request.count:
        asked["count_per_call" if request.bounded and not request.final else "count"] = str(request.count)
    if chosen.HasField("fairness_key"):
        asked["fairness_key"] = chosen.fairness_key
    if chosen.headers:
        asked["headers"] = ", ".join(match.name for match in chosen.headers)
    if chosen.error:
        asked["error"] = f"{len(chosen.error)} characters"
    for name in ("min_age_ms", "max_age_ms"):
        if getattr(chosen, name):
            asked[name] = str(getattr(chosen, name))
    if chosen.states:
        asked["states"] = ", ".join(pb.MessageState.Name(state).rpartition("_")[2].lower() for state in chosen.states)
    if chosen.message_ids:
        asked["message_ids"] = str(len(chosen.message_ids))
    if getattr(request, "any_queue", False):
        asked["any_queue"] = "true"
    return {name: (None, cut(text)) for name, text in asked.items()}
