"""All calls to FilaAdmin in one class: `AsyncClient` inherits them, `BlockingAdmin` runs them and waits."""

from fila.client.admin_service import AdminService
from fila.client.audit import AuditCalls
from fila.client.explain import ExplainCalls
from fila.client.hook_trials import HookCalls
from fila.client.peek import PeekCalls
from fila.client.queues import QueueCalls
from fila.client.runtime_config import ConfigCalls
from fila.client.server_info import ServerCalls
from fila.client.stats import StatsCalls
from fila.client.sweep import SweepCalls


class AsyncAdmin(
    QueueCalls, StatsCalls, ConfigCalls, ExplainCalls, HookCalls, PeekCalls, SweepCalls, ServerCalls, AuditCalls
):
    """Queues, figures, runtime configuration, and messages that wait. A subclass says in `_admin` which broker."""


class Admin(AsyncAdmin):
    """The same over a service that is known from the start."""

    def __init__(self, service: AdminService) -> None:
        self.service = service

    def _admin(self) -> AdminService:
        return self.service
