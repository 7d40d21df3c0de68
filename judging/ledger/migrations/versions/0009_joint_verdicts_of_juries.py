"""Joint verdicts of juries: whose verdicts and findings they are made of"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "jury_member",
        sa.Column("cell_key", sa.Integer(), nullable=False, comment="the joint verdict"),
        sa.Column("member_key", sa.Integer(), nullable=False, comment="a member's verdict"),
        sa.ForeignKeyConstraint(["cell_key"], ["cell.cell_key"], name=op.f("fk_jury_member_cell_key_cell")),
        sa.ForeignKeyConstraint(["member_key"], ["cell.cell_key"], name=op.f("fk_jury_member_member_key_cell")),
        sa.PrimaryKeyConstraint("cell_key", "member_key", name=op.f("pk_jury_member")),
    )
    with op.batch_alter_table("jury_member", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_jury_member_member_key"), ["member_key"], unique=False)

    op.create_table(
        "joint_finding",
        sa.Column("finding_key", sa.Integer(), nullable=False, comment="of the joint verdict"),
        sa.Column("member_key", sa.Integer(), nullable=False, comment="a member's finding"),
        sa.ForeignKeyConstraint(
            ["finding_key"], ["finding.finding_key"], name=op.f("fk_joint_finding_finding_key_finding")
        ),
        sa.ForeignKeyConstraint(
            ["member_key"], ["finding.finding_key"], name=op.f("fk_joint_finding_member_key_finding")
        ),
        sa.PrimaryKeyConstraint("finding_key", "member_key", name=op.f("pk_joint_finding")),
    )
    with op.batch_alter_table("joint_finding", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_joint_finding_member_key"), ["member_key"], unique=False)


def downgrade() -> None:
    op.drop_table("joint_finding")
    op.drop_table("jury_member")
