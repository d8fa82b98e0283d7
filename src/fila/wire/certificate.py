"""Who a peer says it is, as its certificate has it. Only certificates that were verified come this far."""

import hashlib
import re
import ssl
from dataclasses import dataclass
from typing import Any, Final

#: How RFC 4514 and most programs write the names of attributes. Others are written as OpenSSL names them.
_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_SPECIAL: Final = re.compile(r'[,+"\\<>;=]|^[ #]| $')


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """The verified certificate of a peer. Names are as they stand in it, in its order."""

    #: Such as (("organizationName", "Acme"), ("commonName", "billing")).
    subject: tuple[tuple[str, str], ...]
    #: Such as (("DNS", "billing.example"), ("URI", "spiffe://example/billing")).
    subject_alt_names: tuple[tuple[str, str], ...]
    issuer: tuple[tuple[str, str], ...]
    #: Hexadecimal.
    serial_number: str
    #: Seconds since 1970.
    not_after: float
    #: SHA-256 of the certificate, hexadecimal.
    fingerprint: str

    @property
    def common_name(self) -> str | None:
        return next((value for name, value in self.subject if name == "commonName"), None)

    @property
    def distinguished_name(self) -> str:
        """The subject as RFC 4514 writes it, the most specific part first: `CN=billing,OU=payments,O=Acme`.

        Values of one part (`CN=a+UID=b`) are written as parts of their own.
        """
        return ",".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in reversed(self.subject))

    def alt_names(self, kind: str) -> tuple[str, ...]:
        """The subject alternative names of a kind: `DNS`, `URI`, `email` or `IP Address`."""
        return tuple(value for name, value in self.subject_alt_names if name == kind)


def peer_certificate(connection: ssl.SSLObject) -> PeerCertificate | None:
    """The certificate that the peer has shown and that was verified; None: there is none."""
    found: Any = connection.getpeercert()
    der = connection.getpeercert(binary_form=True)
    if not found or der is None:
        return None
    return PeerCertificate(
        _names(found.get("subject", ())),
        tuple((str(kind), str(value)) for kind, value in found.get("subjectAltName", ())),
        _names(found.get("issuer", ())),
        str(found["serialNumber"]),
        float(ssl.cert_time_to_seconds(found["notAfter"])),
        hashlib.sha256(der).hexdigest(),
    )


def _names(relative: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for parts in relative for name, value in parts)


def _escaped(value: str) -> str:
    """So that no value can look like the end of its part."""
    return _SPECIAL.sub(r"\\\g<0>", value)
