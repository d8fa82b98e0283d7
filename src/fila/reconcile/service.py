"""The composition root: settings become a store, a queue, an API and workers. Clocks are read here and nowhere else."""

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import FastAPI

from fila.jobs.breaker import BreakerStore, CircuitBreaker, LocalStore
from fila.jobs.errors import JobsError
from fila.jobs.factory import create_queue
from fila.jobs.queue import JobQueue
from fila.reconcile.api import create_app
from fila.reconcile.api.access import OPEN, PROTECTED
from fila.reconcile.api.app import Service
from fila.reconcile.config import Config
from fila.reconcile.platforms import Fetchers, GuardedFetchers, HttpFetcher
from fila.reconcile.reconciler import Reconciler
from fila.reconcile.store import Store, StoreError, open_engine, upgrade
from fila.reconcile.worker import Worker
from fila.settings import SettingsError

if TYPE_CHECKING:
    from fila.jobs.redis.breaker import RedisBreakerStore

logger = logging.getLogger(__name__)

STOPS = (JobsError, SettingsError, StoreError, OSError)
"""What keeps a service from starting, or ends it, with a text that is meant for whoever started it."""


def clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def open_store(config: Config) -> Store:
    """The store, brought to the form that this version expects. Raises StoreError."""
    engine = open_engine(config.store.url)
    upgrade(engine)
    return Store(engine, config.rules, requeue_after_ms=int(config.store.requeue_after_seconds * 1000))


@dataclass(slots=True)
class Parts:
    """What one process is made of."""

    config: Config
    store: Store
    queue: JobQueue
    fetchers: GuardedFetchers
    #: Where breakers are kept, if other processes share them.
    shared_breakers: "RedisBreakerStore | None" = None

    @classmethod
    def open(cls, config: Config) -> "Parts":
        """Connect to everything. Raises StoreError, JobsError or SettingsError."""
        queue_settings = config.queue.queue_settings(config.worker.concurrency)
        fetchers = Fetchers({each.name: HttpFetcher(each) for each in config.platforms})
        store = open_store(config)
        shared = _shared_breakers(config)
        breakers: BreakerStore = shared or LocalStore(config.breaker)
        guarded = GuardedFetchers(fetchers, lambda platform: CircuitBreaker(platform, store=breakers))
        return cls(config, store, create_queue(queue_settings), guarded, shared)

    def api(self) -> FastAPI:
        if not self.store.keys.exist():
            log = logger.warning if self.config.api.insecure else logger.info
            log(OPEN if self.config.api.insecure else PROTECTED)
        names = frozenset(each.name for each in self.config.platforms) or None
        return create_app(Service(self.store, self.queue, self.config.rules, self.config.api, names, clock_ms))

    def worker(self) -> Worker:
        reconciler = Reconciler(self.store, self.fetchers, self.config.rules, clock_ms)
        return Worker(self.queue, self.store, reconciler, self.config.worker)

    def close(self) -> None:
        self.queue.close()
        self.fetchers.close()
        if self.shared_breakers is not None:
            self.shared_breakers.close()
        self.store.close()


def _shared_breakers(config: Config) -> "RedisBreakerStore | None":
    """Breakers are shared where the queue is in Redis: what one process learns of a platform, all know."""
    if not config.queue.in_redis:
        return None
    from fila.jobs.redis.breaker import RedisBreakerStore

    return RedisBreakerStore(config.queue.url, config.breaker, prefix="affiliate:breaker:")
