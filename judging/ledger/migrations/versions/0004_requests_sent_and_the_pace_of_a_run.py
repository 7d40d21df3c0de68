"""Requests as they are sent, and the pace that all processes of a run share"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "request",
        sa.Column("request_key", sa.Integer(), nullable=False),
        sa.Column("cell_key", sa.Integer(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False, comment="who sent it"),
        sa.Column("most_usd", sa.Float(), nullable=True, comment="the most it can cost; empty where no price is known"),
        sa.Column("sent_at", sa.BigInteger(), nullable=False, comment="written before it goes out"),
        sa.Column(
            "outcome",
            sa.Text(),
            nullable=True,
            comment="answered, failed, unknown (perhaps paid); empty while under way; moves",
        ),
        sa.Column("void", sa.Boolean(), nullable=False, comment="its cell was wanted again: no reason not to ask"),
        sa.ForeignKeyConstraint(["cell_key"], ["cell.cell_key"], name=op.f("fk_request_cell_key_cell")),
        sa.PrimaryKeyConstraint("request_key", name=op.f("pk_request")),
    )
    with op.batch_alter_table("request", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_request_cell_key"), ["cell_key"], unique=False)
    op.create_table(
        "pace",
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column(
            "next_at",
            sa.BigInteger(),
            nullable=False,
            comment="the next free moment for a call of any process; moves",
        ),
        sa.ForeignKeyConstraint(["run_key"], ["run.run_key"], name=op.f("fk_pace_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", "model", name=op.f("pk_pace")),
    )


def downgrade() -> None:
    op.drop_table("pace")
    op.drop_table("request")
