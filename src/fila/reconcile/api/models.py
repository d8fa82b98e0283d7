"""What goes over the wire, with examples for the OpenAPI page."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from fila.reconcile.domain.models import MAX_NAME
from fila.reconcile.domain.settings import MAX_COUNT

NAME = rf"^[A-Za-z0-9_][A-Za-z0-9_.:@+-]{{0,{MAX_NAME - 1}}}$"
Name = Annotated[str, StringConstraints(pattern=NAME)]
Key = Annotated[str, StringConstraints(pattern=rf"^[!-~]{{1,{MAX_NAME}}}$")]
Count = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]

EXAMPLE: dict[str, Any] = {
    "affiliate_id": "ada",
    "platform": "clipshare",
    "post_id": "clip-1024",
    "campaign_id": "spring",
    "views": 12_400,
    "clicks": 310,
    "conversions": 12,
    "idempotency_key": "ada-2024-05-01-clip-1024",
}


class Strict(BaseModel):
    """Unknown fields are refused: a typo must not become a default."""

    model_config = ConfigDict(extra="forbid")


class ReportIn(Strict):
    """What an affiliate says a post brought."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    affiliate_id: Name
    platform: Name
    post_id: Name
    campaign_id: Name | Literal[""] = ""
    views: Count
    clicks: Count
    conversions: Count
    reported_at: AwareDatetime | None = Field(None, description="Of when the figures are; now, if left out.")
    idempotency_key: Key | None = Field(
        None, description="Sending the same report again under the same key is safe: it is taken once."
    )


class ReportsIn(Strict):
    """Several reports: all are taken, or none."""

    reports: Annotated[list[ReportIn], Field(min_length=1)]


class Accepted(BaseModel):
    """A report that will be reconciled."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "report_id": "5d0a7a3c8f2b4f6e9a1c3e5d7b9f0a2c",
                    "repeated": False,
                    "priority": "high",
                    "suspicion": 60,
                    "signals": ["more_clicks_than_views"],
                }
            ]
        }
    )

    report_id: str
    repeated: bool = Field(description="Whether it had been taken before, under the same idempotency key.")
    priority: str
    suspicion: int = Field(description="From 0 to 100. From 50 on, by default, a report goes ahead of the others.")
    signals: list[str]


class AcceptedMany(BaseModel):
    reports: list[Accepted]


class AttemptOut(BaseModel):
    """One line of a report's log. Shares are in per cent."""

    attempt: int
    at: str
    status: str
    level: str
    reason: str
    confidence: float
    difference_percent: float
    explanation: str
    retry_at: str | None


class ReportOut(BaseModel):
    """A report and what became of it."""

    report_id: str
    affiliate_id: str
    platform: str
    post_id: str
    campaign_id: str
    views: int
    clicks: int
    conversions: int
    status: str = Field(description="PENDING before the first attempt.")
    level: str | None
    reason: str | None
    confidence: float | None
    done: bool
    priority: str
    submitted_at: str
    attempts: list[AttemptOut]


class AlertOut(BaseModel):
    id: int
    kind: str
    severity: str
    affiliate_id: str
    platform: str
    report_id: str
    text: str
    at: str


class AlertsOut(BaseModel):
    alerts: list[AlertOut]
    next_before: int | None = Field(description="Ask with `before` set to this for the next page.")


class AffiliateOut(BaseModel):
    affiliate_id: str
    trust: float = Field(description="From 0 to 1.")
    reports: int
    first_seen: str


class AffiliatesOut(BaseModel):
    affiliates: list[AffiliateOut]
    next_after: str | None = Field(description="Ask with `after` set to this for the next page.")


class StatusOut(BaseModel):
    """The whole at one moment."""

    open: int
    done: int
    outcomes: dict[str, int]
    alerts: dict[str, int]
    queue: dict[str, Any]


class Problem(BaseModel):
    code: str
    message: str
    index: int | None = None


class ErrorOut(BaseModel):
    """Why a request was refused."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"error": {"code": "flooding", "message": "affiliate ada sends too many reports"}}]
        }
    )

    error: Problem
