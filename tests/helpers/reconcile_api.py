"""An API of reconciliation on a port of its own."""

import httpx

from fila.jobs.memory import PriorityDelayQueue
from fila.reconcile.api import ApiSettings, create_app
from fila.reconcile.api.app import Service
from fila.reconcile.api.models import EXAMPLE
from fila.reconcile.domain.settings import DEFAULTS
from fila.reconcile.serving import HttpServer
from fila.reconcile.store import Store, open_engine, upgrade
from tests.helpers.reconcile import NOW

REPORT = {name: value for name, value in EXAMPLE.items() if name != "idempotency_key"}


class Bench:
    """An API, its store and its queue."""

    def __init__(self, folder, queue=None, **limits):
        engine = open_engine(f"sqlite:///{folder}/reconcile.db")
        upgrade(engine)
        self.store = Store(engine, DEFAULTS)
        self.queue = queue or PriorityDelayQueue()
        self.now_ms = NOW
        platforms = frozenset({"clipshare", "photogram"})
        limits = ApiSettings(**limits)
        self.app = create_app(Service(self.store, self.queue, DEFAULTS, limits, platforms, lambda: self.now_ms))
        self.server = HttpServer(self.app)
        self.server.start()
        self.http = httpx.Client(base_url=self.server.url)

    def close(self):
        self.http.close()
        self.server.stop(wait=False)
        self.store.close()

    def post(self, headers=None, **changes):
        return self.http.post("/v1/reports", json=REPORT | changes, headers=headers)

    def batch(self, reports):
        return self.http.post("/v1/reports/batch", json={"reports": reports})
