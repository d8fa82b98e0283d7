"""The server's configuration: parsed once, at the edge, into a small frozen tree.

Rules:
- Defaults live here and nowhere else; units are in the names. `deploy/fila.toml.example` documents every key.
- Each field carries its own `Rule`, so a section cannot exist with a bad value, however it was made.
- What is not understood fails: an unknown section, key or `FILA_SECTION__KEY` variable is an error, never ignored.
- Later wins: defaults, then one file, then the environment: what OpenTelemetry calls `OTEL_...`, then `FILA_...`.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from pathlib import Path
from typing import Any, Literal, cast

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
DAY_MS = 24 * 60 * 60 * 1000

#: Where a configuration is looked for when none is named; the first that exists is used.
SEARCH_PATHS = (Path("fila.toml"), Path("/etc/fila/fila.toml"))


class ConfigError(Exception):
    """The configuration cannot be used. The text names the key, where it came from and what was expected."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be: said in words, decided by `accepts`, read from a variable's text by `from_text`."""

    expected: str
    accepts: Callable[[object], bool]
    from_text: Callable[[str], object] = str


def _field(default: object, rule: Rule) -> Any:
    return field(default=default, metadata={"rule": rule})


def _whole(default: int, low: int, high: int) -> Any:
    # TOML's true and false are ints to Python, but never what was meant by a number.
    def accepts(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return _field(default, Rule(f"a whole number from {low} to {high}", accepts, int))


def _one_of(default: str, *others: str) -> Any:
    choices = (default, *others)
    return _field(default, Rule("one of " + ", ".join(f'"{c}"' for c in sorted(choices)), lambda v: v in choices))


def _path(default: str) -> Any:
    def accepts(value: object) -> bool:
        return isinstance(value, str) and value != "" and "\0" not in value

    return _field(default, Rule("a path", accepts))


def _address(default: str) -> Any:
    return _field(default, Rule('an address such as "0.0.0.0:5555", "localhost:5555" or "[::]:5555"', _is_address))


def _address_or_none(default: str) -> Any:
    expected = 'an address such as "127.0.0.1:9464", or nothing'
    return _field(default, Rule(expected, lambda value: value == "" or _is_address(value)))


def _endpoint(default: str) -> Any:
    def accepts(value: object) -> bool:
        if value == "":
            return True
        match = re.fullmatch(r"https?://(.*?)/?", value) if isinstance(value, str) else None
        return match is not None and _is_address(match[1])

    return _field(default, Rule('an address such as "http://localhost:4317", or nothing', accepts))


def _name(default: str) -> Any:
    def accepts(value: object) -> bool:
        return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9._/-]{1,100}", value) is not None

    return _field(default, Rule("a name of up to 100 letters, digits, dots, slashes and hyphens", accepts))


def _yes_no(*, default: bool) -> Any:
    def accepts(value: object) -> bool:
        return isinstance(value, bool)

    def from_text(text: str) -> object:
        return {"true": True, "false": False}.get(text.lower(), text)

    return _field(default, Rule("true or false", accepts, from_text))


def _is_address(value: object) -> bool:
    """Whether `value` is host:port. Port 0 is allowed: the system then picks a free one."""
    match = re.fullmatch(r"(\[[^\]]*\]|[A-Za-z0-9._-]+):([0-9]{1,5})", value) if isinstance(value, str) else None
    if match is None or int(match[2]) > 65_535:
        return False
    host = match[1]
    try:
        if host.startswith("["):
            IPv6Address(host[1:-1])
        elif re.fullmatch(r"[0-9.]+", host):
            IPv4Address(host)
    except AddressValueError:
        return False
    return True


