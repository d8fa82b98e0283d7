"""Permissions, what they apply to, and roles: named sets of grants.

A grant is one permission on one kind of resource whose name matches a pattern. As text: `enqueue=orders.**`,
`configure=throttle:provider.*`, `audit=server`. Without a kind, the pattern is one of queues. What no grant allows is
not allowed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from fila.auth.patterns import EVERY, check_pattern, matches

DEAD_LETTERS = ".dlq"


class Permission(StrEnum):
    """What one may do."""

    ENQUEUE = "enqueue"
    CONSUME = "consume"
    """Receive, settle and claim messages."""
    BROWSE = "browse"
    """Look: messages without taking them, statistics, values of the runtime configuration."""
    MANAGE = "manage"
    """Create, change, pause and delete queues; redrive and purge messages."""
    CONFIGURE = "configure"
    """Set throttle limits and runtime configuration."""
    AUDIT = "audit"
    """Read the journal and the audit log."""
    ADMIN = "admin"
    """Keys, principals and roles."""


class Kind(StrEnum):
    """What a permission is about."""

    QUEUE = "queue"
    """A dead-letter queue counts as its queue."""
    THROTTLE = "throttle"
    CONFIG = "config"
    SERVER = "server"
    """The server as a whole. It has no name."""


APPLIES: dict[Permission, frozenset[Kind]] = {
    Permission.ENQUEUE: frozenset({Kind.QUEUE}),
    Permission.CONSUME: frozenset({Kind.QUEUE}),
    Permission.BROWSE: frozenset({Kind.QUEUE, Kind.THROTTLE, Kind.CONFIG}),
    Permission.MANAGE: frozenset({Kind.QUEUE}),
    Permission.CONFIGURE: frozenset({Kind.THROTTLE, Kind.CONFIG}),
    Permission.AUDIT: frozenset({Kind.QUEUE, Kind.SERVER}),
    Permission.ADMIN: frozenset({Kind.SERVER}),
}


@dataclass(frozen=True, slots=True)
class Grant:
    """One permission on one kind of resource. Raises ValueError for one that makes no sense."""

    permission: Permission
    kind: Kind
    pattern: str = ""

    def __post_init__(self) -> None:
        if self.kind not in APPLIES[self.permission]:
            kinds = ", ".join(sorted(APPLIES[self.permission]))
            raise ValueError(f"{self.permission} applies to {kinds}, not to {self.kind}")
        if self.kind is Kind.SERVER:
            if self.pattern:
                raise ValueError("the server has no name: grant it without a pattern")
        else:
            check_pattern(self.pattern)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `enqueue=orders.**`, `browse=throttle:provider.*` or `admin=server`. Raises ValueError."""
        permission, equals, resource = text.partition("=")
        if permission not in set(Permission):
            raise ValueError(f'unknown permission "{permission[:40]}": valid ones are {", ".join(Permission)}')
        if not equals:
            raise ValueError(f'"{text[:80]}" names no resource: write {permission}=PATTERN')
        if resource == Kind.SERVER:
            return cls(Permission(permission), Kind.SERVER)
        kind, colon, pattern = resource.partition(":")
        if colon and kind in set(Kind):
            return cls(Permission(permission), Kind(kind), pattern)
        return cls(Permission(permission), Kind.QUEUE, resource)

    def __str__(self) -> str:
        resource = Kind.SERVER if self.kind is Kind.SERVER else f"{self.kind}:{self.pattern}"
        return f"{self.permission}={resource}"


def _everywhere(*permissions: Permission) -> tuple[Grant, ...]:
    return tuple(
        Grant(permission, kind, "" if kind is Kind.SERVER else EVERY)
        for permission in permissions
        for kind in sorted(APPLIES[permission])
    )


BUILT_IN: dict[str, tuple[Grant, ...]] = {
    "admin": _everywhere(*Permission),
    "operator": _everywhere(Permission.BROWSE, Permission.MANAGE, Permission.CONFIGURE, Permission.AUDIT),
    "viewer": (
        Grant(Permission.BROWSE, Kind.QUEUE, EVERY),
        Grant(Permission.BROWSE, Kind.THROTTLE, EVERY),
    ),
    "producer": (Grant(Permission.ENQUEUE, Kind.QUEUE, EVERY),),
    "consumer": (Grant(Permission.CONSUME, Kind.QUEUE, EVERY),),
}
"""Roles that always exist. A viewer sees no values of the runtime configuration: scripts may keep secrets there."""


def queue_of(name: str) -> str:
    """The queue that decides about a queue: dead letters follow theirs."""
    return name.removesuffix(DEAD_LETTERS)


class Rights:
    """What one principal may do: its grants, each with the scope of the role that it came with."""

    __slots__ = ("_granted", "_known")

    MAX_KNOWN = 10_000
    """Answers that are remembered. Names come from clients, so they are not kept without end."""

    def __init__(self, granted: Iterable[tuple[Grant, str]]) -> None:
        self._granted: dict[tuple[Permission, Kind], list[tuple[str, str]]] = {}
        for grant, scope in granted:
            self._granted.setdefault((grant.permission, grant.kind), []).append((grant.pattern, scope))
        self._known: dict[tuple[Permission, Kind, str], bool] = {}

    def allow(self, permission: Permission, kind: Kind, name: str = "") -> bool:
        asked = permission, kind, name
        known = self._known.get(asked)
        if known is None:
            if len(self._known) >= self.MAX_KNOWN:
                self._known.clear()
            known = self._known[asked] = self._decide(permission, kind, name)
        return known

    def allow_some(self, permission: Permission, kind: Kind) -> bool:
        """Whether there is anything on which this is allowed."""
        return (permission, kind) in self._granted

    def allow_every(self, permission: Permission, kind: Kind) -> bool:
        """Whether this is allowed on every name that there is or will be."""
        return any(
            pattern == EVERY and scope in {"", EVERY} for pattern, scope in self._granted.get((permission, kind), ())
        )

    def _decide(self, permission: Permission, kind: Kind, name: str) -> bool:
        granted = self._granted.get((permission, kind), ())
        if kind is Kind.SERVER:
            return any(scope == "" for _, scope in granted)
        name = queue_of(name) if kind is Kind.QUEUE else name
        return any(matches(pattern, name) and (not scope or matches(scope, name)) for pattern, scope in granted)


NO_RIGHTS = Rights(())
