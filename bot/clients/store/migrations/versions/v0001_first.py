"""The first schema."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None
branch_labels = None
depends_on = None


def _scope() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("installation", sa.BigInteger(), nullable=False),
        sa.Column("repository", sa.String(), nullable=False),
    ]


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "audit",
        *_scope(),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("previous", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("uq_audit", "audit", ["repository", "sequence"], unique=True)
    op.create_table(
        "batches",
        *_scope(),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("branch", sa.String(), nullable=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("base", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("commits", sa.JSON(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
    )
    op.create_index("ix_batches_number", "batches", ["repository", "number"], unique=False)
    op.create_index("uq_batches", "batches", ["repository", "key"], unique=True)
    op.create_table(
        "breakages",
        *_scope(),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_breakages")),
    )
    op.create_index("uq_breakages", "breakages", ["repository", "key"], unique=True)
    op.create_table(
        "commands",
        *_scope(),
        sa.Column("comment_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("body_hash", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_commands")),
    )
    op.create_index("uq_commands", "commands", ["repository", "comment_id", "position", "body_hash"], unique=True)
    op.create_table(
        "decisions",
        *_scope(),
        sa.Column("sha", sa.String(), nullable=False),
        sa.Column("disposition", sa.String(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("decided_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    op.create_index("uq_decisions", "decisions", ["repository", "sha"], unique=True)
    op.create_table(
        "deliveries",
        *_scope(),
        sa.Column("guid", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("sender", sa.String(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("guid"),
    )
    op.create_index(op.f("ix_deliveries_received_at"), "deliveries", ["received_at"], unique=False)
    op.create_table(
        "jobs",
        *_scope(),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("lock", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("run_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("again", sa.Boolean(), nullable=False),
        sa.Column("again_payload", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_due", "jobs", ["state", "run_at"], unique=False)
    op.create_index(
        "uq_jobs_leased",
        "jobs",
        ["installation", "repository", "lock"],
        unique=True,
        sqlite_where=sa.text("state = 'leased'"),
        postgresql_where=sa.text("state = 'leased'"),
    )
    op.create_index(
        "uq_jobs_live",
        "jobs",
        ["installation", "repository", "kind", "key"],
        unique=True,
        sqlite_where=sa.text("state != 'done'"),
        postgresql_where=sa.text("state != 'done'"),
    )
    op.create_table(
        "notes",
        *_scope(),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notes")),
    )
    op.create_index("uq_notes", "notes", ["installation", "repository", "key"], unique=True)
    op.create_table(
        "repositories",
        *_scope(),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repositories")),
    )
    op.create_index("uq_repositories", "repositories", ["installation", "repository"], unique=True)
    op.create_table(
        "runners",
        *_scope(),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runners")),
        sa.UniqueConstraint("name"),
    )
    op.create_index(op.f("ix_runners_token_hash"), "runners", ["token_hash"], unique=False)
    op.create_table(
        "runs",
        *_scope(),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("sha", sa.String(), nullable=False),
        sa.Column("base", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("suite", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("deadline", sa.BigInteger(), nullable=False),
        sa.Column("queued_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("report", sa.JSON(), nullable=True),
        sa.Column("runner", sa.String(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("run"),
    )
    op.create_index("ix_runs_sha", "runs", ["repository", "sha"], unique=False)
    op.create_index("ix_runs_state", "runs", ["state", "lease_until"], unique=False)


def downgrade() -> None:
    """There is nothing before the first schema."""
    raise NotImplementedError("there is no schema before the first: remove the database instead")
