"""The settings of the jobs layer: read once, at the edge, into small frozen values.

Rules:
- Defaults live here and nowhere else. Nothing is read from the environment unless `from_env` or `at` is called.
- A bad value is refused where it is made, with its name. No message shows a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, Self
from urllib.parse import urlsplit, urlunsplit

from fila.jobs.errors import InvalidSettings
from fila.settings import Layers, Section, choice, flag, mapping, seconds, text, text_list, whole_number

if TYPE_CHECKING:
    from fila.client import TLS

URL_VARIABLE = "FILA_JOBS_URL"
URLS = "fila://host:port, filas://host:port (TLS), redis://..., rediss://..., unix://... or memory://"
_PORT = 5555

PRIORITIES: Mapping[str, int] = MappingProxyType({"high": 0, "normal": 5, "low": 10})


class JobsSection(Section):
    """Settings of the jobs layer: one that cannot be used is an error of that layer too."""

    __slots__ = ()

    error: ClassVar = InvalidSettings


@dataclass(frozen=True, slots=True)
class FilaSettings(JobsSection):
    """The durable backend: a queue of a Fila broker."""

    addr: str = text(
        "localhost:5555", "an address such as localhost:5555", bool, secret=True
    )  # somebody may add a password
    #: The broker's queue. It is created, with its dead-letter queue, when it is not there.
    queue: str = text("jobs", "a name", bool)
    #: How many jobs this process may hold at a time; give it the number of workers.
    max_in_flight: int = whole_number(8, 1)
    #: Headers of a job whose values are throttle keys, for example ("platform",).
    throttle_headers: tuple[str, ...] = text_list()
    #: How long a call may take, reconnecting included.
    timeout: float = seconds(5.0)
    #: As `Client(tls=...)`: True, a `TLS`, or None for that of the environment (FILA_TLS, FILA_TLS_CA, ...).
    tls: TLS | bool | None = None


def _are_priorities(labels: Mapping[str, object]) -> bool:
    # The broker's priorities are a byte.
    return bool(labels) and all(type(value) is int and 0 <= value <= 255 for value in labels.values())


def _read_priorities(value: str) -> dict[str, int]:
    """Read `high=0,normal=5,low=10`."""
    pairs = [part.partition("=") for part in value.split(",")]
    return {label.strip(): int(number) for label, _, number in pairs}


@dataclass(frozen=True, slots=True)
class QueueSettings(JobsSection):
    """Which queue, and how it behaves."""

    #: Label to number; the lower number is the more urgent.
    priorities: Mapping[str, int] = mapping(
        PRIORITIES, "labels with whole numbers from 0 to 255, such as high=0,low=9", _are_priorities, _read_priorities
    )
    #: How many jobs may wait in this process's memory.
    max_in_memory: int = whole_number(100_000, 1)
    #: How many jobs may wait in Redis or in the broker; 0 means no limit of ours.
    max_depth: int = whole_number(0, 0)
    #: From this depth on the backlog is logged, and `backpressure` tells producers to come later.
    warn_depth: int = whole_number(10_000, 1)
    #: How long a worker may be silent before its job is given to another.
    lease_seconds: float = seconds(30.0)

    use_redis: bool = flag(default=False, words=True)
    redis_url: str = text("redis://localhost:6379/0", "a URL", secret=True)  # it may hold a password
    redis_ready_key: str = text("fila:jobs:ready", "a key", bool)
    redis_scheduled_key: str = text("fila:jobs:scheduled", "a key", bool)
    #: How long Redis may take to answer before it counts as unavailable.
    redis_health_check_timeout: float = seconds(2.0)
    #: How often an unavailable Redis is asked whether it is back.
    redis_health_check_interval: float = seconds(0.5)
    #: While Redis is unavailable: refuse jobs, or keep them in memory, where they are lost if the process ends first.
    on_outage: Literal["memory", "refuse"] = choice("refuse", "memory")

    #: Set, it chooses the broker; it goes before Redis.
    fila: FilaSettings | None = None

    def check(self) -> None:
        object.__setattr__(self, "priorities", MappingProxyType(dict(self.priorities)))
        self.require(
            self.redis_scheduled_key != self.redis_ready_key, "redis_scheduled_key to differ from redis_ready_key"
        )
        # Only the scheme is judged here; the rest is redis-py's to refuse, without repeating the password.
        is_redis = re.match(r"(rediss?|unix)://", self.redis_url) is not None
        self.require(is_redis or not self.use_redis, "redis_url to begin with redis://, rediss:// or unix://")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Read `FILA_JOBS_URL`, `USE_REDIS_QUEUE` and the others of docs/jobs.md. Memory where nothing is chosen."""
        environ = os.environ if environ is None else environ
        if environ.get(URL_VARIABLE):
            return cls.at(environ[URL_VARIABLE], environ)
        layers = _layers(environ, _VARIABLES)
        use_fila: _Chosen = layers.build("chosen")
        return layers.build("queue", fila=layers.build("fila") if use_fila.fila else None)  # type: ignore[no-any-return]

    @classmethod
    def at(cls, url: str, environ: Mapping[str, str] | None = None) -> Self:
        """Read where jobs are kept from a URL: `fila://host:port`, `filas://` with TLS, `redis://...` or `memory://`.

        A path after `fila://host:port` is the name of the broker's queue. All else is that of the environment.
        """
        environ = os.environ if environ is None else environ
        layers = _layers(environ, {name: at for name, at in _VARIABLES.items() if name not in _BACKEND_VARIABLES})
        settings: Self = layers.build("queue")
        scheme, _, rest = url.partition("://")
        if url == "memory://":
            return settings
        if scheme in {"redis", "rediss", "unix"}:
            return replace(settings, use_redis=True, redis_url=url)
        host, _, queue = rest.partition("/")
        if scheme not in {"fila", "filas"} or not host or "@" in host:
            raise InvalidSettings(f"the URL of jobs: expected {URLS}")
        name, colon, port = host.rpartition(":")
        addr = host if colon and name and port.isdecimal() else f"{host}:{_PORT}"
        fila: FilaSettings = layers.build("fila")
        tls = secure(environ) if scheme == "filas" else None
        return replace(settings, fila=replace(fila, addr=addr, queue=queue or fila.queue, tls=tls))

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


