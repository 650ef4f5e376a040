"""What each run is for, which of two capacities it is on, and the labels that a runner needs for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; runs that wait keep waiting, with the labels that their request names."""
    op.add_column("runs", sa.Column("turn", sa.Integer(), nullable=False, server_default="2"))
    op.add_column("runs", sa.Column("capacity", sa.String(), nullable=False, server_default=""))
    op.add_column("runs", sa.Column("wanted", sa.JSON(), nullable=False, server_default="[]"))
    op.create_index("ix_runs_started_at", "runs", ["started_at"], unique=False)
    connection = op.get_bind()
    columns = ("id", sa.BigInteger), ("state", sa.String), ("request", sa.JSON), ("wanted", sa.JSON)
    runs = sa.table("runs", *(sa.column(name, kind()) for name, kind in columns))
    for row, request in connection.execute(sa.select(runs.c.id, runs.c.request).where(runs.c.state != "done")).all():
        connection.execute(sa.update(runs).where(runs.c.id == row).values(wanted=request["suite"]["runner"]))


def downgrade() -> None:
    """Drop them again."""
    op.drop_index("ix_runs_started_at", table_name="runs")
    for name in ("wanted", "capacity", "turn"):
        op.drop_column("runs", name)
