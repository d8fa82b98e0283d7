"""Who is served which page of the HTTP port.

1. In protected mode, peers of other machines are refused.
2. Probes (`/healthz`, `/readyz`) are open: they tell no names, and what probes has neither key nor certificate.
3. Where client certificates are required, every other page needs one.
4. Peers of this machine are served.
5. Once callers have to be recognised, others need a key, a token or a client certificate of a principal that may browse
   all queues and throttle keys. Until then, nothing more is asked.
"""

from http import HTTPStatus

from fila.config import TlsConfig
from fila.core.errors import PermissionDenied, ProviderAway, Unauthenticated
from fila.metrics.http import Page, PageRequest, refused
from fila.server.access import Gate
from fila.server.protected_mode import ProtectedMode
from fila.wire.address import is_loopback
from fila.wire.certificate import PeerCertificate, peer_certificate

PROBES = frozenset({"/healthz", "/readyz"})
NO_CERTIFICATE = 'a client certificate is required here: tls.client_auth is "required"'


class PageAccess:
    """The rules above."""

    def __init__(self, tls: TlsConfig, protected_mode: ProtectedMode, gate: Gate) -> None:
        self._certificate_required = tls.client_auth == "required"
        self._protected_mode = protected_mode
        self._gate = gate

    def refuse(self, request: PageRequest) -> Page | None:
        """The answer to a request that is refused; None: it is served."""
        stranger = self._protected_mode.refuse_peer(request.address)
        if stranger is not None:
            return refused(stranger)
        if request.path in PROBES:
            return None
        certificate = None if request.tls is None else peer_certificate(request.tls)
        if self._certificate_required and certificate is None:
            return refused(NO_CERTIFICATE)
        return None if is_loopback(request.address) else self._refuse_caller(request, certificate)

    def _refuse_caller(self, request: PageRequest, certificate: PeerCertificate | None) -> Page | None:
        try:
            self._gate.check_scrape(request.authorization, certificate)
        except Unauthenticated as error:
            return refused(str(error), HTTPStatus.UNAUTHORIZED)
        except PermissionDenied as error:
            return refused(str(error))
        except ProviderAway as error:
            return refused(str(error), HTTPStatus.SERVICE_UNAVAILABLE)
        return None
