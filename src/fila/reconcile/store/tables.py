"""The tables. `reports` is the truth about what is still to be done: an open report always has a `due_at_ms`.

- `attempts` is the log. Its key is (report, attempt), and everything an attempt causes is written in its transaction,
  so an attempt that is run twice by a crash or a lost lease takes effect once.
- `affiliates.trust_total_bp` is the sum of `trust_events`. Both are written together.
- Times are milliseconds since 1970, shares and trust basis points: whole numbers, the same in every database.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from fila.reconcile.domain.models import MAX_NAME

NAMES = {  # so that a migration can name what it changes, in every database
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
Name = String(MAX_NAME)
Word = String(32)
SerialId = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up by itself only for this type


class Base(DeclarativeBase):
    """All tables."""

    metadata = MetaData(naming_convention=NAMES)


class AffiliateRow(Base):
    """Someone who posts and reports, and how far we trust them."""

    __tablename__ = "affiliates"

    id: Mapped[str] = mapped_column(Name, primary_key=True)
    trust_total_bp: Mapped[int] = mapped_column(BigInteger, default=0)
    reports: Mapped[int] = mapped_column(BigInteger, default=0)
    first_seen_ms: Mapped[int] = mapped_column(BigInteger)


class PostRow(Base):
    """A publication. It belongs to the affiliate who reported it first."""

    __tablename__ = "posts"

    platform: Mapped[str] = mapped_column(Name, primary_key=True)
    post_id: Mapped[str] = mapped_column(Name, primary_key=True)
    affiliate_id: Mapped[str] = mapped_column(Name, ForeignKey("affiliates.id"))
    campaign_id: Mapped[str] = mapped_column(Name)


class ReportRow(Base):
    """A claim, and how far its reconciliation has come."""

    __tablename__ = "reports"
    __table_args__ = (
        ForeignKeyConstraint(["platform", "post_id"], ["posts.platform", "posts.post_id"]),
        UniqueConstraint("affiliate_id", "idempotency_key"),
        Index(None, "due_at_ms"),
        Index(None, "affiliate_id", "submitted_at_ms"),
    )

    id: Mapped[str] = mapped_column(Word, primary_key=True)
    affiliate_id: Mapped[str] = mapped_column(Name, ForeignKey("affiliates.id"))
    platform: Mapped[str] = mapped_column(Name)
    post_id: Mapped[str] = mapped_column(Name)
    campaign_id: Mapped[str] = mapped_column(Name)
    views: Mapped[int] = mapped_column(BigInteger)
    clicks: Mapped[int] = mapped_column(BigInteger)
    conversions: Mapped[int] = mapped_column(BigInteger)
    reported_at_ms: Mapped[int] = mapped_column(BigInteger)
    submitted_at_ms: Mapped[int] = mapped_column(BigInteger)
    idempotency_key: Mapped[str | None] = mapped_column(Name)
    #: Of what was submitted under the key, to tell a repetition from a different report.
    digest: Mapped[str] = mapped_column(String(64))
    correlation_id: Mapped[str] = mapped_column(Name)
    priority: Mapped[str] = mapped_column(Word)
    suspicion: Mapped[int] = mapped_column(Integer)
    signals: Mapped[str] = mapped_column(String(256))
    #: Of the last attempt; None before the first.
    status: Mapped[str | None] = mapped_column(Word)
    level: Mapped[str | None] = mapped_column(Word)
    reason: Mapped[str | None] = mapped_column(Word)
    confidence_bp: Mapped[int | None] = mapped_column(Integer)
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    #: How many attempts found nothing, and how many found a part.
    missing: Mapped[int] = mapped_column(Integer, default=0)
    incomplete: Mapped[int] = mapped_column(Integer, default=0)
    #: When a job for the next attempt has to be queued or, if it was, when it is missed. None once done.
    due_at_ms: Mapped[int | None] = mapped_column(BigInteger)
    #: Whether a job for the next attempt was put in the queue.
    queued: Mapped[bool] = mapped_column(Boolean, default=False)
    done_at_ms: Mapped[int | None] = mapped_column(BigInteger)


class AttemptRow(Base):
    """The log: one line per attempt."""

    __tablename__ = "attempts"
    __table_args__ = (Index(None, "affiliate_id", "status", "at_ms"),)

    report_id: Mapped[str] = mapped_column(Word, ForeignKey("reports.id"), primary_key=True)
    attempt: Mapped[int] = mapped_column(Integer, primary_key=True)
    affiliate_id: Mapped[str] = mapped_column(Name)
    at_ms: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(Word)
    level: Mapped[str] = mapped_column(Word)
    reason: Mapped[str] = mapped_column(Word)
    confidence_bp: Mapped[int] = mapped_column(Integer)
    over_bp: Mapped[int] = mapped_column(BigInteger)
    difference_bp: Mapped[int] = mapped_column(BigInteger)
    views_bp: Mapped[int] = mapped_column(BigInteger)
    clicks_bp: Mapped[int] = mapped_column(BigInteger)
    conversions_bp: Mapped[int] = mapped_column(BigInteger)
    explanation: Mapped[str] = mapped_column(String(256))
    #: When the next attempt is planned; None when this was the last.
    retry_at_ms: Mapped[int | None] = mapped_column(BigInteger)


class SnapshotRow(Base):
    """What the platform said in an attempt."""

    __tablename__ = "snapshots"
    __table_args__ = (ForeignKeyConstraint(["report_id", "attempt"], ["attempts.report_id", "attempts.attempt"]),)

    report_id: Mapped[str] = mapped_column(Word, primary_key=True)
    attempt: Mapped[int] = mapped_column(Integer, primary_key=True)
    observed_at_ms: Mapped[int] = mapped_column(BigInteger)
    views: Mapped[int | None] = mapped_column(BigInteger)
    clicks: Mapped[int | None] = mapped_column(BigInteger)
    conversions: Mapped[int | None] = mapped_column(BigInteger)


class TrustEventRow(Base):
    """A step of an affiliate's trust."""

    __tablename__ = "trust_events"
    __table_args__ = (
        ForeignKeyConstraint(["report_id", "attempt"], ["attempts.report_id", "attempts.attempt"]),
        Index(None, "affiliate_id"),
    )

    report_id: Mapped[str] = mapped_column(Word, primary_key=True)
    attempt: Mapped[int] = mapped_column(Integer, primary_key=True)
    affiliate_id: Mapped[str] = mapped_column(Name, ForeignKey("affiliates.id"))
    delta_bp: Mapped[int] = mapped_column(Integer)
    at_ms: Mapped[int] = mapped_column(BigInteger)


