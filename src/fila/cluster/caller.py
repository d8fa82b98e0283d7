"""Whose call it is that one worker makes of another.

Rules of this file:
- The worker that has the queue recognises the caller and checks its rights, as it does for its own clients: the key or
  token goes along as it came. What else it goes by, the address and the certificate of the connection, is told in
  metadata of our own.
- **Only the sockets of the workers take that metadata at its word** (`PassedCall`). They are in a folder that nobody
  but the user of the server may enter. On every other port it means nothing, and it is never passed on.
"""

import json
from dataclasses import asdict
from typing import Any, Final

from fila.wire.certificate import PeerCertificate
from fila.wire.events import StreamEvent, StreamLost, StreamReset
from fila.wire.frames import CONNECT_ERROR
from fila.wire.server import Server
from fila.wire.server_call import ServerCall
from fila.wire.status import Metadata

_PEER: Final = "fila-peer"
_CERTIFICATE: Final = "fila-certificate-bin"
_PASSED: Final = ("authorization", "traceparent")
"""What the handlers of a broker look at"""


def write_caller(call: ServerCall) -> Metadata:
    """The metadata with which a call is passed on."""
    metadata: list[tuple[str, str | bytes]] = [
        (name, value) for name in _PASSED for value in call.metadata(name.encode())
    ]
    metadata.append((_PEER, call.peer()))
    certificate = call.peer_certificate
    if certificate is not None:
        metadata.append((_CERTIFICATE, json.dumps(asdict(certificate)).encode()))
    return metadata


class PassedCall(ServerCall):
    """A call that another worker makes for its caller."""

    __slots__ = ()

    def peer(self) -> str:
        return next(iter(self.metadata(_PEER.encode())), "")

    @property
    def peer_address(self) -> str:
        return self.peer().rpartition(":")[0]

    @property
    def peer_certificate(self) -> PeerCertificate | None:
        written = next((value for name, value in self.invocation_metadata() if name == _CERTIFICATE), None)
        return _read_certificate(json.loads(written)) if isinstance(written, bytes) else None

    def handle(self, event: StreamEvent) -> None:
        """The connection of the caller was lost if the other worker says so (`ClientCall.lose`)."""
        if isinstance(event, StreamReset) and event.code == CONNECT_ERROR:
            event = StreamLost(event.stream, "the connection of the caller was lost")
        super().handle(event)


def _read_certificate(fields: dict[str, Any]) -> PeerCertificate:
    for name in ("subject", "subject_alt_names", "issuer"):
        fields[name] = tuple((str(kind), str(value)) for kind, value in fields[name])
    return PeerCertificate(**fields)


class PassedServer(Server):
    """Serves the other workers."""

    call_type = PassedCall
