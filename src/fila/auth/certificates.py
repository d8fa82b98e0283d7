"""Rules that map client certificates to principals: the first that matches a name of a certificate says who it is.

| field | the name in the certificate | parts are separated by |
|---|---|---|
| `dn` | the whole subject, as RFC 4514 writes it: `CN=billing,OU=payments,O=Acme` | `,` |
| `cn` | a common name of the subject | nothing: it is one part |
| `dns` | a DNS name among the subject alternative names; case does not count | `.` |
| `uri` | a URI among them, such as a SPIFFE id | `/` |
| `email` | an e-mail address among them | `@` |

Patterns: `*` matches any characters within one part, `**` as the whole last part matches one or more parts. Every other
character matches itself. Matching takes time in proportion to the lengths of pattern and name, whatever they are.

A certificate with more than `MAX_NAMES` names, or with a name that is too long or not printable, is nobody: to leave
out some of its names could pass by the rule that is meant for it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from fila.auth.patterns import fits

FIELDS: Final = ("dn", "cn", "dns", "uri", "email")
MAX_NAMES: Final = 32
MAX_NAME: Final = 512

_SEPARATORS: Final = {"dns": ".", "uri": "/", "email": "@"}
_ALL_THAT_FOLLOWS: Final = "**"
_RELATIVE_NAME: Final = re.compile(r"(?:[^,\\]|\\.)+", re.DOTALL)
"""One part of a distinguished name: a comma behind a backslash belongs to it"""


@dataclass(frozen=True, slots=True)
class CertificateRule:
    """Certificates with a name that matches are the principal's."""

    id: str
    field: str
    pattern: str
    principal: str
    order: int
    """The lowest is tried first"""
    created_at: int

    def matches(self, names: Iterable[tuple[str, str]]) -> bool:
        """Whether one of these names, each with its field, matches."""
        return any(field == self.field and _match(field, self.pattern, name) for field, name in names)


def check_rule(rule: CertificateRule) -> None:
    """Raises ValueError with what is wrong with it."""
    if rule.field not in FIELDS:
        raise ValueError(f'unknown field "{rule.field[:40]}" of a certificate: valid ones are {", ".join(FIELDS)}')
    if not 0 < len(rule.pattern) <= MAX_NAME or not rule.pattern.isprintable():
        raise ValueError(f"a pattern of a certificate rule has 1 to {MAX_NAME} printable characters")
    *before, last = _parts(rule.field, rule.pattern)
    if any(_ALL_THAT_FOLLOWS in part for part in before) or (
        _ALL_THAT_FOLLOWS in last and not (before and last == _ALL_THAT_FOLLOWS)
    ):
        raise ValueError(f'"{rule.pattern}": ** must be the whole last part, behind another part')


def first_match(rules: Iterable[CertificateRule], names: tuple[tuple[str, str], ...]) -> CertificateRule | None:
    """The rule for a certificate with these names. The rules are in their order."""
    if len(names) > MAX_NAMES or not all(len(name) <= MAX_NAME and name.isprintable() for _, name in names):
        return None
    return next((rule for rule in rules if rule.matches(names)), None)


def _match(field: str, pattern: str, name: str) -> bool:
    wanted, found = _parts(field, pattern), _parts(field, name)
    if wanted[-1] == _ALL_THAT_FOLLOWS:
        wanted = wanted[:-1]
        if len(found) <= len(wanted):
            return False
        found = found[: len(wanted)]
    return len(wanted) == len(found) and all(map(fits, wanted, found))


@lru_cache(maxsize=4096)
def _parts(field: str, text: str) -> tuple[str, ...]:
    """Remembered: a certificate is compared with all rules, each rule with all certificates."""
    if field == "dn":
        return tuple(_relative_name(part) for part in _RELATIVE_NAME.findall(text)) or ("",)
    if field == "dns":
        text = text.lower()
    separator = _SEPARATORS.get(field)
    return (text,) if separator is None else tuple(text.split(separator))


def _relative_name(part: str) -> str:
    """`CN=billing`: case does not count before the equals sign, nor do spaces that a person put behind a comma."""
    attribute, equals, value = part.lstrip(" ").partition("=")
    return f"{attribute.upper()}{equals}{value}"