def secure(environ: Mapping[str, str]) -> TLS:
    """What `filas://` asks for: TLS with the files that the environment names."""
    from fila.client import TLS, FilaError

    try:
        return TLS.from_env(environ) or TLS()
    except FilaError as error:
        raise InvalidSettings(str(error)) from error


def redacted(url: str) -> str:
    """The URL with its password, and any query, which may hold one too, left out."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "[not a URL]"
    credentials = "***@" if "@" in parts.netloc else ""
    return urlunsplit((parts.scheme, credentials + host, parts.path, "***" if parts.query else "", ""))


@dataclass(frozen=True, slots=True)
class _Chosen(JobsSection):
    fila: bool = flag(default=False, words=True)


_VARIABLES: Mapping[str, tuple[str, str]] = {
    "QUEUE_PRIORITIES": ("queue", "priorities"),
    "QUEUE_MAX_IN_MEMORY": ("queue", "max_in_memory"),
    "QUEUE_MAX_DEPTH": ("queue", "max_depth"),
    "QUEUE_WARN_DEPTH": ("queue", "warn_depth"),
    "QUEUE_LEASE_SECONDS": ("queue", "lease_seconds"),
    "USE_REDIS_QUEUE": ("queue", "use_redis"),
    "REDIS_URL": ("queue", "redis_url"),
    "REDIS_READY_KEY": ("queue", "redis_ready_key"),
    "REDIS_SCHEDULED_KEY": ("queue", "redis_scheduled_key"),
    "REDIS_HEALTH_CHECK_TIMEOUT": ("queue", "redis_health_check_timeout"),
    "REDIS_HEALTH_CHECK_INTERVAL": ("queue", "redis_health_check_interval"),
    "QUEUE_ON_OUTAGE": ("queue", "on_outage"),
    "USE_FILA_QUEUE": ("chosen", "fila"),
    "FILA_ADDR": ("fila", "addr"),
    "FILA_QUEUE": ("fila", "queue"),
    "FILA_MAX_IN_FLIGHT": ("fila", "max_in_flight"),
    "FILA_THROTTLE_HEADERS": ("fila", "throttle_headers"),
}

_BACKEND_VARIABLES = frozenset({"USE_FILA_QUEUE", "USE_REDIS_QUEUE", "REDIS_URL"})
"""What a URL decides instead."""


def _layers(environ: Mapping[str, str], variables: Mapping[str, tuple[str, str]]) -> Layers:
    layers = Layers({"queue": QueueSettings, "fila": FilaSettings, "chosen": _Chosen})
    layers.add_texts(environ, variables)
    return layers


def variables() -> dict[str, str]:
    """Each setting that the environment can give, and the variable that gives it."""
    named = {"queue": "", "fila": "fila."}
    return {named[at] + key: variable for variable, (at, key) in _VARIABLES.items() if at in named}
