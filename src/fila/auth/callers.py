"""Who calls, and how that is known."""

from dataclasses import dataclass
from enum import StrEnum

from fila.auth.records import Assignment


class How(StrEnum):
    """What a caller has shown."""

    KEY = "key"
    CERTIFICATE = "certificate"
    TOKEN = "token"  # noqa: S105 - a word, no secret


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who was recognised."""

    principal: str
    how: How
    credential: str
    """The id of the API key or of the certificate rule; of a token, the id of the key that has signed it"""
    expires_at: int = 0
    """Nanoseconds since the epoch. 0: never, or of a key: the registry knows"""
    roles: tuple[Assignment, ...] = ()
    """Those that a token brings. What the store has for the principal comes on top"""

    @property
    def shown(self) -> str:
        """The credential, for the record: the id of a key as it is, others with what they are."""
        return self.credential if self.how is How.KEY else f"{self.how}:{self.credential}"
