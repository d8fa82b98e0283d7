"""The store as one object. Each method of its parts is one transaction.

Locks are taken in one order everywhere (reports, then affiliates; several of a kind sorted by id), so that PostgreSQL's
transactions wait for each other but never in a circle.
"""

from sqlalchemy import Engine

from fila.reconcile.domain.settings import Settings
from fila.reconcile.store.attempts import Attempts
from fila.reconcile.store.database import Database
from fila.reconcile.store.due import DueReports
from fila.reconcile.store.intake import Intake
from fila.reconcile.store.keys import Keys
from fila.reconcile.store.views import Views

REQUEUE_AFTER_MS = 600_000
"""A job that was queued and not heard of for so long is queued again."""


class Store:
    """One database, for any number of threads."""

    def __init__(self, engine: Engine, settings: Settings, *, requeue_after_ms: int = REQUEUE_AFTER_MS) -> None:
        self._database = Database(engine)
        self.intake = Intake(self._database, settings, requeue_after_ms)
        self.attempts = Attempts(self._database)
        self.due_reports = DueReports(self._database, requeue_after_ms)
        self.views = Views(self._database)
        self.keys = Keys(self._database)

    def close(self) -> None:
        """Give back all connections."""
        self._database.close()
