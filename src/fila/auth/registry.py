"""All roles, principals and keys, and who a token belongs to.

Rules:
- While there is no key, everybody may do everything: whoever reaches the server is trusted, and the server is reached
  from its own machine only, unless it was told otherwise.
- From the first key on, nothing is allowed without one.
- The last key that can administer cannot be taken away: nobody could make another.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fila.auth.keys import Key, is_secret_of, read_token
from fila.auth.records import LastUse, Principal, Record, Role, check_name, name_of
from fila.auth.rights import BUILT_IN, NO_RIGHTS, Grant, Kind, Permission, Rights

MAX_RECORDS = 10_000
"""Of each kind."""


@dataclass(frozen=True, slots=True)
class Put:
    """A record that is new or takes the place of another."""

    record: Record


@dataclass(frozen=True, slots=True)
class Remove:
    kind: type[Record]
    name: str


Change = Put | Remove


class Registry:
    """Who may do what. Changed by `apply`, after `check`; tells whoever asked for it (`on_change`)."""

    def __init__(self) -> None:
        self.roles: dict[str, Role] = {}
        self.principals: dict[str, Principal] = {}
        self.keys: dict[str, Key] = {}
        self.last_use: dict[str, LastUse] = {}
        self.on_change: Callable[[], None] = _nothing
        self._rights: dict[str, Rights] = {}

    @property
    def enforced(self) -> bool:
        """Whether rights are asked for: there is a key."""
        return bool(self.keys)

    # Who it is.

    def authenticate(self, token: str, now: int) -> Key | None:
        """The key that a token is, if it is one and has not expired."""
        given = read_token(token)
        if given is None:
            return None
        key = self.keys.get(given[0])
        if not is_secret_of(key, given[1]) or key is None or key.ended(now):
            return None
        return key

    def holds(self, key: Key, now: int) -> bool:
        """Whether a key that was accepted before still is."""
        current = self.keys.get(key.id)
        return current is not None and not current.ended(now)

    def next_expiry(self, now: int) -> int | None:
        """When the next key expires."""
        return min((key.expires_at for key in self.keys.values() if key.expires_at > now), default=None)

    # What it may do.

    def rights(self, principal: str) -> Rights:
        rights = self._rights.get(principal)
        if rights is None:
            known = self.principals.get(principal)
            rights = NO_RIGHTS if known is None else Rights(self._granted(known))
            self._rights[principal] = rights
        return rights

    def grants(self, role: str) -> tuple[Grant, ...]:
        """Those of a role; none of one that does not exist."""
        if role in BUILT_IN:
            return BUILT_IN[role]
        return self.roles[role].grants if role in self.roles else ()

    def _granted(self, principal: Principal) -> Iterable[tuple[Grant, str]]:
        for role in principal.roles:
            for grant in self.grants(role.role):
                yield grant, role.scope

    # Changes.

    def check(self, changes: Iterable[Change], now: int) -> None:
        """Raises ValueError for a change that makes no sense, PermissionError for one that would lock everybody out."""
        after = Registry()
        after.roles, after.principals = dict(self.roles), dict(self.principals)
        after.keys, after.last_use = dict(self.keys), dict(self.last_use)
        for change in changes:
            after._change(change)
        for known in (after.roles, after.principals, after.keys):
            if len(known) > MAX_RECORDS:
                raise ValueError(f"there are {MAX_RECORDS} records of a kind already, which is the limit")
        after._check_names()
        if self.keys or after.keys:
            after._check_administered(now)

    def apply(self, changes: Iterable[Change]) -> None:
        """Go by these from now on."""
        used_only = True
        for change in changes:
            self._change(change)
            used_only = used_only and isinstance(change, Put) and isinstance(change.record, LastUse)
        if not used_only:
            self._rights.clear()
            self.on_change()

    def _change(self, change: Change) -> None:
        kind = type(change.record) if isinstance(change, Put) else change.kind
        tables: dict[type[Record], dict[str, Record]] = {
            Role: self.roles,  # type: ignore[dict-item]
            Principal: self.principals,  # type: ignore[dict-item]
            Key: self.keys,  # type: ignore[dict-item]
            LastUse: self.last_use,  # type: ignore[dict-item]
        }
        if isinstance(change, Put):
            tables[kind][name_of(change.record)] = change.record
        else:
            tables[kind].pop(change.name, None)

    def _check_names(self) -> None:
        for role in self.roles.values():
            check_name("a role's name", role.name)
            if ":" in role.name or role.name in BUILT_IN:
                raise ValueError(f'"{role.name}" cannot be the name of a role: it is built in, or contains a colon')
        for principal in self.principals.values():
            check_name("a principal's name", principal.name)
            for assigned in principal.roles:
                if assigned.role not in BUILT_IN and assigned.role not in self.roles:
                    raise ValueError(f'role "{assigned.role[:80]}" of principal "{principal.name}" does not exist')
        for key in self.keys.values():
            if key.principal not in self.principals:
                raise ValueError(f'principal "{key.principal[:80]}" of key "{key.id}" does not exist')

    def _check_administered(self, now: int) -> None:
        """Raises PermissionError when no key may make others."""
        if not any(
            not key.ended(now) and self.rights(key.principal).allow(Permission.ADMIN, Kind.SERVER)
            for key in self.keys.values()
        ):
            raise PermissionError("this would leave no key that may administer: create another admin key first")


def _nothing() -> None:
    pass
