"""Indexes that answer the Runs and Explore pages without a look at the judgements themselves"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

OF_RUNS = "ix_cell_run_key_state_judge_score_cost_usd"
OF_TRACES = "ix_cell_trace_id_state_score"


def upgrade() -> None:
    with op.batch_alter_table("cell", schema=None) as batch_op:
        batch_op.create_index(batch_op.f(OF_RUNS), ["run_key", "state", "judge", "score", "cost_usd"], unique=False)
        batch_op.create_index(batch_op.f(OF_TRACES), ["trace_id", "state", "score"], unique=False)
        batch_op.drop_index(batch_op.f("ix_cell_run_key_state"))


def downgrade() -> None:
    with op.batch_alter_table("cell", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_cell_run_key_state"), ["run_key", "state"], unique=False)
        batch_op.drop_index(batch_op.f(OF_TRACES))
        batch_op.drop_index(batch_op.f(OF_RUNS))
