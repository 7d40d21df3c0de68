"""A message keeps what the model thought apart from what it said"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column("reasoning", sa.Text(), nullable=True, comment="JSON text; a long one by reference")
    op.add_column("message", column)


def downgrade() -> None:
    op.drop_column("message", "reasoning")
