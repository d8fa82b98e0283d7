"""The public keys of an identity provider (JSON Web Key Set, RFC 7517).

Rules of this file:
- A key checks only the algorithms that its type and its own `alg` name and that the server allows. So a token cannot
  choose how it is checked, and a public key is never taken for the secret of an HMAC.
- What is no public key for signatures, or is weak, is left out: symmetric and private keys, RSA below `RSA_BITS`.
- A set without a usable key is refused as a whole: the keys that were there before stay in use.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import jwt

from fila.auth.claims import TokenRefused, read_object

MAX_BYTES: Final = 256 << 10
MAX_KEYS: Final = 100
RSA_BITS: Final = range(2048, 8192 + 1)
"""Below it is weak, above it a check takes milliseconds."""
_MAX_ID: Final = 256

_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}


class KeySetUnusable(ValueError):
    """Why a set of keys is not taken up."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of the provider."""

    id: str
    """Its `kid`; without one, its place in the set"""
    algorithms: frozenset[str]
    key: Any


class KeySet:
    """The keys by id."""

    def __init__(self, keys: Iterable[SigningKey] = ()) -> None:
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def holds(self, key_id: str) -> bool:
        return any(key.id == key_id for key in self._keys)

    def find(self, key_id: str | None, algorithm: str) -> SigningKey | None:
        """The key that checks a token. A token that names none is checked if only one key can check it."""
        fitting = [key for key in self._keys if algorithm in key.algorithms and key_id in {None, key.id}]
        return fitting[0] if fitting and (key_id is not None or len(fitting) == 1) else None


def read_key_set(data: bytes, allowed: Iterable[str]) -> KeySet:
    """Raises KeySetUnusable."""
    if len(data) > MAX_BYTES:
        raise KeySetUnusable(f"it is larger than {MAX_BYTES} bytes")
    try:
        listed = read_object(data).get("keys")
    except TokenRefused as cause:
        raise KeySetUnusable("it is no JSON object, or a name is in it twice") from cause
    if not isinstance(listed, list) or len(listed) > MAX_KEYS:
        raise KeySetUnusable(f"it has no list `keys` of at most {MAX_KEYS}")
    found = [_read_key(each, str(number), frozenset(allowed)) for number, each in enumerate(listed)]
    keys = [key for key in found if key is not None]
    if not keys:
        raise KeySetUnusable("it has no public key for an algorithm that jwt.algorithms allows")
    return KeySet(keys)


def _read_key(data: Any, place: str, allowed: frozenset[str]) -> SigningKey | None:
    """None for one that cannot be used."""
    if not isinstance(data, dict) or "d" in data or data.get("use", "sig") != "sig":
        return None
    algorithms = _algorithms(data) & allowed
    key_id = data.get("kid", place)
    if not algorithms or not isinstance(key_id, str) or len(key_id) > _MAX_ID or not key_id.isprintable():
        return None
    try:
        key = jwt.PyJWK(data, min(algorithms)).key
    except Exception:  # noqa: BLE001 - whatever is wrong with it: it is one key less
        return None
    if data["kty"] == "RSA" and key.key_size not in RSA_BITS:
        return None
    return SigningKey(key_id, algorithms, key)


def _algorithms(data: dict[str, Any]) -> frozenset[str]:
    """Those that the type of a key allows, and its own `alg` if it has one."""
    kind, curve = data.get("kty"), data.get("crv")
    if kind == "RSA":
        fitting = frozenset(_RSA)
    elif (kind == "EC" and curve in {"P-256", "P-384", "P-521"}) or (kind == "OKP" and curve == "Ed25519"):
        fitting = frozenset({_CURVES[curve]})
    else:
        return frozenset()
    return fitting & {data["alg"]} if isinstance(data.get("alg"), str) else fitting
