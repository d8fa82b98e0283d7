"""The options of the connector: what they mean, what they default to, and what is refused.

Options come from Spark as text, with names in any case. An unknown one is an error: a misspelt option is never ignored.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

DEFAULT_ADDR = "localhost:5555"
MAX_PARTITIONS = 1_000

#: What Spark itself puts among the options of a query.
_OF_SPARK = frozenset({"checkpointlocation", "queryname"})
_COMMON = ("addr", "retryTimeout")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_DURATION = re.compile(r"(\d{1,12})\s*(ms|s|m|h)")


class OptionError(ValueError):
    """An option that is missing, unknown or makes no sense. The text names it and what would do."""


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the broker is, and for how long it may be away before a query fails."""

    addr: str
    retry_ms: int


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
        names = {name.lower() for name in (*_COMMON, *known)}
        for name in options:
            if name.lower() not in names | _OF_SPARK:
                raise OptionError(f"unknown option {name!r}; known here are {', '.join(sorted((*_COMMON, *known)))}")

    def has(self, name: str) -> bool:
        return name in self._options

    def text(self, name: str, default: str | None = None) -> str:
        value = self._options.get(name, default)
        if value is None or not value.strip():
            raise OptionError(f"option {name!r} is needed" if value is None else f"option {name!r} is empty")
        return value.strip()

    def number(self, name: str, default: int, low: int, high: int) -> int:
        return self._read(name, default, _whole(low, high), f"a whole number from {low} to {high}")

    def flag(self, name: str, default: bool) -> bool:
        return self._read(name, default, {"true": True, "false": False}.get, "true or false")

    def duration_ms(self, name: str, default_ms: int, low_ms: int, high_ms: int) -> int:
        def read(text: str) -> int | None:
            match = _DURATION.fullmatch(text)
            value = int(match[1]) * _UNITS_MS[match[2]] if match else -1
            return value if low_ms <= value <= high_ms else None

        wanted = f"a time from {low_ms} ms to {high_ms} ms, such as 500ms, 30s, 15m or 1h"
        return self._read(name, default_ms, read, wanted)

    def broker(self) -> Broker:
        retry_ms = self.duration_ms("retryTimeout", 60_000, 100, 3_600_000)
        return Broker(self.text("addr", DEFAULT_ADDR), retry_ms)

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

    def _read(self, name: str, default: T, read: Callable[[str], T | None], wanted: str) -> T:
        if not self.has(name):
            return default
        value = read(self.text(name).lower())
        if value is None:
            raise OptionError(f"option {name!r} is {self._options[name]!r}, expected {wanted}")
        return value


def _whole(low: int, high: int) -> Callable[[str], int | None]:
    def read(text: str) -> int | None:
        value = int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else -1
        return value if low <= value <= high else None

    return read


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
    modes = {"txn": False, "dedup": True}
    mode = given.text("mode", "txn").lower()
    if mode not in modes:
        raise OptionError(f"option 'mode' is {mode!r}, expected txn or dedup")
    if not stream and given.has("producer") != given.has("runId"):
        there, missing = ("producer", "runId") if given.has("producer") else ("runId", "producer")
        raise OptionError(f"option {there!r} needs {missing!r}: together they tell one write from its repetition")
    return Write(
        given.broker(),
        given.text("queue") if given.has("queue") else "",
        modes[mode],
        given.text("producer") if given.has("producer") else "",
        given.number("runId", 0, 0, (1 << 63) - 1),
        given.duration_ms("ttl", 3_600_000, 1_000, 7 * 24 * 3_600_000),
    )


def _range(given: _Given) -> tuple[int, int]:
    start, end = (given.number(name, 0, 0, (1 << 63) - 1) for name in ("startSeq", "endSeq"))
    if end and end < start:
        raise OptionError(f"option 'endSeq' is {end}, which is before 'startSeq', {start}")
    return start, end
