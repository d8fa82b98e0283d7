"""The options of the connector: what they mean, what they default to, and what is refused.

Options come from Spark as text, with names in any case. An unknown one is an error: a misspelt option is never ignored.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fila.client import TLS
from fila.client.journal import KINDS
from fila.settings import Rule, choice, flag, setting, unknown
from fila.settings.section import refusal
from fila.spark.errors import OptionError
from fila.spark.selection import Selection

DEFAULT_ADDR = "localhost:5555"
MAX_PARTITIONS = 1_000

#: What Spark itself puts among the options of a query.
_OF_SPARK = frozenset({"checkpointlocation", "queryname"})
_TLS = ("tls", "tlsCa", "tlsCert", "tlsKey", "tlsServerName")
_COMMON = ("addr", "retryTimeout", "apiKeyFile", *_TLS)
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_DURATION = re.compile(r"(\d{1,12})\s*(ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the broker is, and for how long it may be away before a query fails."""

    addr: str
    retry_ms: int
    #: None: as the environment of each process says (FILA_TLS, FILA_TLS_CA, ...).
    tls: TLS | None = None
    #: Empty: as the environment of each process says (FILA_API_KEY, FILA_API_KEY_FILE).
    key_file: str = ""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When there is enough for a batch, and how much is in one."""

    most: int
    #: With less than this no batch begins, until `max_delay_ms` after the one before.
    least: int
    max_delay_ms: int


@dataclass(frozen=True, slots=True)
class StreamRead:
    """`spark.readStream`: a queue in claims."""

    broker: Broker
    queue: str
    group: str
    trigger: Trigger
    partitions: int
    lease_ms: int
    poll_ms: int
    fail_on_data_loss: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueueRead:
    """`spark.read` of a queue: a look that takes nothing."""

    broker: Broker
    queue: str
    partitions: int
    start: int
    end: int
    leased: bool
    ready_only: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JournalRead:
    """`spark.read` of the journal."""

    broker: Broker
    selection: Selection
    partitions: int
    start: int
    end: int
    fail_on_data_loss: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JournalStreamRead:
    """`spark.readStream` of the journal."""

    broker: Broker
    selection: Selection
    trigger: Trigger
    partitions: int
    #: Where a new checkpoint begins: 0 is the oldest entry.
    start: int
    #: Or at the first entry of this time or later.
    start_ns: int
    poll_ms: int
    fail_on_data_loss: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """`df.write` and `df.writeStream`."""

    broker: Broker
    #: Empty when each row names its own.
    queue: str
    by_key: bool
    #: Empty when none was given.
    producer: str
    run_id: int
    ttl_ms: int


class _Given:
    """Options as they were given. `Mapping` is Spark's own, which knows no case; a copy of it would."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._options = options
        names = {name.lower(): name for name in (*_COMMON, *known)}
        for name in options:
            if name.lower() not in names.keys() | _OF_SPARK:
                raise OptionError(unknown("option", name, sorted(names.values())))

    def has(self, name: str) -> bool:
        return name in self._options

    def text(self, name: str, default: str | None = None) -> str:
        value = self._options.get(name, default)
        if value is None or not value.strip():
            raise OptionError(f"option {name!r} is needed" if value is None else f"option {name!r} is empty")
        return value.strip()

    def number(self, name: str, default: int, low: int, high: int) -> int:
        rule = Rule(f"a whole number from {low} to {high}", lambda value: _within(value, low, high), _whole)
        return self._read(name, setting(default, rule))  # type: ignore[no-any-return]

    def flag(self, name: str, default: bool) -> bool:
        return self._read(name, flag(default))  # type: ignore[no-any-return]

    def choice(self, name: str, default: str, *others: str) -> str:
        return self._read(name, choice(default, *others))  # type: ignore[no-any-return]

    def duration_ms(self, name: str, default_ms: int, low_ms: int, high_ms: int) -> int:
        expected = f"a time from {low_ms} ms to {high_ms} ms, such as 500ms, 30s, 15m or 1h"
        rule = Rule(expected, lambda value: _within(value, low_ms, high_ms), _milliseconds)
        return self._read(name, setting(default_ms, rule))  # type: ignore[no-any-return]

    def broker(self) -> Broker:
        retry_ms = self.duration_ms("retryTimeout", 60_000, 100, 3_600_000)
        key_file = self.text("apiKeyFile") if self.has("apiKeyFile") else ""
        return Broker(self.text("addr", DEFAULT_ADDR), retry_ms, self._tls(), key_file)

    def trigger(self, what: str, default_most: int) -> Trigger:
        """How many messages, or entries, make a batch."""
        most, least = f"max{what}PerTrigger", f"min{what}PerTrigger"
        trigger = Trigger(
            self.number(most, default_most, 1, 1_000_000),
            self.number(least, 1, 1, 1_000_000),
            self.duration_ms("maxTriggerDelay", 900_000, 0, 24 * 3_600_000),
        )
        if trigger.least > trigger.most:
            raise OptionError(f"option {least!r} is {trigger.least}: it must be at most {most!r}, {trigger.most}")
        return trigger

    def poll_ms(self, broker: Broker) -> int:
        poll_ms = self.duration_ms("pollWait", 500, 0, 10_000)
        if poll_ms >= broker.retry_ms:
            raise OptionError(
                f"option 'pollWait' is {poll_ms} ms: it must be less than 'retryTimeout', {broker.retry_ms} ms"
            )
        return poll_ms

    def selection(self) -> Selection:
        """Which entries of the journal."""
        kinds = self.names("kind")
        for kind in kinds:
            if kind not in KINDS.values():
                known = ", ".join(filter(None, KINDS.values()))
                raise OptionError(f"option 'kind': there is no kind {kind!r}; there are {known}")
        return Selection(self.names("queue"), kinds)

    def names(self, name: str) -> tuple[str, ...]:
        """Names with commas between them; none if the option is not there."""
        if not self.has(name):
            return ()
        names = tuple(each.strip() for each in self.text(name).split(","))
        if not all(names):
            raise OptionError(f"option {name!r} has an empty name: {self._options[name]}")
        return names

    def time_ns(self, name: str) -> int:
        """A time such as 2026-11-19T08:00:00Z, in nanoseconds since the epoch; 0 if the option is not there."""
        if not self.has(name):
            return 0
        try:
            moment = datetime.fromisoformat(self.text(name))
        except ValueError as error:
            raise OptionError(
                f"option {name} = {self._options[name]!r}: expected a time, such as 2026-11-19T08:00:00Z"
            ) from error
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
        return max(0, (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000)

    def _tls(self) -> TLS | None:
        ca, cert, key, name = (self.text(each) if self.has(each) else None for each in _TLS[1:])
        if (cert is None) != (key is None):
            there, missing = ("tlsCert", "tlsKey") if key is None else ("tlsKey", "tlsCert")
            raise OptionError(f"option {there!r} needs {missing!r}")
        given = any((ca, cert, name))
        if not self.flag("tls", default=given):
            if given:
                raise OptionError("option 'tls' is false, and other options of TLS are there")
            return None
        return TLS(ca, cert, key, name)

    def columns(self, known: tuple[str, ...]) -> tuple[str, ...]:
        """Which columns to read, in this order."""
        if not self.has("columns"):
            return known
        names = tuple(name.strip() for name in self.text("columns").split(","))
        for name in names:
            if name not in known:
                raise OptionError(f"option 'columns': there is no {name!r}; there are {', '.join(known)}")
            if names.count(name) > 1:
                raise OptionError(f"option 'columns': {name!r} is there twice")
        return names

    def _read(self, name: str, field: Any) -> Any:
        """By the rule of a setting, which also says what is wrong."""
        if not self.has(name):
            return field.default
        value: object = self.text(name).lower()
        rule: Rule = field.metadata["rule"]
        with suppress(ValueError):  # then it stays the text, which the rule refuses
            value = rule.from_text(self.text(name).lower())
        if not rule.accepts(value):
            raise OptionError(refusal(f"option {name}", self._options[name], field))
        return value


def _within(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and low <= value <= high


def _whole(text: str) -> int:
    """Raises ValueError for other digits than ours too."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise ValueError
    return int(text)


def _milliseconds(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError
    return int(match[1]) * _UNITS_MS[match[2]]


def stream_read(options: Mapping[str, str], columns: tuple[str, ...]) -> StreamRead:
    """Raises OptionError."""
    known = ("queue", "group", "journal", "maxMessagesPerTrigger", "minMessagesPerTrigger", "maxTriggerDelay")
    given = _Given(options, (*known, "partitions", "lease", "pollWait", "failOnDataLoss", "columns"))
    broker = given.broker()
    return StreamRead(
        broker,
        given.text("queue"),
        given.text("group"),
        given.trigger("Messages", 50_000),
        given.number("partitions", 2, 1, MAX_PARTITIONS),
        given.duration_ms("lease", 900_000, 1_000, 24 * 3_600_000),
        given.poll_ms(broker),
        given.flag("failOnDataLoss", default=True),
        given.columns(columns),
    )


def journal_stream_read(options: Mapping[str, str], columns: tuple[str, ...]) -> JournalStreamRead:
    """Raises OptionError."""
    known = ("queue", "kind", "journal", "maxEntriesPerTrigger", "minEntriesPerTrigger", "maxTriggerDelay")
    given = _Given(options, (*known, "partitions", "startSeq", "startTime", "pollWait", "failOnDataLoss", "columns"))
    if given.has("startSeq") and given.has("startTime"):
        raise OptionError("options 'startSeq' and 'startTime' cannot both be set")
    broker = given.broker()
    return JournalStreamRead(
        broker,
        given.selection(),
        given.trigger("Entries", 200_000),
        given.number("partitions", 2, 1, MAX_PARTITIONS),
        given.number("startSeq", 0, 0, (1 << 63) - 1),
        given.time_ns("startTime"),
        given.poll_ms(broker),
        given.flag("failOnDataLoss", default=True),
        given.columns(columns),
    )


def is_journal(options: Mapping[str, str]) -> bool:
    """Whether it is the journal that is to be read. Raises OptionError."""
    return _some(options, "journal").flag("journal", default=False)


def columns(options: Mapping[str, str], known: tuple[str, ...]) -> tuple[str, ...]:
    """Which columns are to be read. Raises OptionError."""
    return _some(options, "columns").columns(known)


def _some(options: Mapping[str, str], name: str) -> _Given:
    """One option alone, when it is too early to ask for the others."""
    return _Given({name: options[name]} if name in options else {}, (name,))


def queue_read(options: Mapping[str, str], columns: tuple[str, ...]) -> QueueRead:
    """Raises OptionError."""
    known = ("queue", "journal", "partitions", "startSeq", "endSeq", "includeLeased", "readyOnly", "columns")
    given = _Given(options, known)
    start, end = _range(given)
    return QueueRead(
        given.broker(),
        given.text("queue"),
        given.number("partitions", 2, 1, MAX_PARTITIONS),
        start,
        end,
        given.flag("includeLeased", default=False),
        given.flag("readyOnly", default=False),
        given.columns(columns),
    )


def journal_read(options: Mapping[str, str], columns: tuple[str, ...]) -> JournalRead:
    """Raises OptionError."""
    known = ("queue", "kind", "journal", "partitions", "startSeq", "endSeq", "failOnDataLoss", "columns")
    given = _Given(options, known)
    start, end = _range(given)
    return JournalRead(
        given.broker(),
        given.selection(),
        given.number("partitions", 2, 1, MAX_PARTITIONS),
        start,
        end,
        given.flag("failOnDataLoss", default=True),
        given.columns(columns),
    )


def write(options: Mapping[str, str], *, stream: bool) -> Write:
    """Raises OptionError."""
    known = ("queue", "mode", "producer", "ttl") if stream else ("queue", "mode", "producer", "runId", "ttl")
    given = _Given(options, known)
    by_key = given.choice("mode", "txn", "dedup") == "dedup"
    if not stream and given.has("producer") != given.has("runId"):
        there, missing = ("producer", "runId") if given.has("producer") else ("runId", "producer")
        raise OptionError(f"option {there!r} needs {missing!r}: together they tell one write from its repetition")
    return Write(
        given.broker(),
        given.text("queue") if given.has("queue") else "",
        by_key,
        given.text("producer") if given.has("producer") else "",
        given.number("runId", 0, 0, (1 << 63) - 1),
        given.duration_ms("ttl", 3_600_000, 1_000, 7 * 24 * 3_600_000),
    )


def _range(given: _Given) -> tuple[int, int]:
    start, end = (given.number(name, 0, 0, (1 << 63) - 1) for name in ("startSeq", "endSeq"))
    if end and end < start:
        raise OptionError(f"option 'endSeq' is {end}, which is before 'startSeq', {start}")
    return start, end
