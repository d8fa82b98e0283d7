"""What is kept of roles, principals, keys, their use and certificate rules, and each of it as text for the store."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from fila.auth.certificates import CertificateRule
from fila.auth.keys import Key
from fila.auth.patterns import check_pattern
from fila.auth.rights import Grant

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:/=, -]{0,126}")


@dataclass(frozen=True, slots=True)
class Role:
    """A named set of grants."""

    name: str
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A role that a principal has: `producer`, or `producer:orders.**` where it applies to these names alone."""

    role: str
    scope: str = ""

    @classmethod
    def parse(cls, text: str) -> "Assignment":
        """Raises ValueError."""
        role, colon, scope = text.partition(":")
        if colon:
            check_pattern(scope)
        return cls(role, scope)

    def __str__(self) -> str:
        return f"{self.role}:{self.scope}" if self.scope else self.role


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who calls: a service, a team, a person. Keys belong to it; rights and limits are its own."""

    name: str
    roles: tuple[Assignment, ...]
    created_at: int
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LastUse:
    """When a key was used. Written now and again, not at each call."""

    key: str
    at: int


Record = Role | Principal | Key | LastUse | CertificateRule

KINDS: Final[dict[str, type[Record]]] = {
    "role": Role,
    "principal": Principal,
    "key": Key,
    "use": LastUse,
    "certificate": CertificateRule,
}
_KIND_OF: Final = {kind: name for name, kind in KINDS.items()}


def check_name(what: str, name: str) -> None:
    """Raises ValueError for a name that no role or principal may have."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{what} must begin with a letter or digit and have at most 127 letters, digits and ._@:/=,-")


def kind_of(record: type[Record]) -> str:
    return _KIND_OF[record]


def name_of(record: Record) -> str:
    match record:
        case Key() | CertificateRule():
            return record.id
        case LastUse():
            return record.key
        case _:
            return record.name


def write(record: Record) -> str:
    match record:
        case Role():
            fields: dict[str, Any] = {"grants": [str(grant) for grant in record.grants]}
        case Principal():
            fields = {"roles": [str(role) for role in record.roles], "created_at": record.created_at}
            fields["limits"] = dict(record.limits)
        case Key() | CertificateRule():
            fields = asdict(record)
            del fields["id"]
        case LastUse():
            fields = {"at": record.at}
    return json.dumps(fields, separators=(",", ":"))


def read(kind: str, name: str, text: str) -> Record:
    """Raises ValueError for what cannot be read."""
    try:
        fields = json.loads(text)
        match kind:
            case "role":
                return Role(name, tuple(map(Grant.parse, fields["grants"])))
            case "principal":
                roles = tuple(map(Assignment.parse, fields["roles"]))
                return Principal(name, roles, fields["created_at"], fields["limits"])
            case "key":
                return Key(name, **fields)
            case "certificate":
                return CertificateRule(name, **fields)
            case "use":
                return LastUse(name, fields["at"])
    except (KeyError, TypeError) as cause:
        raise ValueError("an access record cannot be read") from cause
    raise ValueError("an access record is of an unknown kind")
