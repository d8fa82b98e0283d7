"""Affiliates, posts, reports, attempts with their snapshots, trust and alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "affiliates",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("trust_total_bp", sa.BigInteger(), nullable=False),
        sa.Column("reports", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_affiliates"),
    )
    op.create_table(
        "posts",
        sa.Column("platform", sa.String(length=128), nullable=False),
        sa.Column("post_id", sa.String(length=128), nullable=False),
        sa.Column("affiliate_id", sa.String(length=128), nullable=False),
        sa.Column("campaign_id", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(["affiliate_id"], ["affiliates.id"], name="fk_posts_affiliate_id"),
        sa.PrimaryKeyConstraint("platform", "post_id", name="pk_posts"),
    )
    op.create_table(
        "reports",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("affiliate_id", sa.String(length=128), nullable=False),
        sa.Column("platform", sa.String(length=128), nullable=False),
        sa.Column("post_id", sa.String(length=128), nullable=False),
        sa.Column("campaign_id", sa.String(length=128), nullable=False),
        sa.Column("views", sa.BigInteger(), nullable=False),
        sa.Column("clicks", sa.BigInteger(), nullable=False),
        sa.Column("conversions", sa.BigInteger(), nullable=False),
        sa.Column("reported_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("submitted_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("idempotency_key", sa.String(length=128), nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("correlation_id", sa.String(length=128), nullable=False),
        sa.Column("priority", sa.String(length=32), nullable=False),
        sa.Column("suspicion", sa.Integer(), nullable=False),
        sa.Column("signals", sa.String(length=256), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=True),
        sa.Column("level", sa.String(length=32), nullable=True),
        sa.Column("reason", sa.String(length=32), nullable=True),
        sa.Column("confidence_bp", sa.Integer(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("missing", sa.Integer(), nullable=False),
        sa.Column("incomplete", sa.Integer(), nullable=False),
        sa.Column("due_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("queued", sa.Boolean(), nullable=False),
        sa.Column("done_at_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["affiliate_id"], ["affiliates.id"], name="fk_reports_affiliate_id"),
        sa.ForeignKeyConstraint(
            ["platform", "post_id"], ["posts.platform", "posts.post_id"], name="fk_reports_platform_post_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_reports"),
        sa.UniqueConstraint("affiliate_id", "idempotency_key", name="uq_reports_affiliate_id_idempotency_key"),
    )
    op.create_index(
        "ix_reports_affiliate_id_submitted_at_ms", "reports", ["affiliate_id", "submitted_at_ms"], unique=False
    )
    op.create_index("ix_reports_due_at_ms", "reports", ["due_at_ms"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("report_id", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("affiliate_id", sa.String(length=128), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("level", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("confidence_bp", sa.Integer(), nullable=False),
        sa.Column("over_bp", sa.BigInteger(), nullable=False),
        sa.Column("difference_bp", sa.BigInteger(), nullable=False),
        sa.Column("views_bp", sa.BigInteger(), nullable=False),
        sa.Column("clicks_bp", sa.BigInteger(), nullable=False),
        sa.Column("conversions_bp", sa.BigInteger(), nullable=False),
        sa.Column("explanation", sa.String(length=256), nullable=False),
        sa.Column("retry_at_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["report_id"], ["reports.id"], name="fk_attempts_report_id"),
        sa.PrimaryKeyConstraint("report_id", "attempt", name="pk_attempts"),
    )
    op.create_index(
        "ix_attempts_affiliate_id_status_at_ms", "attempts", ["affiliate_id", "status", "at_ms"], unique=False
    )
    op.create_table(
        "alerts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("report_id", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("affiliate_id", sa.String(length=128), nullable=False),
        sa.Column("platform", sa.String(length=128), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("severity", sa.String(length=32), nullable=False),
        sa.Column("text", sa.String(length=256), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["affiliate_id"], ["affiliates.id"], name="fk_alerts_affiliate_id"),
        sa.ForeignKeyConstraint(
            ["report_id", "attempt"], ["attempts.report_id", "attempts.attempt"], name="fk_alerts_report_id_attempt"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sa.UniqueConstraint("report_id", "attempt", name="uq_alerts_report_id_attempt"),
    )
    op.create_index("ix_alerts_affiliate_id", "alerts", ["affiliate_id"], unique=False)
    op.create_table(
        "snapshots",
        sa.Column("report_id", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("observed_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("views", sa.BigInteger(), nullable=True),
        sa.Column("clicks", sa.BigInteger(), nullable=True),
        sa.Column("conversions", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["report_id", "attempt"], ["attempts.report_id", "attempts.attempt"], name="fk_snapshots_report_id_attempt"
        ),
        sa.PrimaryKeyConstraint("report_id", "attempt", name="pk_snapshots"),
    )
    op.create_table(
        "trust_events",
        sa.Column("report_id", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("affiliate_id", sa.String(length=128), nullable=False),
        sa.Column("delta_bp", sa.Integer(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["affiliate_id"], ["affiliates.id"], name="fk_trust_events_affiliate_id"),
        sa.ForeignKeyConstraint(
            ["report_id", "attempt"],
            ["attempts.report_id", "attempts.attempt"],
            name="fk_trust_events_report_id_attempt",
        ),
        sa.PrimaryKeyConstraint("report_id", "attempt", name="pk_trust_events"),
    )
    op.create_index("ix_trust_events_affiliate_id", "trust_events", ["affiliate_id"], unique=False)


def downgrade() -> None:
    for table in ("trust_events", "snapshots", "alerts", "attempts", "reports", "posts", "affiliates"):
        op.drop_table(table)
