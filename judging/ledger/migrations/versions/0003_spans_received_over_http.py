"""Spans received over HTTP, until their trace is whole"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "inbox",
        sa.Column("inbox_key", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="one OTLP/JSON request of this trace alone, zstd"),
        sa.Column("has_root", sa.Integer(), nullable=False, comment="1: holds an ended span without a parent"),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("inbox_key", name=op.f("pk_inbox")),
    )
    with op.batch_alter_table("inbox", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_inbox_trace_id"), ["trace_id"], unique=False)


def downgrade() -> None:
    op.drop_table("inbox")
