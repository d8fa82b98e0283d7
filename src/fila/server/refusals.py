"""Refused calls in the audit: who tried to change what, and was not allowed to or could not.

The first refusal is written before the call is answered. The same one again (same caller, action, resource and status)
is counted, and the count written once a window. In one window there are at most `MOST` different ones; what is beyond
that is counted together. So a flood of refused calls writes at most `2 * MOST + 1` entries a window.

Not written: callers that could not say who they are (the log has the failed logins), and failures of the server.
"""

from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from fila.broker.audit_commands import Origin, RecordRefusals
from fila.broker.broker import Broker
from fila.core.errors import BrokerError
from fila.core.ids import NS_PER_MS
from fila.storage.audit import AuditRecord
from fila.wire.status import StatusCode

WINDOW_NS: Final = 60_000 * NS_PER_MS
MOST: Final = 50
"""Refusals of one window that are told apart"""
MAX_NAME: Final = 255
"""Characters that are kept of the name of what was asked for: it is the caller's own text"""

_NOT_REFUSED: Final = {StatusCode.UNAUTHENTICATED, StatusCode.UNAVAILABLE, StatusCode.INTERNAL}


class Refusal(NamedTuple):
    """Refused calls that are alike. The port of the caller is left out: each connection has one of its own."""

    origin: Origin
    kind: str
    name: str
    code: str

    def record(self, at: int, times: int) -> AuditRecord:
        return self.origin.record(at, self.kind, self.name, outcome=self.code, times=times)


_REST: Final = Refusal(Origin("various", peer="various"), "", "", "various")
"""Those that are not told apart"""


class Refusals:
    """Refusals of the current window, each with how often it came again."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._again: Counter[Refusal] = Counter()
        self._began_at = broker.now()

    async def add(self, origin: Origin, resource: tuple[str, str], code: StatusCode) -> None:
        """A call was refused. Returns when that is written, unless it is only counted."""
        if code in _NOT_REFUSED:
            return
        self.look_after()
        kind, name = resource
        refusal = Refusal(origin._replace(peer=origin.peer.rpartition(":")[0]), str(kind), name[:MAX_NAME], code.name)
        if refusal not in self._again and len(self._again) < MOST:
            self._again[refusal] = 0
            with suppress(BrokerError):  # the caller is refused all the same
                await self._broker.do(partial(RecordRefusals, [refusal.record(self._broker.now(), 1)]))
        else:
            self._again[refusal if refusal in self._again else _REST] += 1

    def look_after(self) -> None:
        """Now and again: write what was counted, when the window has ended."""
        if self._broker.now() - self._began_at >= WINDOW_NS:
            self.write()

    def write(self) -> None:
        """Have the counts written, and begin a new window."""
        now = self._broker.now()
        again, self._again, self._began_at = self._again, Counter(), now
        records = [refusal.record(now, times) for refusal, times in again.items() if times]
        if records and self._broker.ready:
            with suppress(BrokerError):
                self._broker.submit(RecordRefusals(records, lambda _: None))
