"""Where reports, attempts, trust and alerts are kept: a SQLite file, or PostgreSQL by URL."""

from fila.reconcile.store.engine import StoreError, open_engine
from fila.reconcile.store.intake import KeyReused, PostTaken, SubmissionRefused, new_report_id
from fila.reconcile.store.migrate import upgrade
from fila.reconcile.store.records import Attempt, DueReport, OpenReport, Submission, Submitted
from fila.reconcile.store.store import Store

__all__ = [
    "Attempt",
    "DueReport",
    "KeyReused",
    "OpenReport",
    "PostTaken",
    "Store",
    "StoreError",
    "Submission",
    "SubmissionRefused",
    "Submitted",
    "new_report_id",
    "open_engine",
    "upgrade",
]
