"""Checks tokens: their form, their signature, their claims.

Rules of this file:
- What is too long, or has another form than three parts in base64url, is refused before it is decoded.
- The header of a token chooses a key by its `kid`, and nothing else: `jwk`, `jku`, `x5u` and `x5c` are not looked at,
  and `crit` is refused, for we know no extension.
- A token that was accepted is remembered by its SHA-256 until it ends, so later calls with it cost as much as those
  with an API key. At most `MAX_KNOWN` are remembered, which takes about 5 MB; the oldest goes first. Other keys of the
  provider make all of them be checked again.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import Final

import jwt

from fila.auth.callers import Caller
from fila.auth.claims import TokenPolicy, TokenRefused, read_object
from fila.core.errors import ProviderAway, Unauthenticated, UnknownSigner
from fila.server.tokens.key_set import SigningKey
from fila.server.tokens.key_source import KeySource

MAX_KNOWN: Final = 10_000
_PARTS: Final = re.compile(r"([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class Tokens:
    """The tokens of one identity provider."""

    def __init__(self, policy: TokenPolicy, source: KeySource, max_bytes: int) -> None:
        self._policy = policy
        self._source = source
        self._max_bytes = max_bytes
        self._jws = jwt.PyJWS()
        self._known: dict[bytes, Caller] = {}
        self.look_after, self.renew, self.renewed = source.look_after, source.renew, source.renewed

    def recognise(self, token: str, now: int) -> Caller:
        """Raises Unauthenticated, UnknownSigner or ProviderAway."""
        if len(token) > self._max_bytes:
            raise Unauthenticated(f"the token is longer than {self._max_bytes} bytes, the limit jwt.max_token_bytes")
        digest = hashlib.sha256(token.encode()).digest()
        known = self._known.get(digest)
        if known is not None and now < known.expires_at:
            return known
        try:
            caller = self._check(token, now)
        except TokenRefused as refused:
            raise Unauthenticated(f"the token {refused}") from refused
        self._known.pop(digest, None)
        if len(self._known) >= MAX_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[digest] = caller
        return caller

    def holds(self, caller: Caller, now: int) -> bool:
        """Whether a token that was accepted still is."""
        return now < caller.expires_at and self._source.keys.holds(caller.credential)

    def watch(self, on_change: Callable[[], None]) -> None:
        """Have it called when the provider has other keys."""

        def changed() -> None:
            self._known.clear()
            on_change()

        self._source.on_change = changed

    def _check(self, token: str, now: int) -> Caller:
        parts = _PARTS.fullmatch(token)
        if parts is None:
            raise TokenRefused("is none: three parts in base64url are expected")
        header = read_object(_decoded(parts[1]))
        signer = self._signer(header.get("alg"), header.get("kid"))
        if "crit" in header or "b64" in header:
            raise TokenRefused("needs an extension that is not known here: crit")
        try:
            payload = self._jws.decode(token, signer.key, algorithms=[str(header["alg"])])
        except (jwt.PyJWTError, ValueError, TypeError) as cause:
            raise TokenRefused("has a wrong signature") from cause
        return self._policy.caller(read_object(payload), signer.id, now)

    def _signer(self, algorithm: object, key_id: object) -> SigningKey:
        keys = self._source.keys
        if not len(keys):
            raise ProviderAway("the keys of the identity provider could not be fetched yet: try again")
        if not isinstance(algorithm, str) or not isinstance(key_id, str | None):
            raise TokenRefused("cannot be read")
        signer = keys.find(key_id, algorithm)
        if signer is not None:
            return signer
        if key_id is None or keys.holds(key_id):
            raise TokenRefused("names no key, or an algorithm that its key is not for")
        raise UnknownSigner("the token is signed by a key that the identity provider does not list")


def _decoded(part: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (ValueError, binascii.Error) as cause:
        raise TokenRefused("cannot be read") from cause
