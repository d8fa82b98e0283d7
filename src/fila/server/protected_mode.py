"""Protected mode: a server without security settings serves the peers of its own machine only.

Rules of this file:
- Whether it is on does not depend on the address that the server listens on: a default that opens a port to the network
  must not open the broker.
- It is decided for each call, since the first key may be created while the server runs.
- A peer whose address is not known is not of this machine.
"""

from collections.abc import Callable

import structlog

from fila.config import ServerConfig
from fila.wire.address import is_loopback

log = structlog.get_logger(__name__)

REFUSAL = (
    "this server is in protected mode and serves loopback clients only: create a key with 'fila auth init', require "
    'client certificates with tls.client_auth = "required", or set server.insecure = true to serve everyone'
)


class ProtectedMode:
    """Which peers are served. `has_credentials` says whether every caller has to show a key or a certificate."""

    def __init__(self, config: ServerConfig, has_credentials: Callable[[], bool]) -> None:
        self._insecure = config.insecure
        self._has_credentials = has_credentials

    @property
    def on(self) -> bool:
        return not (self._insecure or self._has_credentials())

    def refuse_peer(self, address: str) -> str | None:
        """Why a peer of this address is not served; None: it is."""
        return REFUSAL if not is_loopback(address) and self.on else None

    def log_state(self) -> None:
        """At each start: a server that is open to everyone is never a surprise."""
        if self._has_credentials():
            return
        if self._insecure:
            log.warning("insecure: whoever reaches the port may read, change and delete everything")
        else:
            log.info("protected mode: only loopback clients are served", open_with="keys, tls.client_auth, insecure")
