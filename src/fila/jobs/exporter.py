"""Counters over HTTP, for a Prometheus server to scrape: `GET /metrics`, and nothing else."""

from __future__ import annotations

from fila.jobs.metrics import Counters
from fila.metrics.http import Page
from fila.metrics.prometheus import CONTENT_TYPE
from fila.metrics.thread import PageThread


class MetricsServer(PageThread):
    """Serves counters on a thread of its own, from `start` to `stop`."""

    def __init__(self, counters: Counters, host: str = "127.0.0.1", port: int = 0) -> None:
        """Port 0 is a free one. Raises OSError when the address cannot be used."""

        async def metrics() -> Page:
            return Page(counters.prometheus().encode(), content_type=CONTENT_TYPE)

        super().__init__({"/metrics": metrics}, host, port)
