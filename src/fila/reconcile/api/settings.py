"""Limits of the API. Past each of them the caller gets a clear error."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Self

from fila.reconcile.domain.settings import HOUR_MS, Section, SettingsError, whole


@dataclass(frozen=True, slots=True)
class ApiSettings(Section):
    """What the API accepts, and from when on it says "later"."""

    #: Reports in one request.
    max_batch: int = whole(1_000, 1, 10_000)
    max_body_bytes: int = whole(1_048_576, 1, 1 << 30)
    #: An affiliate may send so many reports a minute on average ...
    affiliate_per_minute: int = whole(600, 1, 1_000_000_000)
    #: ... and so many at once. It also bounds how many of one affiliate fit into a request.
    affiliate_burst: int = whole(300, 1, 1_000_000_000)
    #: So many jobs waiting are a backlog: nobody may send more until it is shorter.
    queue_mark: int = whole(10_000, 1, 1_000_000_000)
    #: A claim may be as old as this when it is sent ...
    max_age_ms: int = whole(7 * 24 * HOUR_MS, 0, 24 * 365 * HOUR_MS)
    #: ... and as new as this after our own clock; it then counts as of now.
    max_skew_ms: int = whole(300_000, 0, HOUR_MS)
    #: If set, every request but that for the health must bring it as a bearer token.
    token: str = field(default="", repr=False)

    def check(self) -> None:
        token: object = self.token
        if not (isinstance(token, str) and token.isascii()):
            raise SettingsError("ApiSettings.token: expected ASCII text")

    @classmethod
    def from_mapping(cls, table: Mapping[str, object]) -> Self:
        """Read the `[api]` section. What is not understood is refused."""
        known = [each.name for each in fields(cls)]
        for key in table:
            if key not in known:
                raise SettingsError(f"unknown key api.{key}: expected one of {', '.join(known)}")
        return cls(**table)  # type: ignore[arg-type] # checked as it is made
