"""Queues that are edited and closed, items retired, people assigned"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("queue", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column(
                "guideline_version", sa.Integer(), nullable=True,
                comment="what people must have read; empty: the newest",
            )
        )  # fmt: skip
        batch_op.add_column(sa.Column("due_at", sa.BigInteger(), nullable=True, comment="when it is wanted"))
        batch_op.add_column(
            sa.Column(
                "closed_at", sa.BigInteger(), nullable=True, comment="nothing is handed out since; empty while open"
            )
        )
    with op.batch_alter_table("queue_item", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("retired_at", sa.BigInteger(), nullable=True, comment="taken out of the queue; its labels stay")
        )
    op.create_table(
        "assignment",
        sa.Column("assignment_key", sa.Integer(), nullable=False),
        sa.Column("queue_key", sa.Integer(), nullable=False),
        sa.Column("item_key", sa.Integer(), nullable=True, comment="empty: the whole queue"),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("withdrawn_at", sa.BigInteger(), nullable=True, comment="empty while it holds"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.ForeignKeyConstraint(["item_key"], ["queue_item.item_key"], name=op.f("fk_assignment_item_key_queue_item")),
        sa.ForeignKeyConstraint(["queue_key"], ["queue.queue_key"], name=op.f("fk_assignment_queue_key_queue")),
        sa.PrimaryKeyConstraint("assignment_key", name=op.f("pk_assignment")),
    )
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_assignment_queue_key"), ["queue_key"], unique=False)


def downgrade() -> None:
    op.drop_table("assignment")
    with op.batch_alter_table("queue_item", schema=None) as batch_op:
        batch_op.drop_column("retired_at")
    with op.batch_alter_table("queue", schema=None) as batch_op:
        batch_op.drop_column("closed_at")
        batch_op.drop_column("due_at")
        batch_op.drop_column("guideline_version")
