"""Says why peers get no TLS connection, at most once in `EVERY_S` for each reason: a log cannot be flooded."""

import ssl
from time import monotonic
from typing import Final

import structlog

from fila.wire.tls_errors import explain
from fila.wire.tls_layer import PlaintextReceived

log = structlog.get_logger(__name__)

EVERY_S: Final = 10.0
_MOST_REASONS: Final = 100


class HandshakeLog:
    """For `on_handshake_failed` of a server. Peers that only come and go, as probes of a port do, are not logged."""

    def __init__(self) -> None:
        #: By reason: when it may be logged again, and how many there were since.
        self._reasons: dict[str, tuple[float, int]] = {}

    def failed(self, address: str, failure: Exception) -> None:
        if isinstance(failure, ssl.SSLError):
            reason = explain(failure)
        elif isinstance(failure, PlaintextReceived):
            reason = str(failure)
        else:
            return
        if len(self._reasons) >= _MOST_REASONS:
            self._reasons.clear()
        now = monotonic()
        due, more = self._reasons.get(reason, (0.0, 0))
        if now < due:
            self._reasons[reason] = (due, more + 1)
            return
        self._reasons[reason] = (now + EVERY_S, 0)
        log.warning("a client gets no TLS connection", address=address, reason=reason, others_before=more)