class AlertRow(Base):
    """Something a person should hear of."""

    __tablename__ = "alerts"
    __table_args__ = (
        ForeignKeyConstraint(["report_id", "attempt"], ["attempts.report_id", "attempts.attempt"]),
        UniqueConstraint("report_id", "attempt"),
        Index(None, "affiliate_id"),
    )

    id: Mapped[int] = mapped_column(SerialId, primary_key=True)
    report_id: Mapped[str] = mapped_column(Word)
    attempt: Mapped[int] = mapped_column(Integer)
    affiliate_id: Mapped[str] = mapped_column(Name, ForeignKey("affiliates.id"))
    platform: Mapped[str] = mapped_column(Name)
    kind: Mapped[str] = mapped_column(Word)
    severity: Mapped[str] = mapped_column(Word)
    text: Mapped[str] = mapped_column(String(256))
    at_ms: Mapped[int] = mapped_column(BigInteger)


class ApiKeyRow(Base):
    """A key of the API. Its secret is not here, only a hash. Rows are kept when a key is over."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(Name, primary_key=True)
    role: Mapped[str] = mapped_column(Word)
    #: No foreign key: an affiliate has its key before its first report.
    affiliate_id: Mapped[str | None] = mapped_column(Name)
    salt: Mapped[str] = mapped_column(Word)
    hash: Mapped[str] = mapped_column(String(64))
    created_at_ms: Mapped[int] = mapped_column(BigInteger)
    expires_at_ms: Mapped[int | None] = mapped_column(BigInteger)
    revoked_at_ms: Mapped[int | None] = mapped_column(BigInteger)
    last_used_at_ms: Mapped[int | None] = mapped_column(BigInteger)
