"""Paid replies, kept as they arrive, and provider batches"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reply",
        sa.Column("reply_key", sa.Integer(), nullable=False),
        sa.Column("cell_key", sa.Integer(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False, comment="of model, parameters, prompt, form and turns"),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="what came back, UTF-8, zstd"),
        sa.Column("refusal", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("latency_s", sa.Float(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("void", sa.Boolean(), nullable=False, comment="its cell was wanted again: never replayed"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.ForeignKeyConstraint(["cell_key"], ["cell.cell_key"], name=op.f("fk_reply_cell_key_cell")),
        sa.PrimaryKeyConstraint("reply_key", name=op.f("pk_reply")),
    )
    with op.batch_alter_table("reply", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reply_cell_key"), ["cell_key"], unique=False)
        batch_op.create_index("ix_reply_request_hash_repeat", ["request_hash", "repeat"], unique=False)
    op.create_table(
        "batch",
        sa.Column("batch_id", sa.Text(), nullable=False, comment="the provider's"),
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("collected_at", sa.BigInteger(), nullable=True, comment="empty while its replies are not stored"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.ForeignKeyConstraint(["run_key"], ["run.run_key"], name=op.f("fk_batch_run_key_run")),
        sa.PrimaryKeyConstraint("batch_id", name=op.f("pk_batch")),
    )
    with op.batch_alter_table("batch", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_batch_run_key"), ["run_key"], unique=False)


def downgrade() -> None:
    op.drop_table("batch")
    op.drop_table("reply")
