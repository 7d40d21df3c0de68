"""A judge's reasoning came beside its answer and was lost"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("cell", "reply"):
        op.add_column(table, sa.Column("reasoning", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    for table in ("reply", "cell"):
        op.drop_column(table, "reasoning")
