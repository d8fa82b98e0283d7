"""The settings of a queue on the wire: which there are, what each may be, and their defaults."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fila.config import DAY_MS, LuaConfig, SchedulerConfig
from fila.core.errors import InvalidArgument
from fila.core.policy import MAX_THROTTLE_KEYS
from fila.server.enums import number_of, word_of
from fila.settings.hook_sources import HookSources
from fila.storage.records import OVERFLOWS, QueueRecord
from fila.v1 import admin_pb2 as pb

MAX_HEADER_NAME_BYTES = 255
MAX_QUANTUM = 1_000_000
MAX_TIMEOUT_MS = 365 * DAY_MS
MAX_ATTEMPTS = 1_000_000
MAX_HELD = 1 << 53


@dataclass(frozen=True, slots=True)
class _Range:
    low: float
    high: float

    def check(self, name: str, value: float) -> None:
        if not self.low <= value <= self.high:  # not a number is in no range
            raise InvalidArgument(f"{name} must be from {self.low} to {self.high}, not {value}")


NUMBERS = {
    "visibility_timeout_ms": _Range(1, MAX_TIMEOUT_MS),
    "quantum": _Range(1, MAX_QUANTUM),
    "dedup_window_ms": _Range(0, MAX_TIMEOUT_MS),
    "max_attempts": _Range(0, MAX_ATTEMPTS),
    "retry_delay_ms": _Range(0, MAX_TIMEOUT_MS),
    "retry_backoff": _Range(1, 100),
    "retry_max_delay_ms": _Range(0, MAX_TIMEOUT_MS),
    "retry_jitter": _Range(0, 1),
    "script_timeout_ms": _Range(1, 1000),
    "script_memory_bytes": _Range(64 << 10, 64 << 20),
    "max_depth": _Range(0, MAX_HELD),
    "max_bytes": _Range(0, MAX_HELD),
}
HEADERS = ("fairness_header", "weight_header", "cost_header")


def read_settings(config: pb.QueueConfig) -> dict[str, Any]:
    """Those settings that are present, by the names of the record's fields. Raises InvalidArgument."""
    settings: dict[str, Any] = {}
    for name, allowed in NUMBERS.items():
        if config.HasField(name):
            settings[name] = getattr(config, name)
            allowed.check(name, settings[name])
    for name in HEADERS:
        if config.HasField(name):
            settings[name] = getattr(config, name)
            _check_header(name, settings[name])
    if config.HasField("throttle_headers"):
        names = tuple(sorted(set(config.throttle_headers.names)))
        if len(names) > MAX_THROTTLE_KEYS:
            raise InvalidArgument(f"at most {MAX_THROTTLE_KEYS} throttle_headers are allowed, {len(names)} were given")
        for name in names:
            if not name:
                raise InvalidArgument("throttle_headers must not contain an empty name")
            _check_header("throttle_headers", name)
        settings["throttle_headers"] = names
    sources = hook_sources(config)
    if sources is not None:
        settings["script"] = sources.script
    elif config.HasField("script"):
        settings["script"] = config.script
    if config.HasField("overflow"):
        settings["overflow"] = word_of(pb.Overflow, config.overflow, OVERFLOWS, "overflow")
    return settings


def hook_sources(config: pb.QueueConfig) -> HookSources | None:
    """The hooks, if they are given one by one. Raises InvalidArgument."""
    given = {name: getattr(config, name) for name in ("on_enqueue", "on_failure") if config.HasField(name)}
    if not given:
        return None
    if config.HasField("script"):
        raise InvalidArgument(f"script and {next(iter(given))} cannot both be given")
    return HookSources(**given)


@contextmanager
def located(config: pb.QueueConfig) -> Iterator[None]:
    """Refusals of a script name lines of the sources that the caller gave."""
    try:
        yield
    except InvalidArgument as error:
        sources = hook_sources(config)
        if sources is None:
            raise
        raise InvalidArgument(sources.located(str(error))) from error


def _check_header(setting: str, name: str) -> None:
    if len(name.encode()) > MAX_HEADER_NAME_BYTES:
        raise InvalidArgument(f"{setting} must not exceed {MAX_HEADER_NAME_BYTES} bytes")


def read_queue(
    request: pb.CreateQueueRequest, defaults: SchedulerConfig, lua: LuaConfig, now: int, owner: str = ""
) -> QueueRecord:
    """The queue that is asked for, every default filled in. Raises InvalidArgument."""
    settings = {
        "visibility_timeout_ms": defaults.visibility_timeout_ms,
        "quantum": defaults.quantum,
        "dedup_window_ms": defaults.dedup_window_ms,
        "script_timeout_ms": lua.timeout_ms,
        "script_memory_bytes": lua.memory_bytes,
    }
    given = settings | read_settings(request.config)
    return QueueRecord(name=request.name, created_at=now, owner=owner, **given)


def write_settings(record: QueueRecord) -> pb.QueueConfig:
    config = pb.QueueConfig(
        throttle_headers=pb.HeaderNames(names=record.throttle_headers),
        overflow=number_of(pb.Overflow, record.overflow),
    )
    for name in (*NUMBERS, *HEADERS, "script"):
        setattr(config, name, getattr(record, name))
    return config
