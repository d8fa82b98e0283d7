"""Who a caller is, by what it shows: an API key or a token in its metadata, or else the certificate of its connection.

1. What is in the `authorization` metadata decides alone. A key or token that is not valid is refused, whatever
   certificate there is: who sends one means to be recognised by it.
2. Without it, the first certificate rule that matches says who it is.
3. A caller that shows neither, or a certificate that no rule matches, is nobody.

What is recognised once is asked for again when rights change and when it expires (`objection`).
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from fila.auth.callers import Caller, How
from fila.auth.keys import PREFIX
from fila.auth.registry import Registry
from fila.core.errors import KeyEnded, Unauthenticated
from fila.wire.certificate import PeerCertificate

_BEARER: Final = "bearer "
_NS: Final = 1_000_000_000
MAX_CERTIFICATES: Final = 10_000
"""Whose callers are remembered."""

NAMES_SHOWN: Final = 4

Names = tuple[tuple[str, str], ...]


class Tokens(Protocol):
    """Tokens of an identity provider, as `tokens/verifier.py` checks them."""

    def recognise(self, token: str, now: int) -> Caller:
        """Raises Unauthenticated; UnknownSigner where `renewed` may help; ProviderAway."""

    def holds(self, caller: Caller, now: int) -> bool: ...

    def watch(self, on_change: Callable[[], None]) -> None: ...

    def look_after(self) -> None: ...

    def renew(self) -> None: ...

    async def renewed(self) -> bool: ...


class Recognition:
    """Looks callers up. Time is that of `now`, in nanoseconds since the epoch."""

    def __init__(self, registry: Registry, now: Callable[[], int], tokens: Tokens | None = None) -> None:
        self._registry = registry
        self._now = now
        self._tokens = tokens
        self._certificates: dict[str, Caller | None] = {}
        """By fingerprint, since rights were changed"""
        self.used: dict[str, int] = {}
        """When API keys were used, as far as it is not written yet"""

    def recognise(self, authorization: Sequence[str | bytes], certificate: PeerCertificate | None) -> Caller:
        """Raises Unauthenticated; UnknownSigner and ProviderAway for tokens."""
        if authorization:
            return self._by_text(_bearer(authorization))
        if certificate is None:
            raise Unauthenticated(
                "this server needs an API key: send it as `authorization: Bearer`, or set FILA_API_KEY for the SDK and "
                "the command line"
            )
        caller = self._by_certificate(certificate)
        if caller is None:
            raise Unauthenticated(
                f"no rule knows the client certificate ({_listed(names_of(certificate))}): add one with `fila auth "
                "certificate add`, or send an API key"
            )
        if self._now() >= caller.expires_at:
            raise KeyEnded("the client certificate has expired: connect anew with another")
        return caller

    def objection(self, caller: Caller, certificate: PeerCertificate | None) -> KeyEnded | None:
        """Why a caller is not recognised any more; None: it is."""
        now = self._now()
        if caller.how is How.KEY:
            if not self._registry.holds(caller.credential, now):
                return KeyEnded(f"the API key {caller.credential} was revoked or has expired")
        elif caller.how is How.TOKEN:
            if self._tokens is None or not self._tokens.holds(caller, now):
                return KeyEnded("the token has expired, or the key that has signed it was withdrawn")
        elif certificate is None or now >= caller.expires_at:
            return KeyEnded("the client certificate has expired: connect anew with another")
        elif self._by_certificate(certificate) != caller:
            return KeyEnded(f"the certificate rule {caller.credential} was removed, or another comes before it")
        return None

    def forget(self) -> None:
        """Rules may have changed."""
        self._certificates.clear()

    def _by_text(self, text: str) -> Caller:
        now = self._now()
        if self._tokens is not None and text.count(".") == 2 and not text.startswith(PREFIX):
            return self._tokens.recognise(text, now)
        key = self._registry.authenticate(text, now)
        if key is None:
            raise Unauthenticated("the API key is not valid: it is unknown, was revoked or has expired")
        self.used[key.id] = now
        return Caller(key.principal, How.KEY, key.id)

    def _by_certificate(self, certificate: PeerCertificate) -> Caller | None:
        known = self._certificates
        if certificate.fingerprint not in known:
            if len(known) >= MAX_CERTIFICATES:
                known.clear()
            known[certificate.fingerprint] = self._compare(certificate)
        return known[certificate.fingerprint]

    def _compare(self, certificate: PeerCertificate) -> Caller | None:
        rule = self._registry.rule_of(names_of(certificate))
        if rule is None:
            return None
        return Caller(rule.principal, How.CERTIFICATE, rule.id, int(certificate.not_after) * _NS)


def names_of(certificate: PeerCertificate) -> Names:
    """The names that rules are compared with, each with its field."""
    names = [("dn", certificate.distinguished_name)] if certificate.subject else []
    names += [("cn", value) for name, value in certificate.subject if name == "commonName"]
    for field, kind in (("dns", "DNS"), ("uri", "URI"), ("email", "email")):
        names += [(field, value) for value in certificate.alt_names(kind)]
    return tuple(names)


def _bearer(authorization: Sequence[str | bytes]) -> str:
    sent = authorization[0]
    if len(authorization) > 1 or not isinstance(sent, str) or not sent.lower().startswith(_BEARER):
        raise Unauthenticated("the authorization metadata must be one key or token: `authorization: Bearer ...`")
    return sent[len(_BEARER) :].strip()


def _listed(names: Names) -> str:
    """For the one whose certificate it is: a few names, so that the rule is easily written."""
    shown = [f"{field} {name[:100]!a}" for field, name in names[:NAMES_SHOWN]]
    return ", ".join(shown) + (", ..." if len(names) > NAMES_SHOWN else "") if shown else "without a name"
