"""Requests know the batch that they went in: what another batch leaves unanswered says nothing of them"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "request",
        sa.Column(
            "batch_id",
            sa.Text(),
            nullable=True,
            comment="the provider's batch that it went in; empty: none, or not yet noted",
        ),
    )
    op.create_index(op.f("ix_request_batch_id"), "request", ["batch_id"], unique=False)
    # where a run waits for one batch alone, whatever it sent before is that batch's; of several nobody can tell
    op.execute(
        """
        UPDATE request SET batch_id = (
            SELECT min(batch.batch_id) FROM batch JOIN cell ON cell.run_key = batch.run_key
            WHERE cell.cell_key = request.cell_key AND batch.collected_at IS NULL
                AND request.sent_at <= batch.created_at
        )
        WHERE outcome IS NULL AND cell_key IN (
            SELECT cell_key FROM cell WHERE run_key IN (
                SELECT run_key FROM batch WHERE collected_at IS NULL GROUP BY run_key HAVING count(*) = 1
            )
        )
        """
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_request_batch_id"), table_name="request")
    with op.batch_alter_table("request", schema=None) as batch_op:
        batch_op.drop_column("batch_id")
