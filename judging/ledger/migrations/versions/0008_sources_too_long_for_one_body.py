"""Sources too long for one body, in parts"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "source_part",
        sa.Column("source_key", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column(
            "body",
            sa.LargeBinary(),
            nullable=False,
            comment="the next bytes of a source too long for one body, zstd",
        ),
        sa.ForeignKeyConstraint(["source_key"], ["source.source_key"], name=op.f("fk_source_part_source_key_source")),
        sa.PrimaryKeyConstraint("source_key", "part", name=op.f("pk_source_part")),
    )


def downgrade() -> None:
    op.drop_table("source_part")
