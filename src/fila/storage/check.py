"""Whether a store is whole: every entry can be read, and what names another one finds it.

What is wrong is told in words, and nothing is changed. Two kinds of findings:

- damage: the broker would refuse the store, or lose or repeat something.
- leftovers: entries that refer to nothing any more. A crash leaves some; they do no harm, and a start removes them.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from struct import error as struct_error

from fila.core.errors import StoreCorrupt
from fila.storage import audit, codec, journal, keys
from fila.storage.base import Family
from fila.storage.format import FORMAT, OLDEST_FORMAT
from fila.storage.migration import as_present
from fila.storage.reader import StoreReader

SHOWN = 10
"""Findings of one kind that are told one by one; the rest is counted."""

_CLOCK_KEY = b"clock"
_AUDIT_OVERHEAD = keys.SEQ_BYTES + 1
_UNREADABLE = (StoreCorrupt, ValueError, LookupError, struct_error)


@dataclass(slots=True)
class Report:
    """What was found in a store."""

    entries: Counter[str] = field(default_factory=Counter)
    """By family"""
    queues: dict[str, int] = field(default_factory=dict)
    """How many messages each has, whatever their state"""
    damage: list[str] = field(default_factory=list)
    leftovers: Counter[str] = field(default_factory=Counter)
    _told: Counter[str] = field(default_factory=Counter)

    @property
    def whole(self) -> bool:
        return not self._told

    def say(self, what: str, where: str) -> None:
        """Note damage of a kind, at a place."""
        self._told[what] += 1
        if self._told[what] <= SHOWN:
            self.damage.append(f"{what}: {where}")

    @property
    def untold(self) -> dict[str, int]:
        """How many more there are of each kind of damage than are told one by one."""
        return {what: count - SHOWN for what, count in self._told.items() if count > SHOWN}


class Checker:
    """Goes through a store once, family by family."""

    def __init__(self, store: StoreReader, progress: Callable[[str, int], None] = lambda _family, _done: None) -> None:
        self._store = store
        self._progress = progress
        self._seqs: dict[str, array[int]] = {}
        """The messages of each queue, in order"""
        self._grants: dict[tuple[str, int], int] = {}
        """When leases end, by queue and grant"""
        self._claimed: set[tuple[str, int]] = set()
        self.report = Report()

    def run(self) -> Report:
        found = self._store.format
        if not OLDEST_FORMAT <= found <= FORMAT:
            self.report.say(
                "unknown format", f"the store has format {found}, this version reads {OLDEST_FORMAT} to {FORMAT}"
            )
            return self.report
        if self._store.node is None:
            self.report.say("lost identity", "the store does not say which one it is, so ids of messages are unknown")
        for check in (
            self._queues, self._messages, self._schedule, self._leases, self._claims, self._expiry, self._attempts,
            self._dedup, self._staged, self._settings, self._journal, self._audit,
        ):  # fmt: skip
            try:
                check()
            except StoreCorrupt as damaged:
                self.report.say("unreadable", str(damaged))
        self.report.queues = {name: len(seqs) for name, seqs in self._seqs.items()}
        return self.report

    def _each(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        name = family.name
        for count, entry in enumerate(self._store.scan(family), 1):
            self.report.entries[name] = count
            if not count % 10_000:
                self._progress(name, count)
            yield entry

    def _bad(self, family: Family, key: bytes, why: object = "it cannot be read") -> None:
        self.report.say(f"bad entry in {family.name}", f"{_shown(key)}: {why}")

    def _has(self, queue: str, seq: int) -> bool:
        seqs = self._seqs.get(queue)
        if seqs is None:
            return False
        at = bisect_left(seqs, seq)
        return at < len(seqs) and seqs[at] == seq

    def _queues(self) -> None:
        for key, value in self._each(Family.QUEUES):
            try:
                name, end = keys.read_name(key, 0)
                record = codec.read_queue(value)
                if end != len(key) or record.name != name:
                    raise ValueError(f"the queue at {name!r} says that it is {record.name!r}")
                self._seqs[name] = array("Q")
            except _UNREADABLE as why:
                self._bad(Family.QUEUES, key, why)

    def _messages(self) -> None:
        clock = int.from_bytes(self._store.get(Family.DEFAULT, _CLOCK_KEY) or b"", "big")
        heads: set[bytes] = set()
        for key, value in self._each(Family.MESSAGES):
            try:
                parts, seq = keys.read_message(key)
                queue, _, _ = keys.read_lane(keys.joined(parts))
                head = codec.head_of(value)
                if head not in heads:
                    codec.read_head(head)
                    heads.add(head)
            except _UNREADABLE as why:
                self._bad(Family.MESSAGES, key, why)
                continue
            seqs = self._seqs.get(queue)
            if seqs is None:
                self.report.say("message of a queue that does not exist", f"{queue!r}, message {seq}")
                continue
            if seqs and seqs[-1] == seq:
                self.report.say("two messages with one number", f"{queue!r}, message {seq}")
            if seq > clock:
                self.report.say("message from the future", f"{queue!r}, message {seq}: the clock mark is {clock}")
            seqs.append(seq)

    def _schedule(self) -> None:
        due: set[tuple[str, int]] = set()
        for key, value in self._each(Family.SCHEDULED):
            try:
                _, queue, seq = keys.read_scheduled(key)
                if value != codec.scheduled():
                    raise ValueError("its value has an unknown version")
            except _UNREADABLE as why:
                self._bad(Family.SCHEDULED, key, why)
                continue
            if not self._has(queue, seq):
                self.report.leftovers["delays of messages that are gone"] += 1
            elif (queue, seq) in due:
                self.report.say("message with two delays", f"{queue!r}, message {seq}")
            due.add((queue, seq))

    def _leases(self) -> None:
        for key, value in self._each(Family.LEASES):
            try:
                queue, number = keys.read_grant(key)
                record = codec.read_grant(value)
            except _UNREADABLE as why:
                self._bad(Family.LEASES, key, why)
                continue
            self._grants[queue, number] = record.expires_at
            if queue not in self._seqs:
                self.report.say("lease of a queue that does not exist", f"{queue!r}, lease {number}")
            elif not any(self._has(queue, seq) for seq in record.members):
                self.report.leftovers["leases of messages that are gone"] += 1

    def _claims(self) -> None:
        known: set[tuple[str, str, int]] = set()
        groups: set[tuple[str, str]] = set()
        for key, value in self._each(Family.CLAIMS):
            try:
                queue, group, numbers = keys.read_claim(key)
                if queue not in self._seqs:
                    raise ValueError(f"there is no queue {queue!r}")
                if not numbers:
                    codec.read_group(value)
                    groups.add((queue, group))
                elif (queue, group) not in groups:
                    raise ValueError(f"a claim of the group {group!r}, which does not exist")
                elif len(numbers) == 1:
                    codec.read_claim(value)
                    known.add((queue, group, numbers[0]))
                elif (queue, group, numbers[0]) not in known:
                    raise ValueError(f"a part of claim {numbers[0]} of the group {group!r}, which does not exist")
                else:
                    self._claimed.add((queue, codec.read_claim_part(value)[0]))
            except _UNREADABLE as why:
                self._bad(Family.CLAIMS, key, why)

    def _expiry(self) -> None:
        ends: set[tuple[str, int]] = set()
        for key, _ in self._each(Family.LEASE_EXPIRY):
            try:
                at, queue, number = keys.read_scheduled(key)  # they look alike
            except _UNREADABLE as why:
                self._bad(Family.LEASE_EXPIRY, key, why)
                continue
            if (queue, number) not in self._grants:
                self.report.say("end of a lease that does not exist", f"{queue!r}, lease {number}")
            elif self._grants[queue, number] != at and (queue, number) not in self._claimed:
                self.report.say("lease with two ends", f"{queue!r}, lease {number}")
            ends.add((queue, number))
        for queue, number in self._grants.keys() - ends - self._claimed:
            self.report.say("lease without its end", f"{queue!r}, lease {number}")

    def _attempts(self) -> None:
        for key, value in self._each(Family.ATTEMPTS):
            try:
                queue, seq, number = keys.read_attempt(key)
                if number:
                    codec.read_attempt(value)
                else:
                    codec.read_death(value)
            except _UNREADABLE as why:
                self._bad(Family.ATTEMPTS, key, why)
                continue
            if not self._has(queue, seq):
                self.report.say("attempt of a message that is gone", f"{queue!r}, message {seq}")

    def _dedup(self) -> None:
        for key, value in self._each(Family.DEDUP):
            try:
                if key.startswith(keys.KEY_MARK):
                    queue, _ = keys.read_dedup(key)
                    codec.read_dedup(value)
                    if queue not in self._seqs:
                        self.report.say("dedup key of a queue that does not exist", repr(queue))
                elif key.startswith(keys.PRODUCER_MARK):
                    keys.read_producer_batch(key)
                    codec.read_produced(as_present(self._store.format or FORMAT, Family.DEDUP, key, value))
                else:
                    raise ValueError("it is neither a dedup key nor a producer's batch")
            except _UNREADABLE as why:
                self._bad(Family.DEDUP, key, why)

    def _staged(self) -> None:
        for key, value in self._each(Family.STAGED):
            try:
                if key.startswith(keys.STAGED_PRODUCER):
                    keys.read_staging_producer(key)
                    codec.read_commit(value)
                else:
                    keys.read_staged(key)
                    codec.read_staged(value)
            except _UNREADABLE as why:
                self._bad(Family.STAGED, key, why)

    def _settings(self) -> None:
        for key, value in self._each(Family.STATE):
            try:
                _, end = keys.read_name(key, 0)
                if end != len(key):
                    raise ValueError("its name has the wrong length")
                codec.read_setting(value)
            except _UNREADABLE as why:
                self._bad(Family.STATE, key, why)

    def _journal(self) -> None:
        last = 0
        ends: set[int] = set()
        segments: list[journal.Segment] = []
        for key, value in self._each(Family.JOURNAL):
            try:
                if key == keys.NEXT_ENTRY:
                    continue
                number = keys.read_journal_key(key)
                if key.startswith(keys.SEGMENT_MARK):
                    segments.append(journal.read_segment(number, value))
                    continue
                entries = journal.read_record(value).entries
            except _UNREADABLE as why:
                self._bad(Family.JOURNAL, key, why)
                continue
            first = number - entries + 1
            if last and first <= last:
                self.report.say("journal out of order", f"entry {first} comes after entry {last}")
            elif last and first > last + 2:  # where the journal was off, one number is left out
                self.report.say("journal with a gap", f"entries {last + 1} to {first - 1} are missing")
            last = number
            ends.add(number)
        for segment in segments:
            if segment.last not in ends:
                self.report.say("journal with a gap", f"entry {segment.last}, the end of a segment, is missing")

    def _audit(self) -> None:
        told = self._store.get(Family.AUDIT, keys.AUDIT_HEAD)
        head = audit.read_head(told) if told is not None else None
        sizes, numbers = Counter[bytes](), set[int]()
        for key, value in self._each(Family.AUDIT):
            mark = key[:1]
            try:
                if key in {keys.AUDIT_HEAD, keys.AUDIT_SECRET}:
                    continue
                number = keys.read_audit(key)
                if mark == keys.AUDIT_SWEEP:
                    audit.read_sweep(value)
                    continue
                if mark not in {keys.AUDIT_CHANGE, keys.AUDIT_REFUSAL}:
                    raise ValueError("it is no entry of the audit")
                audit.read_entry(value)
            except _UNREADABLE as why:
                self._bad(Family.AUDIT, key, why)
                continue
            sizes[mark] += len(value) + _AUDIT_OVERHEAD
            numbers.add(number)
        if head is None:
            if numbers:
                self.report.say("audit without its head", f"{len(numbers)} entries")
            return
        self._audit_numbers(head, numbers)
        for mark, said in ((keys.AUDIT_CHANGE, head.change_bytes), (keys.AUDIT_REFUSAL, head.refusal_bytes)):
            if sizes[mark] != said:
                what = "changes" if mark == keys.AUDIT_CHANGE else "refused calls"
                self.report.say("audit of another size", f"{what} take {sizes[mark]} bytes, its head says {said}")

    def _audit_numbers(self, head: audit.Head, numbers: set[int]) -> None:
        """Both kinds are numbered together; what is dropped, is dropped of each kind from its oldest on."""
        ordered = sorted(numbers)
        expected = max(head.first_change, head.first_refusal)
        for number in (*[number for number in ordered if expected <= number < head.next], head.next):
            if number > expected:  # a head that is wrong may make of it any number
                last = f" to {number - 1}" if number - 1 > expected else ""
                self.report.say("entry of the audit is missing", f"{expected}{last}")
            expected = number + 1
        for number in ordered:
            if number >= head.next:
                self.report.say("entry of the audit from the future", f"{number}, the next one is {head.next}")


def _shown(key: bytes) -> str:
    return key.hex(" ")[:90]
