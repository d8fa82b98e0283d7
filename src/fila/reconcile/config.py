"""The service's configuration: one TOML file and what the command line overrides, read once into a frozen tree.

[store]     where reports are kept
[queue]     where jobs wait
[api]       limits of the ingestion API
[worker]    how many work at once
[breaker]   when a failing platform is left alone
[platforms.NAME]   how a platform is asked
[tiers] [growth] [trust] [retries] [alerts] [intake] [suspicion]   the rules
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from fila.jobs.breaker import BreakerSettings
from fila.jobs.settings import FilaSettings, QueueSettings, secure
from fila.reconcile.api.settings import ApiSettings
from fila.reconcile.domain.settings import Settings
from fila.reconcile.platforms import Platform
from fila.reconcile.worker import WorkerSettings
from fila.settings import (
    Layers,
    Section,
    SettingsError,
    choice,
    read_toml,
    seconds,
    section_types,
    text,
    whole_number,
)

QUEUE_URLS = "memory, redis://..., fila://host:port/queue or filas://host:port/queue (TLS)"


@dataclass(frozen=True, slots=True)
class StoreSettings(Section):
    """Where reports are kept."""

    url: str = text("sqlite:///reconcile.db", "text", secret=True)  # it may hold a password
    #: A job that was queued and not heard of for so long is queued again.
    requeue_after_seconds: float = seconds(600.0)


@dataclass(frozen=True, slots=True)
class JobsSettings(Section):
    """Where jobs wait, and how."""

    #: "memory", redis://..., rediss://..., fila://host:port/queue, or filas:// with TLS
    url: str = text("memory", "text", secret=True)  # it may hold a password
    #: How long a worker may be silent before its job is given to another.
    lease_seconds: float = seconds(30.0)
    #: How many jobs may wait in this process's memory.
    max_in_memory: int = whole_number(100_000, 1)
    #: From this depth on the backlog is logged.
    warn_depth: int = whole_number(10_000, 1)
    redis_ready_key: str = text("affiliate:ready_queue", "a key", bool)
    redis_scheduled_key: str = text("affiliate:scheduled_jobs", "a key", bool)
    #: How long Redis may take to answer before it counts as unavailable.
    redis_health_check_timeout: float = seconds(2.0)
    #: While Redis is unavailable: "memory" goes on in memory, "refuse" refuses. What a process loses is queued again:
    #: the store knows every job.
    on_outage: str = choice("memory", "refuse")

    @property
    def shared(self) -> bool:
        """Whether workers of other processes can reach it."""
        return self.url != "memory"

    @property
    def in_redis(self) -> bool:
        return self.url.startswith(("redis://", "rediss://", "unix://"))

    def queue_settings(self, concurrency: int) -> QueueSettings:
        """As the jobs layer wants it. Raises SettingsError."""
        common: dict[str, Any] = {name: getattr(self, name) for name in _PASSED_ON}
        try:
            parts = urlsplit(self.url)
        except ValueError as error:
            raise SettingsError(f"queue.url: expected {QUEUE_URLS}") from error
        if parts.scheme in {"fila", "filas"}:
            where = FilaSettings(
                addr=parts.netloc,
                queue=parts.path.strip("/") or "reconcile",
                max_in_flight=concurrency,
                throttle_headers=("platform",),
                tls=secure(os.environ) if parts.scheme == "filas" else None,
            )
            return QueueSettings(fila=where, **common)
        if self.in_redis:
            return QueueSettings(use_redis=True, redis_url=self.url, **common)
        if self.url != "memory":
            raise SettingsError(f"queue.url: expected {QUEUE_URLS}")
        return QueueSettings(**common)


_PASSED_ON = (
    "lease_seconds",
    "max_in_memory",
    "warn_depth",
    "redis_ready_key",
    "redis_scheduled_key",
    "redis_health_check_timeout",
    "on_outage",
)
"""Settings that go to the jobs layer as they are."""


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
        return cls() if path is None else cls.from_mapping(read_toml(path), str(path))

    @classmethod
    def from_mapping(cls, tables: Mapping[str, object], origin: str = "") -> Self:
        """Read sections, from the file `origin`. Raises SettingsError for what is not understood."""
        platforms = tables.get("platforms", {})
        if not isinstance(platforms, Mapping):
            raise SettingsError(f"{origin}: platforms: expected sections, [platforms.NAME]")
        layers = Layers(_SECTIONS | {f"platforms.{name}": Platform for name in platforms})
        layers.add_tables({name: table for name, table in tables.items() if name != "platforms"}, origin)
        layers.add_tables({f"platforms.{name}": table for name, table in platforms.items()}, origin)
        return cls(
            rules=Settings(**{name: layers.build(name) for name in section_types(Settings)}),
            platforms=tuple(layers.build(f"platforms.{name}", name=name) for name in platforms),
            **{name: layers.build(name) for name in _OWN_SECTIONS},
        )

    def override(self, *, store_url: str | None, queue_url: str | None, concurrency: int | None) -> Self:
        """What the command line said goes before the file."""
        return replace(
            self,
            store=self.store if store_url is None else replace(self.store, url=store_url),
            queue=self.queue if queue_url is None else replace(self.queue, url=queue_url),
            worker=self.worker if concurrency is None else replace(self.worker, concurrency=concurrency),
        )


_OWN_SECTIONS: dict[str, type[Section]] = {
    "store": StoreSettings,
    "queue": JobsSettings,
    "api": ApiSettings,
    "worker": WorkerSettings,
    "breaker": BreakerSettings,
}
_SECTIONS = _OWN_SECTIONS | section_types(Settings)
