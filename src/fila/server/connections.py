"""The open connections of principals.

A connection says nothing of who it belongs to: it is a principal's from the first call that shows a key of it until it
ends. A connection on which keys of several principals are used counts for each of them.
"""

from collections.abc import Hashable
from functools import partial

from fila.auth.allowance import CONNECTIONS
from fila.core.errors import LimitExceeded, quoted
from fila.server.types import ServerCall


class Connections:
    """By principal, also of those without a limit: one may be set at any time, and applies to connections that come."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str, set[Hashable]] = {}

    def enter(self, principal: str, most: int | None, call: ServerCall) -> None:
        """A call of a principal. Raises LimitExceeded when its connection is one too many: others go on."""
        open_ones = self._open.get(principal)
        connection = call.connection
        if open_ones is not None and connection in open_ones:
            return
        if most is not None and open_ones is not None and len(open_ones) >= most:
            raise LimitExceeded(
                f"{quoted(principal)} exceeds its limit {CONNECTIONS}={most}: close a connection, or share one"
            )
        self._open.setdefault(principal, set()).add(connection)
        call.on_disconnect(partial(self._leave, principal, connection))

    def _leave(self, principal: str, connection: Hashable) -> None:
        open_ones = self._open[principal]
        open_ones.discard(connection)
        if not open_ones:
            del self._open[principal]
