"""The options of the connector: what they mean, what they default to, and what is refused.

Options come from Spark as text, with names in any case. An unknown one is an error: a misspelt option is never ignored.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fila.client import TLS
from fila.settings import Rule, choice, flag, setting, unknown
from fila.settings.section import refusal
from fila.spark.errors import OptionError

DEFAULT_ADDR = "localhost:5555"
MAX_PARTITIONS = 1_000

#: What Spark itself puts among the options of a query.
_OF_SPARK = frozenset({"checkpointlocation", "queryname"})
_TLS = ("tls", "tlsCa", "tlsCert", "tlsKey", "tlsServerName")
_COMMON = ("addr", "retryTimeout", *_TLS)
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_DURATION = re.compile(r"(\d{1,12})\s*(ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the broker is, and for how long it may be away before a query fails."""

    addr: str
    retry_ms: int
    #: None: as the environment of each process says (FILA_TLS, FILA_TLS_CA, ...).
    tls: TLS | None = None


@dataclass(frozen=True, slots=True)
class StreamRead:
    """`spark.readStream`: a queue in claims."""

    broker: Broker
    queue: str
    group: str
    max_messages: int
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
    queue: str
    partitions: int
    start: int
    end: int
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
        return Broker(self.text("addr", DEFAULT_ADDR), retry_ms, self._tls())

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
    known = ("queue", "group", "maxMessagesPerTrigger", "partitions", "lease", "pollWait", "failOnDataLoss", "columns")
    if "journal" in options:
        raise OptionError("the journal can be read by spark.read, not by readStream")
    given = _Given(options, known)
    broker, poll_ms = given.broker(), given.duration_ms("pollWait", 500, 0, 10_000)
    if poll_ms >= broker.retry_ms:
        raise OptionError(
            f"option 'pollWait' is {poll_ms} ms: it must be less than 'retryTimeout', {broker.retry_ms} ms"
        )
    return StreamRead(
        broker,
        given.text("queue"),
        given.text("group"),
        given.number("maxMessagesPerTrigger", 50_000, 1, 1_000_000),
        given.number("partitions", 2, 1, MAX_PARTITIONS),
        given.duration_ms("lease", 900_000, 1_000, 24 * 3_600_000),
        poll_ms,
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
    known = ("queue", "journal", "partitions", "startSeq", "endSeq", "failOnDataLoss", "columns")
    given = _Given(options, known)
    start, end = _range(given)
    return JournalRead(
        given.broker(),
        given.text("queue") if given.has("queue") else "",
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
