"""The ingestion API: reports in, status, alerts and trust out, over HTTP."""

from fila.reconcile.api.app import create_app
from fila.reconcile.api.settings import ApiSettings

__all__ = ["ApiSettings", "create_app"]
