"""What each role may do, and what each route needs. A route without a row is not served.

One rule for what belongs to another affiliate: it cannot be seen (404, as if it did not exist), and nothing can be done
in its name (403).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from starlette.routing import compile_path


class Permission(StrEnum):
    #: Needs no key: whoever looks after processes has none.
    NONE = "none"
    DESCRIPTION = "description"
    SUBMIT = "submit"
    REPORTS = "reports"
    #: Alerts, trust and counts: what an affiliate does not learn, not even of itself.
    OVERSIGHT = "oversight"


class Role(StrEnum):
    AFFILIATE = "affiliate"
    VIEWER = "viewer"
    OPERATOR = "operator"


PERMISSIONS: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.AFFILIATE: frozenset({Permission.NONE, Permission.DESCRIPTION, Permission.SUBMIT, Permission.REPORTS}),
    Role.VIEWER: frozenset({Permission.NONE, Permission.DESCRIPTION, Permission.REPORTS, Permission.OVERSIGHT}),
    Role.OPERATOR: frozenset(Permission),
}

ROUTES: Final[Mapping[tuple[str, str], Permission]] = {
    ("POST", "/v1/reports"): Permission.SUBMIT,
    ("POST", "/v1/reports/batch"): Permission.SUBMIT,
    ("GET", "/v1/reports/{report_id}"): Permission.REPORTS,
    ("GET", "/v1/alerts"): Permission.OVERSIGHT,
    ("GET", "/v1/affiliates"): Permission.OVERSIGHT,
    ("GET", "/v1/affiliates/{affiliate_id}"): Permission.OVERSIGHT,
    ("GET", "/v1/status"): Permission.OVERSIGHT,
    ("GET", "/healthz"): Permission.NONE,
    ("GET", "/docs"): Permission.DESCRIPTION,
    ("GET", "/docs/oauth2-redirect"): Permission.DESCRIPTION,
    ("GET", "/redoc"): Permission.DESCRIPTION,
    ("GET", "/openapi.json"): Permission.DESCRIPTION,
}

_PATTERNS: Final = [(method, compile_path(path)[0], needed) for (method, path), needed in ROUTES.items()]


def permission_for(method: str, path: str) -> Permission | None:
    """What a request needs; None if no row of the table is for it."""
    wanted = "GET" if method == "HEAD" else method
    return next((needed for verb, pattern, needed in _PATTERNS if verb == wanted and pattern.match(path)), None)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request."""

    role: Role
    #: Whose reports it may send and see; None for all.
    affiliate_id: str | None = None

    def may(self, permission: Permission) -> bool:
        return permission in PERMISSIONS[self.role]

    def is_for(self, affiliate_id: str) -> bool:
        """Whether it may send and see reports of this affiliate."""
        return self.affiliate_id is None or self.affiliate_id == affiliate_id
