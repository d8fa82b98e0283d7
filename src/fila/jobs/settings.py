"""The settings of the jobs layer: read once, at the edge, into small frozen values.

Rules:
- Defaults live here and nowhere else. Nothing is read from the environment unless `from_env` is called.
- A value that cannot be fails where it is made, with its name; a password never appears in a text.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal, Self
from urllib.parse import urlsplit, urlunsplit

from fila.jobs.errors import InvalidSettings

URL_VARIABLE = "FILA_JOBS_URL"
URLS = "fila://host:port, redis://..., rediss://..., unix://... or memory://"
_PORT = 5555

PRIORITIES: Mapping[str, int] = MappingProxyType({"high": 0, "normal": 5, "low": 10})


@dataclass(frozen=True, slots=True)
class FilaSettings:
    """The durable backend: a queue of a Fila broker."""

    addr: str = "localhost:5555"
    #: The broker's queue. It is created, with its dead-letter queue, when it is not there.
    queue: str = "jobs"
    #: How many jobs this process may hold at a time; give it the number of workers.
    max_in_flight: int = 8
    #: Headers of a job whose values are throttle keys, for example ("platform",).
    throttle_headers: tuple[str, ...] = ()
    #: How long a call may take, reconnecting included.
    timeout: float = 5.0

    def __post_init__(self) -> None:
        _require(bool(self.queue), "fila.queue", "a name")
        _require(not isinstance(self.throttle_headers, str), "fila.throttle_headers", "a tuple of names, not a string")
        _require(self.max_in_flight >= 1, "fila.max_in_flight", "at least 1")
        _require(_positive(self.timeout), "fila.timeout", "a positive number of seconds")


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Which queue, and how it behaves."""

    #: Label to number; the lower number is the more urgent.
    priorities: Mapping[str, int] = field(default_factory=lambda: PRIORITIES)
    #: How many jobs may wait in this process's memory.
    max_in_memory: int = 100_000
    #: How many jobs may wait in Redis or in the broker; 0 means no limit of ours.
    max_depth: int = 0
    #: From this depth on the backlog is logged, and `backpressure` tells producers to come later.
    warn_depth: int = 10_000
    #: How long a worker may be silent before its job is given to another.
    lease_seconds: float = 30.0

    use_redis: bool = False
    redis_url: str = field(default="redis://localhost:6379/0", repr=False)  # it may hold a password
    redis_ready_key: str = "fila:jobs:ready"
    redis_scheduled_key: str = "fila:jobs:scheduled"
    #: How long Redis may take to answer before it counts as away.
    redis_health_check_timeout: float = 2.0
    #: How often a Redis that is away is asked whether it is back.
    redis_health_check_interval: float = 0.5
    #: While Redis is away: refuse jobs, or go on in memory, where they are lost if the process ends before it is back.
    on_outage: Literal["memory", "refuse"] = "refuse"

    #: Set, it chooses the broker; it goes before Redis.
    fila: FilaSettings | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "priorities", MappingProxyType(dict(self.priorities)))
        _require(bool(self.priorities), "priorities", "at least one label")
        for label, value in self.priorities.items():
            # The broker's priorities are a byte.
            _require(_whole(value) and 0 <= value <= 255, f"priorities[{label!r}]", "a whole number from 0 to 255")
        for name in ("max_in_memory", "warn_depth"):
            _require(_whole(getattr(self, name)) and getattr(self, name) >= 1, name, "a whole number, at least 1")
        _require(_whole(self.max_depth) and self.max_depth >= 0, "max_depth", "a whole number, 0 for no limit")
        for name in ("lease_seconds", "redis_health_check_timeout", "redis_health_check_interval"):
            _require(_positive(getattr(self, name)), name, "a positive number of seconds")
        _require(self.on_outage in {"memory", "refuse"}, "on_outage", '"memory" or "refuse"')
        _require(bool(self.redis_ready_key), "redis_ready_key", "a key")
        _require(
            bool(self.redis_scheduled_key) and self.redis_scheduled_key != self.redis_ready_key,
            "redis_scheduled_key",
            "a key of its own",
        )
        if self.use_redis:
            # Only the scheme is judged here; the rest is redis-py's to refuse, without repeating the password.
            _require(
                re.match(r"(rediss?|unix)://", self.redis_url) is not None,
                "redis_url",
                "redis://, rediss:// or unix://",
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Read `FILA_JOBS_URL`, `USE_REDIS_QUEUE` and the others of docs/jobs.md. Memory where nothing is chosen."""
        environ = os.environ if environ is None else environ
        if environ.get(URL_VARIABLE):
            return cls.at(environ[URL_VARIABLE], environ)
        values = _read(environ, _QUEUE_VARIABLES)
        if _read(environ, {"use": ("USE_FILA_QUEUE", _flag)}).get("use", False):
            values["fila"] = FilaSettings(**_read(environ, _FILA_VARIABLES))
        return cls(**values)

    @classmethod
    def at(cls, url: str, environ: Mapping[str, str] | None = None) -> Self:
        """Read where jobs are kept from a URL: `fila://host:port`, `redis://...` or `memory://`.

        A path after `fila://host:port` is the name of the broker's queue. All else is that of the environment.
        """
        environ = os.environ if environ is None else environ
        chosen = {"USE_FILA_QUEUE", "USE_REDIS_QUEUE", "REDIS_URL", URL_VARIABLE}
        others = _read({name: text for name, text in environ.items() if name not in chosen}, _QUEUE_VARIABLES)
        scheme, _, rest = url.partition("://")
        if url == "memory://":
            return cls(**others)
        if scheme in {"redis", "rediss", "unix"}:
            return cls(use_redis=True, redis_url=url, **others)
        host, _, queue = rest.partition("/")
        if scheme != "fila" or not host or "@" in host:
            raise InvalidSettings(f"the URL of jobs: expected {URLS}")
        name, colon, port = host.rpartition(":")
        addr = host if colon and name and port.isdecimal() else f"{host}:{_PORT}"
        fila = _read(environ, _FILA_VARIABLES) | {"addr": addr} | ({"queue": queue} if queue else {})
        return cls(fila=FilaSettings(**fila), **others)

    @staticmethod
    def chosen(environ: Mapping[str, str] | None = None) -> bool:
        """Whether the environment says where jobs are kept."""
        environ = os.environ if environ is None else environ
        return any(environ.get(name) for name in (URL_VARIABLE, "USE_FILA_QUEUE", "USE_REDIS_QUEUE"))

    def named(self, name: str) -> Self:
        """The same for a queue of another name, with keys, or a queue of the broker, of its own."""
        return replace(
            self,
            redis_ready_key=f"{self.redis_ready_key}/{name}",
            redis_scheduled_key=f"{self.redis_scheduled_key}/{name}",
            fila=None if self.fila is None else replace(self.fila, queue=name),
        )

    @property
    def redis_url_redacted(self) -> str:
        """The address for logs: without its password."""
        return redacted(self.redis_url)


def redacted(url: str) -> str:
    """The URL with its password, and any query, which may hold one too, left out."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "[not a URL]"
    credentials = "***@" if "@" in parts.netloc else ""
    return urlunsplit((parts.scheme, credentials + host, parts.path, "***" if parts.query else "", ""))


def _require(holds: bool, name: str, expected: str) -> None:
    if not holds:
        raise InvalidSettings(f"{name}: expected {expected}")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def _flag(text: str) -> bool:
    match text.strip().lower():
        case "1" | "true" | "yes" | "on":
            return True
        case "0" | "false" | "no" | "off" | "":
            return False
        case _:
            raise ValueError("expected true or false")


def _priorities(text: str) -> dict[str, int]:
    """Read `high=0,normal=5,low=10`."""
    pairs = [part.partition("=") for part in text.split(",")]
    return {label.strip(): int(value) for label, _, value in pairs}


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


_Reader = tuple[str, Callable[[str], Any]]

_QUEUE_VARIABLES: Mapping[str, _Reader] = {
    "priorities": ("QUEUE_PRIORITIES", _priorities),
    "max_in_memory": ("QUEUE_MAX_IN_MEMORY", int),
    "max_depth": ("QUEUE_MAX_DEPTH", int),
    "warn_depth": ("QUEUE_WARN_DEPTH", int),
    "lease_seconds": ("QUEUE_LEASE_SECONDS", float),
    "use_redis": ("USE_REDIS_QUEUE", _flag),
    "redis_url": ("REDIS_URL", str),
    "redis_ready_key": ("REDIS_READY_KEY", str),
    "redis_scheduled_key": ("REDIS_SCHEDULED_KEY", str),
    "redis_health_check_timeout": ("REDIS_HEALTH_CHECK_TIMEOUT", float),
    "redis_health_check_interval": ("REDIS_HEALTH_CHECK_INTERVAL", float),
    "on_outage": ("QUEUE_ON_OUTAGE", str),
}

_FILA_VARIABLES: Mapping[str, _Reader] = {
    "addr": ("FILA_ADDR", str),
    "queue": ("FILA_QUEUE", str),
    "max_in_flight": ("FILA_MAX_IN_FLIGHT", int),
    "throttle_headers": ("FILA_THROTTLE_HEADERS", _names),
}


def _read(environ: Mapping[str, str], variables: Mapping[str, _Reader]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, (variable, convert) in variables.items():
        if variable in environ:
            try:
                values[name] = convert(environ[variable])
            except ValueError as error:
                raise InvalidSettings(f"{variable}: {error}") from None
    return values


def variables() -> dict[str, str]:
    """Each setting that the environment can give, and the variable that gives it."""
    known = {name: variable for name, (variable, _) in _QUEUE_VARIABLES.items()}
    known |= {f"fila.{name}": variable for name, (variable, _) in _FILA_VARIABLES.items()}
    assert known.keys() >= {each.name for each in fields(QueueSettings)} - {"fila"}
    return known
