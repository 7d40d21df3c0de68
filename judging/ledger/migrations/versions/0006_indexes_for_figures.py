"""Indexes for what every page asks: the newest versions of judges, the ledger's revision"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("cell", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_cell_judge_version_state_finished_at"),
            ["judge_version", "state", "finished_at"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_cell_finished_at"), ["finished_at"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("cell", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_cell_finished_at"))
        batch_op.drop_index(batch_op.f("ix_cell_judge_version_state_finished_at"))
