"""The service's configuration: one TOML file and what the command line overrides, read once into a frozen tree.

[store]     where reports are kept
[queue]     where jobs wait
[api]       limits of the ingestion API
[worker]    how many work at once
[breaker]   when a failing platform is left alone
[platforms.NAME]   how a platform is asked
[tiers] [growth] [trust] [retries] [alerts] [suspicion]   the rules
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from fila.jobs.breaker import BreakerSettings
from fila.jobs.errors import InvalidSettings
from fila.jobs.settings import FilaSettings, QueueSettings
from fila.reconcile.api.settings import ApiSettings
from fila.reconcile.domain.settings import MAX_NUMBER, Settings, SettingsError
from fila.reconcile.platforms import Platform
from fila.reconcile.worker import WorkerSettings

SectionType = TypeVar("SectionType")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where reports are kept."""

    url: str = field(default="sqlite:///reconcile.db", repr=False)  # it may hold a password
    #: A job that was queued and not heard of for so long is queued again.
    requeue_after_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class JobsSettings:
    """Where jobs wait."""

    #: "memory", redis://..., rediss://... or fila://host:port/queue
    url: str = field(default="memory", repr=False)  # it may hold a password
    #: How long a worker may be silent before its job is given to another.
    lease_seconds: float = 30.0
    #: While Redis is away: "memory" goes on in memory, "refuse" refuses. What a process loses is queued again:
    #: the store knows every job.
    on_outage: str = "memory"

    @property
    def shared(self) -> bool:
        """Whether workers of other processes can reach it."""
        return self.url != "memory"

    @property
    def in_redis(self) -> bool:
        return self.url.startswith(("redis://", "rediss://", "unix://"))

    def queue_settings(self, concurrency: int) -> QueueSettings:
        """As the jobs layer wants it. Raises InvalidSettings or SettingsError."""
        common: dict[str, Any] = {"lease_seconds": self.lease_seconds, "on_outage": self.on_outage}
        if self.url == "memory":
            return QueueSettings(**common)
        try:
            parts = urlsplit(self.url)
        except ValueError as error:
            raise SettingsError("queue.url: expected memory, redis://... or fila://host:port/queue") from error
        if parts.scheme == "fila":
            where = FilaSettings(
                addr=parts.netloc,
                queue=parts.path.strip("/") or "reconcile",
                max_in_flight=concurrency,
                throttle_headers=("platform",),
            )
            return QueueSettings(fila=where, **common)
        if self.in_redis:
            common |= {"redis_ready_key": "reconcile:ready_queue", "redis_scheduled_key": "reconcile:scheduled_jobs"}
            return QueueSettings(use_redis=True, redis_url=self.url, **common)
        raise SettingsError("queue.url: expected memory, redis://... or fila://host:port/queue")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the service is told."""

    rules: Settings = field(default_factory=Settings)
    store: StoreSettings = field(default_factory=StoreSettings)
    queue: JobsSettings = field(default_factory=JobsSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    platforms: tuple[Platform, ...] = ()

    @classmethod
    def load(cls, path: Path | None) -> Self:
        """Read the file; without one, the defaults. Raises SettingsError."""
        if path is None:
            return cls()
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise SettingsError(f"cannot read {path}: {error.strerror}") from error
        except ValueError as error:  # no UTF-8, no TOML, or a number of too many digits
            raise SettingsError(f"{path}: {error}") from error
        try:
            return cls.from_mapping(tables)
        except (ValueError, InvalidSettings) as error:  # SettingsError, or a number of too many digits to be shown
            raise SettingsError(f"{path}: {error}") from error

    @classmethod
    def from_mapping(cls, tables: Mapping[str, object]) -> Self:
        """Read sections. What is not understood is refused."""
        rest = dict(tables)
        platforms = rest.pop("platforms", {})
        if not isinstance(platforms, Mapping):
            raise SettingsError("platforms: expected sections, [platforms.NAME]")
        return cls(
            store=_section(StoreSettings, "store", rest.pop("store", {})),
            queue=_section(JobsSettings, "queue", rest.pop("queue", {})),
            api=ApiSettings.from_mapping(_table("api", rest.pop("api", {}))),
            worker=_section(WorkerSettings, "worker", rest.pop("worker", {})),
            breaker=_section(BreakerSettings, "breaker", rest.pop("breaker", {})),
            platforms=tuple(Platform.from_mapping(name, table) for name, table in platforms.items()),
            rules=Settings.from_mapping(rest),
        )

    def override(self, *, store_url: str | None, queue_url: str | None, concurrency: int | None) -> Self:
        """What the command line said goes before the file."""
        return replace(
            self,
            store=self.store if store_url is None else replace(self.store, url=store_url),
            queue=self.queue if queue_url is None else replace(self.queue, url=queue_url),
            worker=self.worker if concurrency is None else replace(self.worker, concurrency=concurrency),
        )


def _table(name: str, table: object) -> Mapping[str, object]:
    if not isinstance(table, Mapping):
        raise SettingsError(f"{name} = {table!r}: expected a section, [{name}]")
    return table


def _section(kind: type[SectionType], name: str, table: object) -> SectionType:
    """A section of text and positive numbers, each of the type of its default."""
    known = {each.name: each.default for each in fields(kind)}  # type: ignore[arg-type] # a dataclass
    values: dict[str, Any] = {}
    for key, value in _table(name, table).items():
        if key not in known:
            raise SettingsError(f"unknown key {name}.{key}: expected one of {', '.join(known)}")
        values[key] = _value(f"{name}.{key}", value, type(known[key]))
    return kind(**values)


def _value(name: str, value: Any, expected: type) -> Any:
    fits = type(value) is expected or (expected is float and type(value) is int)
    if fits and (expected is str or 0 < value <= MAX_NUMBER):
        return expected(value)
    words = {
        str: "text",
        int: f"a positive whole number up to {MAX_NUMBER:,}",
        float: f"a positive number up to {MAX_NUMBER:,}",
    }
    raise SettingsError(f"{name} = {value!r}: expected {words[expected]}")
