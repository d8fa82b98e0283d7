"""API keys: `fila_<id>_<secret>`.

- The id is readable and no secret: it stands in lists, logs and the audit log.
- The secret has 256 random bits and is shown once. The broker keeps SHA-256 of a salt and the secret. A slow password
  hash would add nothing: there is no dictionary of 256-bit numbers, and a key is checked at every call.
- Secrets are compared in constant time.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "fila_"
MAX_TOKEN: Final = 256
"""No token is longer: what is longer is refused before it is looked at."""

_TOKEN: Final = re.compile(r"fila_([a-z0-9-]{1,48})_([0-9a-f]{64})")
_SUFFIX_LETTERS: Final = "abcdefghijkmnpqrstuvwxyz23456789"
_NOBODYS_HASH: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Key:
    """What the broker keeps of a key. Times are nanoseconds since the epoch."""

    id: str
    principal: str
    salt: str
    hash: str
    created_at: int
    expires_at: int = 0
    """0: never"""

    def ended(self, now: int) -> bool:
        return bool(self.expires_at) and now >= self.expires_at


def new_key(principal: str, now: int, expires_at: int = 0) -> tuple[Key, str]:
    """A new key, and its text, which is known to nobody from now on but the caller."""
    key_id = new_id(principal)
    secret, salt = secrets.token_hex(32), secrets.token_hex(16)
    return Key(key_id, principal, salt, hash_of(salt, secret), now, expires_at), f"{PREFIX}{key_id}_{secret}"


def new_id(principal: str) -> str:
    """A readable id of something that belongs to a principal."""
    readable = re.sub(r"[^a-z0-9]+", "-", principal.lower()).strip("-")[:40] or "key"
    return f"{readable}-{''.join(secrets.choice(_SUFFIX_LETTERS) for _ in range(6))}"


def hash_of(salt: str, secret: str) -> str:
    return hashlib.sha256(f"{salt}{secret}".encode()).hexdigest()


def read_token(text: str) -> tuple[str, str] | None:
    """Id and secret of a key; None for what is no key."""
    if len(text) > MAX_TOKEN:
        return None
    found = _TOKEN.fullmatch(text)
    return None if found is None else (found[1], found[2])


def is_secret_of(key: Key | None, secret: str) -> bool:
    """Whether it is. Takes as long when there is no such key."""
    salt, expected = (key.salt, key.hash) if key is not None else ("", _NOBODYS_HASH)
    return hmac.compare_digest(hash_of(salt, secret), expected) and key is not None
