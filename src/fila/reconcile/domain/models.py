"""The nouns of reconciliation. An object that exists is valid: counts and names are checked where they are made."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from fila.reconcile.domain.settings import MAX_COUNT

METRICS = ("views", "clicks", "conversions")
"""What a report claims and a platform is expected to tell, in this order everywhere."""
MAX_NAME = 128
"""Characters in the name of an affiliate, a campaign, a platform or a post."""


class InvalidReport(ValueError):
    """A value that no report may have."""


class Status(StrEnum):
    """How a report compares with its platform."""

    MATCHED = "MATCHED"
    DISCREPANCY_LOW = "DISCREPANCY_LOW"
    DISCREPANCY_MEDIUM = "DISCREPANCY_MEDIUM"
    DISCREPANCY_HIGH = "DISCREPANCY_HIGH"
    AFFILIATE_OVERCLAIMED = "AFFILIATE_OVERCLAIMED"
    INCOMPLETE_PLATFORM_DATA = "INCOMPLETE_PLATFORM_DATA"
    MISSING_PLATFORM_DATA = "MISSING_PLATFORM_DATA"


class Level(StrEnum):
    """How grave it is."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Reason(StrEnum):
    """Why a report has its status. Those of `Failure` say why the platform's figures are missing."""

    WITHIN_TOLERANCE = "within_tolerance"
    DIFFERS = "differs"
    CLAIM_EXCEEDS_PLATFORM = "claim_exceeds_platform"
    PARTIAL_ANSWER = "partial_answer"
    ABSENT = "absent"
    BREAKER_OPEN = "breaker_open"
    RATE_LIMITED = "rate_limited"
    AUTH_FAILED = "auth_failed"
    UNREACHABLE = "unreachable"


FAILURES = (Reason.ABSENT, Reason.BREAKER_OPEN, Reason.RATE_LIMITED, Reason.AUTH_FAILED, Reason.UNREACHABLE)
"""Why a platform may have told nothing. ABSENT is the plain case: it answered and knows nothing of the post."""


@dataclass(frozen=True, slots=True)
class ClaimedMetrics:
    """What an affiliate says a post brought."""

    views: int
    clicks: int
    conversions: int

    def __post_init__(self) -> None:
        for name, value in zip(METRICS, self, strict=True):
            _check_count(name, value)

    def __iter__(self) -> Iterator[int]:
        return iter((self.views, self.clicks, self.conversions))


@dataclass(frozen=True, slots=True)
class Observation:
    """What a platform said of a post, and of when its figures are. A figure it left out is None."""

    observed_at_ms: int
    views: int | None = None
    clicks: int | None = None
    conversions: int | None = None

    def __post_init__(self) -> None:
        for name, value in zip(METRICS, self, strict=True):
            if value is not None:
                _check_count(name, value)

    def __iter__(self) -> Iterator[int | None]:
        return iter((self.views, self.clicks, self.conversions))


@dataclass(frozen=True, slots=True)
class Post:
    """One publication of an affiliate on a platform, for a campaign."""

    platform: str
    post_id: str
    affiliate_id: str
    campaign_id: str = ""

    def __post_init__(self) -> None:
        for name in ("platform", "post_id", "affiliate_id"):
            if not 1 <= len(getattr(self, name)) <= MAX_NAME:
                raise InvalidReport(f"{name} must have 1 to {MAX_NAME} characters")
        if len(self.campaign_id) > MAX_NAME:
            raise InvalidReport(f"campaign_id must have at most {MAX_NAME} characters")


@dataclass(frozen=True, slots=True)
class Report:
    """A claim about a post, as of a moment."""

    report_id: str
    post: Post
    claimed: ClaimedMetrics
    reported_at_ms: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """The outcome of asking a platform: figures, or the reason why there are none."""

    observation: Observation | None = None
    failure: Reason | None = None
    #: How long the platform asked us to wait before the next question.
    retry_after_ms: int = 0

    def __post_init__(self) -> None:
        if (self.observation is None) == (self.failure is None):
            raise ValueError("either figures or the reason why there are none")
        if self.failure is not None and self.failure not in FAILURES:
            raise ValueError(f"{self.failure} is not a reason for missing data")


def _check_count(name: str, value: int) -> None:
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise InvalidReport(f"{name} must be a whole number from 0 to {MAX_COUNT}")