class Section:
    """Checks every field against its rule, so that values set in code are held to the same as values from a file."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for key, rule in _rules(type(self)).items():
            value = getattr(self, key)
            if not rule.accepts(value):
                raise ConfigError(f"{type(self).__name__}.{key} = {value!r}: expected {rule.expected}")


@dataclass(frozen=True, slots=True)
class ServerConfig(Section):
    """Where the server listens and how it stops."""

    listen_addr: str = _address("0.0.0.0:5555")
    #: How long SIGTERM waits for what was accepted before streams are cut.
    shutdown_grace_ms: int = _whole(10_000, 0, 3_600_000)
    #: How long the server looks for more after it has done something, before it sleeps. 0: it sleeps at once.
    stay_awake_us: int = _whole(100, 0, 1_000_000)
    #: Connections at a time, and those of one address.
    max_connections: int = _whole(10_000, 1, 1_000_000)
    max_peer_connections: int = _whole(1_000, 1, 1_000_000)
    #: Bytes held for all peers: of requests that come or are worked on, and of responses that are not sent.
    max_held_bytes: int = _whole(64 * MIB, 4 * MIB, 64 * GIB)
    #: Work that keeps all clients waiting for so long is logged. 0: nothing is.
    slow_turn_ms: int = _whole(100, 0, 3_600_000)


@dataclass(frozen=True, slots=True)
class StorageConfig(Section):
    """Where messages are kept and what a confirmed write survives."""

    data_dir: str = _path("data")
    #: "wal" survives kill -9; "fsync" survives power loss as well, at the cost of one sync per group of writes.
    durability: Literal["wal", "fsync"] = _one_of("wal", "fsync")
    write_buffer_bytes: int = _whole(64 * MIB, 64 * KIB, 16 * GIB)
    block_cache_bytes: int = _whole(32 * MIB, 0, 1024 * GIB)
    #: Producers are refused below so much room on the disk. 0: an eighth of the file system, at most 1 GiB.
    min_free_bytes: int = _whole(0, 0, 1024 * GIB)


@dataclass(frozen=True, slots=True)
class SchedulerConfig(Section):
    """What is delivered next, and how much work one tick takes on."""

    #: Messages of cost 1 that a fairness key of weight 1 may send in one round.
    quantum: int = _whole(4, 1, 1_000_000)
    #: How long a consumer holds a message, unless its queue says otherwise.
    visibility_timeout_ms: int = _whole(30_000, 1, 365 * DAY_MS)
    #: How long a dedup key is remembered; 0 remembers none.
    dedup_window_ms: int = _whole(300_000, 0, 365 * DAY_MS)
    #: Messages in commands that wait for the engine; past it producers are refused instead of memory growing.
    max_queued_commands: int = _whole(100_000, 1, 10_000_000)
    #: Bytes of the messages in them, the same.
    max_queued_bytes: int = _whole(64 * MIB, 1, 16 * GIB)
    #: Messages handled in one tick; bounds how long anything else waits for its turn.
    max_tick_messages: int = _whole(2_000, 1, 1_000_000)
    #: Bytes of messages taken in by one tick; a single request may bring more.
    max_tick_bytes: int = _whole(4 * MIB, 1, GIB)


@dataclass(frozen=True, slots=True)
class LimitsConfig(Section):
    """The largest inputs that are accepted; past each of them the caller gets a clear error."""

    #: A protobuf message cannot reach 2 GiB, and a payload shares its message with headers.
    max_payload_bytes: int = _whole(4 * MIB, 1, GIB)
    max_headers: int = _whole(64, 0, 65_535)
    #: Names and values of all headers of one message together.
    max_header_bytes: int = _whole(16 * KIB, 0, 16 * MIB)
    #: Queue names; stored with a two-byte length at most.
    max_name_bytes: int = _whole(255, 1, 65_535)
    #: Fairness, throttle and dedup keys.
    max_key_bytes: int = _whole(255, 1, 65_535)
    max_batch_messages: int = _whole(5_000, 1, 1_000_000)
    #: Unsettled messages that one consumer may ask for.
    max_in_flight: int = _whole(65_535, 1, 10_000_000)
    max_delay_ms: int = _whole(365 * DAY_MS, 0, 36_500 * DAY_MS)
    max_queues: int = _whole(10_000, 1, 10_000_000)
    #: Messages of one claim.
    max_claim_messages: int = _whole(100_000, 1, 1_000_000)
    #: How long a claim may last from when it was made or extended.
    max_claim_lease_ms: int = _whole(DAY_MS, 1, 365 * DAY_MS)
    #: Claims of one group that are not acked.
    max_claims: int = _whole(100, 1, 10_000)
    #: Groups of one queue.
    max_groups: int = _whole(100, 1, 10_000)
    #: Messages that are staged for one transaction.
    max_transaction_messages: int = _whole(5_000_000, 1, 1_000_000_000)
    #: Bytes that are staged for one transaction.
    max_transaction_bytes: int = _whole(GIB, 1, 1024 * GIB)
    #: Bytes that are staged for all transactions.
    max_staged_bytes: int = _whole(4 * GIB, 1, 1024 * GIB)
    #: How long what was staged may wait for its commit.
    max_transaction_ttl_ms: int = _whole(7 * DAY_MS, 1, 365 * DAY_MS)
    #: Producers whose last transaction is remembered.
    max_transaction_producers: int = _whole(10_000, 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class LuaConfig(Section):
    """What one call of a queue's script may use, when it is left alone, and what all scripts may use together."""

    #: Time on the processor, for one call. A queue may have less, not more.
    timeout_ms: int = _whole(10, 1, 1_000)
    #: All that the script holds, from its code to what it keeps between calls. A queue may have less, not more.
    memory_bytes: int = _whole(MIB, 64 * KIB, 64 * MIB)
    #: What the scripts of all queues may hold together. A queue that would exceed it is refused.
    max_total_memory_bytes: int = _whole(128 * MIB, 64 * KIB, 64 * GIB)
    #: How long hooks of all queues together may take in one tick. What is left of them waits for the next.
    tick_ms: int = _whole(5, 1, 1_000)
    #: How much of the server's time hooks of all queues together may take, in percent.
    max_time_percent: int = _whole(75, 1, 100)
    #: Failures in a row after which a hook is bypassed.
    breaker_failures: int = _whole(3, 1, 1_000)
    #: How long it is bypassed before it is tried again.
    breaker_cooldown_ms: int = _whole(10_000, 1, DAY_MS)
    max_script_bytes: int = _whole(64 * KIB, 1, 256 * KIB)


