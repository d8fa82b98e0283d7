"""What the claims of a token say: whether it is for us and valid now, whose it is, and which roles it brings.

Only claims whose signature was verified come this far. Rules of this file:
- Nothing is guessed: a claim of another type than RFC 7519 says is refused, and so is a name that is there twice.
- The text of a refusal never contains a value of the token.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from fila.auth.callers import Caller, How
from fila.auth.records import Assignment, check_name

MAX_VALUES: Final = 256
"""Of the audience, and of the claim that lists roles. Providers send at most 200 groups."""

_NS: Final = 1_000_000_000
_LATEST_S: Final = 1 << 40
"""A time after the year 36,000 is a mistake, and would not fit."""


class TokenRefused(ValueError):
    """Why a token is not accepted, in words that follow "the token"."""


@dataclass(frozen=True, slots=True)
class TokenPolicy:
    """Which tokens are accepted and what they bring. Times are nanoseconds."""

    issuer: str
    audience: str
    principal_claim: str = "sub"
    principal_prefix: str = "jwt:"
    roles_claim: str = ""
    roles: Mapping[str, tuple[Assignment, ...]] = field(default_factory=dict)
    leeway: int = 0
    max_age: int = 0
    """0: as old as the token says"""

    def caller(self, claims: Mapping[str, Any], signer: str, now: int) -> Caller:
        """Whose a token is. `signer` is the id of the key that has signed it. Raises TokenRefused."""
        if claims.get("iss") != self.issuer:
            raise TokenRefused("is of another issuer")
        if self.audience not in _texts(claims, "aud"):
            raise TokenRefused("is for another audience")
        ends = self._end_of(claims, now)
        return Caller(self._principal(claims), How.TOKEN, signer, ends, self._roles(claims))

    def _end_of(self, claims: Mapping[str, Any], now: int) -> int:
        expires, issued, begins = _time(claims, "exp"), _time(claims, "iat"), _time(claims, "nbf")
        if expires is None:
            raise TokenRefused("has no end: the claim exp is missing")
        if self.max_age:
            if issued is None:
                raise TokenRefused("has no age: the claim iat is missing, and the server has a limit on the age")
            expires = min(expires, issued + self.max_age)
        if now >= expires + self.leeway:
            raise TokenRefused("has expired")
        if max(begins or 0, issued or 0) > now + self.leeway:
            raise TokenRefused("is not valid yet")
        return expires + self.leeway

    def _principal(self, claims: Mapping[str, Any]) -> str:
        name = _at(claims, self.principal_claim)
        if not isinstance(name, str) or not name:
            raise TokenRefused(f"names nobody: the claim {self.principal_claim} is missing, or no text")
        principal = self.principal_prefix + name
        try:
            check_name("a principal's name", principal)
        except ValueError as cause:
            raise TokenRefused(
                f"names somebody who cannot be a principal: in {self.principal_claim}, {cause}"
            ) from cause
        return principal

    def _roles(self, claims: Mapping[str, Any]) -> tuple[Assignment, ...]:
        if not self.roles_claim:
            return ()
        given = set(_texts(claims, self.roles_claim, split=True))
        found = {role: None for value, roles in self.roles.items() if value in given for role in roles}
        return tuple(found)


def read_object(data: bytes) -> dict[str, Any]:
    """A JSON object of a token. Raises TokenRefused."""
    try:
        found = json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as cause:
        raise TokenRefused("cannot be read") from cause
    if not isinstance(found, dict):
        raise TokenRefused("cannot be read")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_constant(_: str) -> NoReturn:
    raise ValueError("no number of JSON")


def _at(claims: Mapping[str, Any], path: str) -> Any:
    """A claim of this name, or else at this path: `realm_access.roles`. None: there is none."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for name in path.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def _texts(claims: Mapping[str, Any], path: str, *, split: bool = False) -> list[str]:
    """The values of a claim that is a text or a list of texts; with `split`, a text is a list with spaces (`scope`)."""
    found = _at(claims, path)
    if found is None:
        return []
    if isinstance(found, str):
        found = found.split() if split else [found]
    if not isinstance(found, list) or len(found) > MAX_VALUES or not all(isinstance(each, str) for each in found):
        raise TokenRefused(f"cannot be used: the claim {path} is no list of at most {MAX_VALUES} texts")
    return found


def _time(claims: Mapping[str, Any], name: str) -> int | None:
    found = claims.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < _LATEST_S:
        raise TokenRefused(f"cannot be used: the claim {name} is no time")
    return math.floor(found * _NS) if isinstance(found, float) else found * _NS
