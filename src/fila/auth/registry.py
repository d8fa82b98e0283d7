"""All roles, principals, keys and certificate rules, and who an API key or a certificate belongs to.

Rules:
- While there is no key and no identity provider, everybody may do everything: whoever reaches the server is trusted,
  and the server is reached from its own machine only, unless it was told otherwise.
- From the first key on, or with an identity provider, nothing is allowed to a caller that was not recognised.
- The last key that can administer cannot be taken away: nobody could make another. Certificate rules need one too, so
  that they never let somebody in while others are let in without being recognised.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fila.auth.certificates import CertificateRule, check_rule, first_match
from fila.auth.keys import Key, is_secret_of, read_token
from fila.auth.records import Assignment, LastUse, Principal, Record, Role, check_name, name_of
from fila.auth.rights import BUILT_IN, NO_RIGHTS, Grant, Kind, Permission, Rights

MAX_RECORDS = 10_000
"""Of each kind but certificate rules."""

MAX_RULES = 1_000
"""Of certificates: a new certificate is compared with all of them."""

MAX_RIGHTS = 1_000
"""Of callers, remembered. Tokens bring names that are not in the store, and each remembers what was asked of it."""


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
        self.certificates: dict[str, CertificateRule] = {}
        self.trusts_provider = False
        """Whether tokens of an identity provider are accepted"""
        self.on_change: Callable[[], None] = _nothing
        self._rights: dict[tuple[str, tuple[Assignment, ...]], Rights] = {}

    @property
    def enforced(self) -> bool:
        """Whether rights are asked for: there is a key, or an identity provider."""
        return bool(self.keys) or self.trusts_provider

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

    def holds(self, key_id: str, now: int) -> bool:
        """Whether a key that was accepted before still is."""
        current = self.keys.get(key_id)
        return current is not None and not current.ended(now)

    def next_expiry(self, now: int) -> int | None:
        """When the next key expires."""
        return min((key.expires_at for key in self.keys.values() if key.expires_at > now), default=None)

    def rule_of(self, names: tuple[tuple[str, str], ...]) -> CertificateRule | None:
        """The rule for a verified certificate with these names, each with its field."""
        return first_match(self.certificate_rules(), names)

    def certificate_rules(self) -> list[CertificateRule]:
        """In the order in which they are tried."""
        return sorted(self.certificates.values(), key=lambda rule: (rule.order, rule.id))

    # What it may do.

    def rights(self, principal: str, roles: tuple[Assignment, ...] = ()) -> Rights:
        """Those of a principal, and those of roles that its token brings."""
        asked = principal, roles
        rights = self._rights.get(asked)
        if rights is None:
            known = self.principals.get(principal)
            assigned = roles if known is None else (*known.roles, *roles)
            rights = Rights(self._granted(assigned)) if assigned else NO_RIGHTS
            if len(self._rights) >= MAX_RIGHTS:
                self._rights.clear()
            self._rights[asked] = rights
        return rights

    def grants(self, role: str) -> tuple[Grant, ...]:
        """Those of a role; none of one that does not exist."""
        if role in BUILT_IN:
            return BUILT_IN[role]
        return self.roles[role].grants if role in self.roles else ()

    def _granted(self, roles: Iterable[Assignment]) -> Iterable[tuple[Grant, str]]:
        for role in roles:
            for grant in self.grants(role.role):
                yield grant, role.scope

    # Changes.

    def check(self, changes: Iterable[Change], now: int) -> None:
        """Raises ValueError for a change that makes no sense, PermissionError for one that would lock everybody out."""
        after = Registry()
        after.roles, after.principals = dict(self.roles), dict(self.principals)
        after.keys, after.last_use = dict(self.keys), dict(self.last_use)
        after.certificates = dict(self.certificates)
        for change in changes:
            after._change(change)
        for known in (after.roles, after.principals, after.keys):
            if len(known) > MAX_RECORDS:
                raise ValueError(f"there are {MAX_RECORDS} records of a kind already, which is the limit")
        if len(after.certificates) > MAX_RULES:
            raise ValueError(f"there are {MAX_RULES} certificate rules already, which is the limit")
        after._check_names()
        if self.keys or after.keys or after.certificates:
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
            CertificateRule: self.certificates,  # type: ignore[dict-item]
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
        for rule in self.certificates.values():
            check_rule(rule)
            if rule.principal not in self.principals:
                raise ValueError(f'principal "{rule.principal[:80]}" of rule "{rule.id}" does not exist')

    def _check_administered(self, now: int) -> None:
        """Raises PermissionError when no key may make others."""
        if not any(
            not key.ended(now) and self.rights(key.principal).allow(Permission.ADMIN, Kind.SERVER)
            for key in self.keys.values()
        ):
            raise PermissionError("this would leave no key that may administer: create an admin key first")


def _nothing() -> None:
    pass