@dataclass(frozen=True, slots=True)
class TelemetryConfig(Section):
    """Where metrics and traces go. Nothing is watched while neither a collector nor an address is set."""

    #: An OTLP collector (gRPC), such as "http://localhost:4317". Empty: none.
    otlp_endpoint: str = _endpoint("")
    #: What the collector knows this server as.
    service_name: str = _name("fila")
    #: How often metrics go to the collector.
    metrics_interval_ms: int = _whole(10_000, 100, 3_600_000)
    #: Whether spans go to the collector.
    traces: bool = _yes_no(default=True)
    #: Of each kind of operation (enqueue, lease, ack, nack), how many a second are traced although neither the producer
    #: nor the caller says anything about a trace. 0: none.
    own_traces_per_second: int = _whole(10, 0, 100_000)
    #: Where Prometheus finds /metrics, and probes /healthz and /readyz. Empty: nowhere.
    prometheus_listen: str = _address_or_none("")
    #: Queues that have series of their own, dead-letter queues included; the others are told together.
    top_queues: int = _whole(200, 0, 10_000)
    #: Fairness keys that have series of their own, of each queue.
    top_keys: int = _whole(20, 0, 1_000)
    #: Throttle keys that have series of their own.
    top_throttles: int = _whole(100, 0, 10_000)


@dataclass(frozen=True, slots=True)
class JournalConfig(Section):
    """Whether what happens is written down, and how much of it is kept."""

    #: Off, because with many fairness keys it costs more than 3 % of the server's CPU time.
    enabled: bool = _yes_no(default=False)
    max_age_ms: int = _whole(7 * DAY_MS, 1, 3_650 * DAY_MS)
    max_bytes: int = _whole(256 * MIB, MIB, 1024 * GIB)


