"""Why there is no TLS connection, in words: which check failed, and on which side."""

import ssl
from typing import Final

TLS_ONLY: Final = "this port accepts TLS connections only"
CLOSED_DURING_HANDSHAKE: Final = "the peer closed the connection during the TLS handshake"

#: Of X509_verify_cert, whatever the role: what is wrong with the peer's certificate.
_VERIFY: Final = {
    9: "is not valid yet",
    10: "has expired",
    18: "is self-signed and not among the trusted ones",
    19: "is not signed by a trusted CA",
    20: "is not signed by a trusted CA",
    21: "is not signed by a trusted CA",
    23: "was revoked",
    26: "is not made for this purpose",
    62: "is for another host name",
    64: "is for another IP address",
}

#: Of OpenSSL's errors: those that a peer's alert or its bytes lead to.
_REASONS: Final = {
    "WRONG_VERSION_NUMBER": "the peer does not speak TLS on this port",
    "HTTP_REQUEST": "the peer does not speak TLS on this port",
    "PACKET_LENGTH_TOO_LONG": "the peer does not speak TLS on this port",
    "RECORD_LAYER_FAILURE": "the peer does not speak TLS on this port",
    "UNSUPPORTED_PROTOCOL": "the two sides have no TLS version in common",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the two sides have no TLS version in common",
    "NO_SHARED_CIPHER": "the two sides have no cipher in common",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the peer refuses the handshake: it may require a client certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server requires a client certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has shown no certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust the CA of our certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer does not accept our certificate",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "the peer does not accept our certificate: it is made for another purpose",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired, says the peer",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "our certificate was revoked, says the peer",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer does not accept our certificate",
    "TLSV1_ALERT_DECRYPT_ERROR": "the peer does not accept our certificate: its key does not match",
}


def explain(error: ssl.SSLError, server_name: str = "") -> str:
    """What is wrong, with OpenSSL's own words in brackets. `server_name` is what a client expects the server to be."""
    if isinstance(error, ssl.SSLCertVerificationError):
        whose = f"the certificate of {server_name!r}" if server_name else "the certificate of the peer"
        return f"{whose} {_VERIFY.get(error.verify_code, 'is not valid')} ({error.verify_message.rstrip('.')})"
    reason = getattr(error, "reason", None) or ""  # one that Python made itself has none
    said = _REASONS.get(reason)
    own_words = reason.lower().replace("_", " ") or str(error)
    return f"{said} ({own_words})" if said else f"the TLS handshake failed ({own_words})"
