"""API keys of the service: as those of the broker, with a role and an affiliate in place of a principal."""

from dataclasses import dataclass

from fila.auth import keys as auth
from fila.reconcile.access.rights import Role


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What the store keeps of a key. Times are milliseconds since 1970."""

    id: str
    role: Role
    #: Whose reports it is for; None for all.
    affiliate_id: str | None
    salt: str
    hash: str
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    #: Written once a minute, not at each request.
    last_used_at_ms: int | None = None

    def state(self, now_ms: int) -> str:
        if self.revoked_at_ms is not None:
            return "revoked"
        return "expired" if self.expires_at_ms is not None and now_ms >= self.expires_at_ms else "active"


def new_key(role: Role, affiliate_id: str | None, now_ms: int, expires_at_ms: int | None = None) -> tuple[ApiKey, str]:
    """A new key, and its text, which is known to nobody from now on but the caller."""
    made, token = auth.new_key(affiliate_id or role, now_ms)
    return ApiKey(made.id, role, affiliate_id, made.salt, made.hash, now_ms, expires_at_ms), token


def is_secret_of(key: ApiKey | None, secret: str) -> bool:
    """Whether it is. Takes as long when there is no such key."""
    kept = None if key is None else auth.Key(key.id, key.role, key.salt, key.hash, key.created_at_ms)
    return auth.is_secret_of(kept, secret)
