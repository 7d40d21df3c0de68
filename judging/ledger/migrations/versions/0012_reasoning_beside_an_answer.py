"""A judge's reasoning came beside its answer and was lost"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table, comment in (
        ("cell", "what came beside the answer, UTF-8, zstd"),
        ("reply", "what the provider sent beside it, UTF-8, zstd"),
    ):
        op.add_column(table, sa.Column("reasoning", sa.LargeBinary(), nullable=True, comment=comment))


def downgrade() -> None:
    for table in ("reply", "cell"):
        op.drop_column(table, "reasoning")