@dataclass(frozen=True, slots=True)
class LogConfig(Section):
    """What is logged and in which form."""

    level: Literal["debug", "info", "warning", "error"] = _one_of("info", "debug", "warning", "error")
    #: "auto" is pretty on a terminal and JSON elsewhere.
    format: Literal["auto", "json", "pretty"] = _one_of("auto", "json", "pretty")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the server is told. Each part is given its own section only."""

    server: ServerConfig = field(default_factory=ServerConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    lua: LuaConfig = field(default_factory=LuaConfig)
    journal: JournalConfig = field(default_factory=JournalConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    log: LogConfig = field(default_factory=LogConfig)


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """Read the file at `path`, or the first of `SEARCH_PATHS` that exists, then the variables.

    Raises:
        ConfigError: a file that cannot be read, or a section, key, variable or value that is not understood.
    """
    chosen: dict[str, dict[str, object]] = {name: {} for name in _SECTIONS}
    for setting in (*_from_file(path), *_from_environ(environ)):
        chosen[setting.section][setting.key] = setting.checked()
    return Config(**{name: section(**chosen[name]) for name, section in _SECTIONS.items()})


def _rules(section: type) -> dict[str, Rule]:
    return {f.name: f.metadata["rule"] for f in fields(section)}


_SECTIONS: dict[str, type] = {f.name: cast("type", f.type) for f in fields(Config)}
_RULES: dict[str, dict[str, Rule]] = {name: _rules(section) for name, section in _SECTIONS.items()}
_VARIABLES = {f"FILA_{name}__{key}".upper(): (name, key) for name, rules in _RULES.items() for key in rules}
_OTEL_VARIABLES = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("telemetry", "otlp_endpoint"),
    "OTEL_METRIC_EXPORT_INTERVAL": ("telemetry", "metrics_interval_ms"),
    "OTEL_SERVICE_NAME": ("telemetry", "service_name"),
}
"""Names that OpenTelemetry has given to settings of ours."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """One value that somebody set, and where."""

    section: str
    key: str
    value: object
    origin: str

    def checked(self) -> object:
        rule = _RULES[self.section][self.key]
        if not rule.accepts(self.value):
            raise ConfigError(f"{self.origin}: {self.section}.{self.key} = {self.value!r}: expected {rule.expected}")
        return self.value


def _from_file(path: Path | None) -> Iterator[_Setting]:
    try:
        found = path or next((p for p in SEARCH_PATHS if p.exists()), None)
        if found is None:
            return
        tables = tomllib.loads(found.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {error.filename}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{found}: not UTF-8 text (at byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:  # its text ends with the line and column
        raise ConfigError(f"{found}: malformed TOML: {error}") from error
    for section, table in tables.items():
        if section not in _RULES:
            raise ConfigError(f"{found}: unknown section {section!r}: {_meant(section, _RULES)}")
        if not isinstance(table, dict):
            raise ConfigError(f"{found}: {section} = {table!r}: expected a section, [{section}]")
        for key, value in table.items():
            if key not in _RULES[section]:
                raise ConfigError(f"{found}: unknown key {section}.{key}: {_meant(key, _RULES[section])}")
            yield _Setting(section, key, value, str(found))


def _from_environ(environ: Mapping[str, str]) -> Iterator[_Setting]:
    # FILA_ names without a double underscore belong to others, such as the CLI's FILA_ADDR.
    ours = sorted(v for v in environ if re.match("FILA_.*__", v))
    for variable in (*(v for v in _OTEL_VARIABLES if environ.get(v)), *ours):
        if variable not in _VARIABLES and variable not in _OTEL_VARIABLES:
            raise ConfigError(f"unknown variable {variable}: {_meant(variable, sorted(_VARIABLES))}")
        section, key = _OTEL_VARIABLES.get(variable) or _VARIABLES[variable]
        text = environ[variable]
        try:
            value = _RULES[section][key].from_text(text)
        except ValueError:
            value = text  # left as it is, so that the rule refuses it and shows what was written
        yield _Setting(section, key, value, variable)


def _meant(name: str, known: Iterable[str]) -> str:
    """What somebody who wrote a name that does not exist probably meant."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"expected one of {', '.join(names)}" + (f" (did you mean {near[0]}?)" if near else "")
