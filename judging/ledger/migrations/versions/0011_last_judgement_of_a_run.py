"""A page that follows a run asks each moment when its last judgement was finished"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_cell_run_key_finished_at", "cell", ["run_key", "finished_at"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_cell_run_key_finished_at", table_name="cell")
