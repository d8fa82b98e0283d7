"""API keys in the store. A row is never removed: once there was a key, requests need one."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace

from sqlalchemy import insert, or_, select, update

from fila.auth.keys import read_token
from fila.reconcile.access.keys import ApiKey, is_secret_of, new_key
from fila.reconcile.access.rights import Role
from fila.reconcile.store.database import Database, changed
from fila.reconcile.store.engine import StoreError
from fila.reconcile.store.tables import ApiKeyRow

USE_NOTED_EVERY_MS = 60_000
"""The last use of a key is written once a minute: it is for people who look for keys that nobody uses."""


class KeyNotFound(Exception):
    """There is no active key of that id."""


class Keys:
    """Creates, rotates, revokes and checks keys."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._exist = False

    def exist(self) -> bool:
        """Whether there is or was one."""
        if not self._exist:
            with self._database.reading() as session:
                self._exist = session.scalar(select(ApiKeyRow.id).limit(1)) is not None
        return self._exist

    def create(
        self, role: Role, affiliate_id: str | None, now_ms: int, expires_at_ms: int | None = None
    ) -> tuple[ApiKey, str]:
        """A new key, and its text, which is kept nowhere. Raises ValueError: affiliates' keys name one, others none."""
        if (role is Role.AFFILIATE) != (affiliate_id is not None):
            raise ValueError("a key of the role affiliate names an affiliate, and no other key does")
        key, token = new_key(role, affiliate_id, now_ms, expires_at_ms)
        with self._database.writing() as session:
            session.execute(insert(ApiKeyRow).values(asdict(key)))
        return key, token

    def rotate(self, key_id: str, now_ms: int, *, overlap_ms: int, ttl_ms: int | None = None) -> tuple[ApiKey, str]:
        """A new key with the same rights. The old one is good for the overlap, and no longer than before."""
        with self._database.writing() as session:
            row = session.get(ApiKeyRow, key_id, with_for_update=True)
            if row is None or _key(row).state(now_ms) != "active":
                raise KeyNotFound(f'key "{key_id}" does not exist, has expired or is revoked')
            expires_at_ms = None if ttl_ms is None else now_ms + ttl_ms
            key, token = new_key(Role(row.role), row.affiliate_id, now_ms, expires_at_ms)
            row.expires_at_ms = min(now_ms + overlap_ms, row.expires_at_ms or now_ms + overlap_ms)
            session.execute(insert(ApiKeyRow).values(asdict(key)))
        return key, token

    def revoke(self, key_id: str, now_ms: int) -> None:
        """The next request with it is refused. Raises KeyNotFound."""
        own = update(ApiKeyRow).where(ApiKeyRow.id == key_id, ApiKeyRow.revoked_at_ms.is_(None))
        with self._database.writing() as session:
            if not changed(session.execute(own.values(revoked_at_ms=now_ms))):
                raise KeyNotFound(f'key "{key_id}" does not exist or is revoked')

    def all(self) -> Sequence[ApiKey]:
        """By time of creation."""
        query = select(ApiKeyRow).order_by(ApiKeyRow.created_at_ms, ApiKeyRow.id)
        with self._database.reading() as session:
            return [_key(row) for row in session.scalars(query)]

    def check(self, token: str, now_ms: int) -> ApiKey | None:
        """The active key of this text; None if it is none."""
        parts = read_token(token)
        if parts is None:
            return None
        key_id, secret = parts
        with self._database.reading() as session:
            row = session.get(ApiKeyRow, key_id)
        key = None if row is None else _key(row)
        if not is_secret_of(key, secret) or key is None or key.state(now_ms) != "active":
            return None
        return self._used(key, now_ms)

    def _used(self, key: ApiKey, now_ms: int) -> ApiKey:
        long_ago = now_ms - USE_NOTED_EVERY_MS
        if key.last_used_at_ms is not None and key.last_used_at_ms > long_ago:
            return key
        noted = ApiKeyRow.last_used_at_ms
        due = update(ApiKeyRow).where(ApiKeyRow.id == key.id, or_(noted.is_(None), noted <= long_ago))
        with suppress(StoreError), self._database.writing() as session:  # a key is good even if that cannot be written
            session.execute(due.values(last_used_at_ms=now_ms))
        return replace(key, last_used_at_ms=now_ms)


def _key(row: ApiKeyRow) -> ApiKey:
    fields = {name: getattr(row, name) for name in ApiKey.__dataclass_fields__}
    return ApiKey(**fields | {"role": Role(row.role)})
