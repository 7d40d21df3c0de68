"""The schema: traces, labels, verdicts, matches."""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table, and the index of words."""
    op.create_table(
        "acknowledgement",
        sa.Column("acknowledgement_key", sa.Integer(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("acknowledgement_key", name=op.f("pk_acknowledgement")),
    )
    op.create_table(
        "adjudication",
        sa.Column("row_key", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, comment="of the gold of this trace, from 1"),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False, comment="error, score or done"),
        sa.Column("action", sa.Text(), nullable=False, comment="keep, merge, edit, reject, add, score, close"),
        sa.Column("payload", sa.Text(), nullable=False, comment="JSON: labels taken, the result"),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("row_key", name=op.f("pk_adjudication")),
    )
    with op.batch_alter_table("adjudication", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_adjudication_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "annotator",
        sa.Column("annotator", sa.Text(), nullable=False, comment="the name that stands at every label"),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False, comment="person, imported or adjudicated"),
        sa.Column("role", sa.Text(), nullable=False, comment="annotator, adjudicator, researcher or admin"),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("settings", sa.Text(), nullable=False, comment="JSON: key map and the like"),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("annotator", name=op.f("pk_annotator")),
        sa.UniqueConstraint("email", name=op.f("uq_annotator_email")),
    )
    op.create_table(
        "audit",
        sa.Column("row_key", sa.Integer(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False, comment="JSON"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("row_key", name=op.f("pk_audit")),
    )
    op.create_table(
        "comment",
        sa.Column("row_key", sa.Integer(), nullable=False),
        sa.Column("comment_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False, comment="comment, return (of a submitted trace) or message"),
        sa.Column("trace_id", sa.Text(), nullable=True, comment="empty: a message that is about no trace"),
        sa.Column("span_id", sa.Text(), nullable=True),
        sa.Column("label_id", sa.Text(), nullable=True, comment="the error label that it is about"),
        sa.Column("occasion", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column(
            "mentions", sa.Text(), nullable=False, comment="JSON list of people; of a message without any: everyone"
        ),
        sa.Column(
            "while_blind",
            sa.Boolean(),
            nullable=False,
            comment="of a return: its author says that it tells nothing of judges or others, so it may be read while blind",
        ),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("row_key", name=op.f("pk_comment")),
    )
    with op.batch_alter_table("comment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_comment_comment_id"), ["comment_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_comment_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "comment_read",
        sa.Column("read_key", sa.Integer(), nullable=False),
        sa.Column("comment_id", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False, comment="who has read it or was told of it"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("read_key", name=op.f("pk_comment_read")),
        sa.UniqueConstraint("annotator", "comment_id", name=op.f("uq_comment_read_annotator_comment_id")),
    )
    with op.batch_alter_table("comment_read", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_comment_read_comment_id"), ["comment_id"], unique=False)

    op.create_table(
        "corpus_sample",
        sa.Column("sample_key", sa.Integer(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False, comment="the corpus that it was drawn from"),
        sa.Column("method", sa.Text(), nullable=False, comment="random, stratum or disagreement"),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("population", sa.Integer(), nullable=False, comment="traces of the corpus that could be drawn"),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("sample_key", name=op.f("pk_corpus_sample")),
    )
    op.create_table(
        "error_label",
        sa.Column("row_key", sa.Integer(), nullable=False),
        sa.Column("label_id", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("trace_digest", sa.Text(), nullable=True, comment="empty while the trace is not in the workspace"),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("occasion", sa.Integer(), nullable=False),
        sa.Column("span_ids", sa.Text(), nullable=False, comment="JSON list"),
        sa.Column("dimensions", sa.Text(), nullable=False, comment="JSON list"),
        sa.Column("impact", sa.Text(), nullable=True, comment="low, medium, high; empty while unfinished"),
        sa.Column("category", sa.Text(), nullable=True, comment="TRAIL category"),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False, comment="JSON list"),
        sa.Column("phase", sa.Text(), nullable=False, comment="blind or revealed"),
        sa.Column("attributes", sa.Text(), nullable=False, comment="JSON: what an import brought besides"),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False, comment="who wrote this revision"),
        sa.Column("guideline_version", sa.Text(), nullable=True),
        sa.Column("op_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("row_key", name=op.f("pk_error_label")),
    )
    with op.batch_alter_table("error_label", schema=None) as batch_op:
        batch_op.create_index("ix_error_label_annotator_trace_id", ["annotator", "trace_id"], unique=False)
        batch_op.create_index("ix_error_label_label_id_row_key", ["label_id", "row_key"], unique=False)
        batch_op.create_index(batch_op.f("ix_error_label_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "guideline",
        sa.Column("guideline_key", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False, comment="JSON: Markdown by dimension"),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("guideline_key", name=op.f("pk_guideline")),
        sa.UniqueConstraint("version", name=op.f("uq_guideline_version")),
    )
    op.create_table(
        "inbox",
        sa.Column("inbox_key", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="one OTLP/JSON request of this trace alone, zstd"),
        sa.Column("has_root", sa.Integer(), nullable=False, comment="1: holds an ended span without a parent"),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("inbox_key", name=op.f("pk_inbox")),
    )
    with op.batch_alter_table("inbox", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_inbox_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "invitation",
        sa.Column("invitation_key", sa.Integer(), nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False, comment="SHA-256 of the link's secret, 256 random bits"),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True, comment="empty while it may be used"),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("invitation_key", name=op.f("pk_invitation")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_invitation_secret_hash")),
    )
    op.create_table(
        "judge_version",
        sa.Column(
            "judge_version", sa.Text(), nullable=False, comment="hash of rubric, prompt order, model, parameters, mode"
        ),
        sa.Column(
            "rubric", sa.Text(), nullable=False, comment="key of the rubric (LC ...), or the name of an imported judge"
        ),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("rubric_version", sa.Text(), nullable=False),
        sa.Column("rubric_body", sa.Text(), nullable=False, comment="JSON: the rubric as it was"),
        sa.Column("prompt_order", sa.Text(), nullable=False),
        sa.Column("agent_text", sa.Text(), nullable=False, comment="the agent description given to the judge"),
        sa.Column("parameters", sa.Text(), nullable=False, comment="JSON: what was sent to the provider"),
        sa.Column("mode", sa.Text(), nullable=False, comment="trace, span, jury, checks or imported"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("judge_version", name=op.f("pk_judge_version")),
    )
    op.create_table(
        "op",
        sa.Column("op_id", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("occasion", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False, comment="of this person's work on this trace, from 1"),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False, comment="JSON as it came"),
        sa.Column("client_time", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("op_id", name=op.f("pk_op")),
        sa.UniqueConstraint(
            "annotator", "trace_id", "occasion", "revision", name=op.f("uq_op_annotator_trace_id_occasion_revision")
        ),
    )
    op.create_table(
        "queue",
        sa.Column("queue_key", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False, comment="people an overlap item wants"),
        sa.Column("overlap_share", sa.Float(), nullable=False, comment="share of items that want k people, 0..1"),
        sa.Column(
            "repeat_share", sa.Float(), nullable=False, comment="share of items shown to a person twice, hidden, 0..1"
        ),
        sa.Column("blind", sa.Boolean(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("lease_s", sa.Integer(), nullable=False),
        sa.Column("hide", sa.Text(), nullable=False, comment="JSON list: agent, model"),
        sa.Column("filter", sa.Text(), nullable=False, comment="JSON: how the traces were chosen"),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column(
            "guideline_version", sa.Integer(), nullable=True, comment="what people must have read; empty: the newest"
        ),
        sa.Column("due_at", sa.BigInteger(), nullable=True, comment="when it is wanted"),
        sa.Column(
            "answers_by",
            sa.Text(),
            nullable=True,
            comment="whose labels are the correct answers of practice; empty: the adjudicated, the author's",
        ),
        sa.Column(
            "after_key",
            sa.Integer(),
            nullable=True,
            comment="the practice queue that a person must have passed; empty: none",
        ),
        sa.Column(
            "pass_mark", sa.Integer(), nullable=True, comment="percent of the points of practice that open the queue"
        ),
        sa.Column("closed_at", sa.BigInteger(), nullable=True, comment="nothing is handed out since; empty while open"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("queue_key", name=op.f("pk_queue")),
        sa.UniqueConstraint("name", name=op.f("uq_queue_name")),
    )
    op.create_table(
        "review",
        sa.Column("row_key", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("trace_digest", sa.Text(), nullable=True),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("occasion", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False, comment="open, submitted, skipped"),
        sa.Column("no_error", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("active_ms", sa.BigInteger(), nullable=True, comment="time at work, pauses left out"),
        sa.Column(
            "revealed", sa.Boolean(), nullable=False, comment="the judges' errors have been shown to this person"
        ),
        sa.Column("item_key", sa.Integer(), nullable=True),
        sa.Column("guideline_version", sa.Text(), nullable=True),
        sa.Column("op_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("row_key", name=op.f("pk_review")),
    )
    with op.batch_alter_table("review", schema=None) as batch_op:
        batch_op.create_index("ix_review_annotator_trace_id", ["annotator", "trace_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_review_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "run",
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "status",
            sa.Text(),
            nullable=False,
            comment="queued, running, paused, out of budget, cancelled, done; moves",
        ),
        sa.Column("spec", sa.Text(), nullable=False, comment="JSON: judges, model, repeats, mode, limits"),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("budget_usd", sa.Float(), nullable=True),
        sa.Column(
            "owner",
            sa.Text(),
            nullable=True,
            comment="the process that works on it, by a name that no other has; empty: none",
        ),
        sa.Column("epoch", sa.Integer(), nullable=False, comment="counts owners: an earlier one writes nothing more"),
        sa.Column(
            "heartbeat_at", sa.BigInteger(), nullable=True, comment="the owner's last heartbeat by the database's clock"
        ),
        sa.Column("message", sa.Text(), nullable=False, comment="why it stopped"),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("run_key", name=op.f("pk_run")),
    )
    op.create_table(
        "score_label",
        sa.Column("row_key", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("trace_digest", sa.Text(), nullable=True),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("occasion", sa.Integer(), nullable=False),
        sa.Column("dimension", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True, comment="empty when cleared or not applicable"),
        sa.Column("not_applicable", sa.Boolean(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Integer(), nullable=True),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("guideline_version", sa.Text(), nullable=True),
        sa.Column("op_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("row_key", name=op.f("pk_score_label")),
    )
    with op.batch_alter_table("score_label", schema=None) as batch_op:
        batch_op.create_index("ix_score_label_annotator_trace_id", ["annotator", "trace_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_score_label_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "seen",
        sa.Column("seen_key", sa.Integer(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column(
            "what", sa.Text(), nullable=False, comment="where the person saw verdicts or labels of others on the trace"
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("seen_key", name=op.f("pk_seen")),
        sa.UniqueConstraint("annotator", "trace_id", "what", name=op.f("uq_seen_annotator_trace_id_what")),
    )
    with op.batch_alter_table("seen", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_seen_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "setting",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_setting")),
    )
    op.create_table(
        "source",
        sa.Column("source_key", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False, comment="SHA-256 of the bytes, 64 hex digits"),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False, comment="bytes before compression"),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="the very bytes, zstd"),
        sa.Column("ingested_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source_key", name=op.f("pk_source")),
        sa.UniqueConstraint("digest", name=op.f("uq_source_digest")),
    )
    op.create_table(
        "text_pack",
        sa.Column("pack_key", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="texts one after another, UTF-8, zstd"),
        sa.PrimaryKeyConstraint("pack_key", name=op.f("pk_text_pack")),
    )
    op.create_table(
        "batch",
        sa.Column("batch_id", sa.Text(), nullable=False, comment="the provider's"),
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("collected_at", sa.BigInteger(), nullable=True, comment="empty while its replies are not stored"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.ForeignKeyConstraint(["run_key"], ["run.run_key"], name=op.f("fk_batch_run_key")),
        sa.PrimaryKeyConstraint("batch_id", name=op.f("pk_batch")),
    )
    with op.batch_alter_table("batch", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_batch_run_key"), ["run_key"], unique=False)

    op.create_table(
        "cell",
        sa.Column("cell_key", sa.Integer(), nullable=False),
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("judge_version", sa.Text(), nullable=False),
        sa.Column("rubric", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("trace_digest", sa.Text(), nullable=True),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column(
            "state",
            sa.Text(),
            nullable=False,
            comment="pending, running (the run's owner is at it), then one of records.CELL_STATES; moves",
        ),
        sa.Column("score", sa.Integer(), nullable=True),
        sa.Column("criteria", sa.Text(), nullable=True),
        sa.Column("rationale", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True, comment="why there is no score"),
        sa.Column("notes", sa.Text(), nullable=True, comment="JSON list"),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("parameters", sa.Text(), nullable=True, comment="JSON"),
        sa.Column("prompt_hash", sa.Text(), nullable=True),
        sa.Column("raw_reply", sa.LargeBinary(), nullable=True, comment="UTF-8, zstd"),
        sa.Column("repair_reply", sa.LargeBinary(), nullable=True),
        sa.Column("reasoning", sa.LargeBinary(), nullable=True, comment="what came beside the answer, UTF-8, zstd"),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("latency_s", sa.Float(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["judge_version"], ["judge_version.judge_version"], name=op.f("fk_cell_judge_version")),
        sa.ForeignKeyConstraint(["run_key"], ["run.run_key"], name=op.f("fk_cell_run_key")),
        sa.PrimaryKeyConstraint("cell_key", name=op.f("pk_cell")),
        sa.UniqueConstraint(
            "run_key", "judge_version", "trace_id", "repeat", name=op.f("uq_cell_run_key_judge_version_trace_id_repeat")
        ),
    )
    with op.batch_alter_table("cell", schema=None) as batch_op:
        batch_op.create_index("ix_cell_finished_at", ["finished_at"], unique=False)
        batch_op.create_index(
            "ix_cell_judge_version_state_finished_at", ["judge_version", "state", "finished_at"], unique=False
        )
        batch_op.create_index("ix_cell_run_key_finished_at", ["run_key", "finished_at"], unique=False)
        batch_op.create_index(
            "ix_cell_run_key_state_rubric_score_cost_usd",
            ["run_key", "state", "rubric", "score", "cost_usd"],
            unique=False,
        )
        batch_op.create_index("ix_cell_trace_id_rubric", ["trace_id", "rubric"], unique=False)
        batch_op.create_index("ix_cell_trace_id_state_score", ["trace_id", "state", "score"], unique=False)

    op.create_table(
        "corpus_sample_trace",
        sa.Column("sample_key", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False, comment="of the content that was drawn"),
        sa.Column("stratum", sa.Text(), nullable=False),
        sa.Column(
            "inclusion", sa.Float(), nullable=False, comment="probability with which it was drawn, above 0 and up to 1"
        ),
        sa.ForeignKeyConstraint(
            ["sample_key"], ["corpus_sample.sample_key"], name=op.f("fk_corpus_sample_trace_sample_key")
        ),
        sa.PrimaryKeyConstraint("sample_key", "trace_id", name=op.f("pk_corpus_sample_trace")),
    )
    op.create_table(
        "queue_item",
        sa.Column("item_key", sa.Integer(), nullable=False),
        sa.Column("queue_key", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False, comment="people this item wants"),
        sa.Column("is_practice", sa.Boolean(), nullable=False),
        sa.Column("retired_at", sa.BigInteger(), nullable=True, comment="taken out of the queue; its labels stay"),
        sa.Column(
            "inclusion",
            sa.Float(),
            nullable=True,
            comment="chance with which the trace was drawn; empty where there is none",
        ),
        sa.ForeignKeyConstraint(["queue_key"], ["queue.queue_key"], name=op.f("fk_queue_item_queue_key")),
        sa.PrimaryKeyConstraint("item_key", name=op.f("pk_queue_item")),
        sa.UniqueConstraint("queue_key", "trace_id", name=op.f("uq_queue_item_queue_key_trace_id")),
    )
    with op.batch_alter_table("queue_item", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_queue_item_queue_key"), ["queue_key"], unique=False)
        batch_op.create_index(batch_op.f("ix_queue_item_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "source_part",
        sa.Column("source_key", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column(
            "body", sa.LargeBinary(), nullable=False, comment="the next bytes of a source too long for one body, zstd"
        ),
        sa.ForeignKeyConstraint(["source_key"], ["source.source_key"], name=op.f("fk_source_part_source_key")),
        sa.PrimaryKeyConstraint("source_key", "part", name=op.f("pk_source_part")),
    )
    op.create_table(
        "text",
        sa.Column("text_key", sa.Integer(), nullable=False),
        sa.Column("hash", sa.LargeBinary(length=16), nullable=False),
        sa.Column("pack_key", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False, comment="bytes into the pack"),
        sa.Column("size", sa.Integer(), nullable=False, comment="bytes"),
        sa.ForeignKeyConstraint(["pack_key"], ["text_pack.pack_key"], name=op.f("fk_text_pack_key")),
        sa.PrimaryKeyConstraint("text_key", name=op.f("pk_text")),
        sa.UniqueConstraint("hash", name=op.f("uq_text_hash")),
    )
    op.create_table(
        "trace",
        sa.Column("trace_key", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False, comment="blake2b of the content, whatever the file looked like"),
        sa.Column("source_key", sa.Integer(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False, comment="name of the first root"),
        sa.Column("goal", sa.Text(), nullable=True, comment="what the user asked"),
        sa.Column("final_answer", sa.Text(), nullable=True),
        sa.Column(
            "attributes", sa.Text(), nullable=False, comment="JSON: what belongs to the whole trace and to no span"
        ),
        sa.Column("warnings", sa.Text(), nullable=False, comment="JSON: list of 'code: detail'"),
        sa.Column("status", sa.Text(), nullable=False, comment="ERROR when the first root failed, else its status"),
        sa.Column("spans", sa.Integer(), nullable=False),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("llm_spans", sa.Integer(), nullable=False),
        sa.Column("tool_spans", sa.Integer(), nullable=False),
        sa.Column("error_spans", sa.Integer(), nullable=False),
        sa.Column("warning_count", sa.Integer(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("agents", sa.Text(), nullable=False, comment="JSON list"),
        sa.Column("models", sa.Text(), nullable=False, comment="JSON list"),
        sa.Column("tools", sa.Text(), nullable=False, comment="JSON list"),
        sa.Column("start_time", sa.BigInteger(), nullable=True),
        sa.Column("end_time", sa.BigInteger(), nullable=True),
        sa.Column(
            "duration_s",
            sa.Float(),
            nullable=True,
            comment="first start to last end on the wall clock, else on the simulated one",
        ),
        sa.Column(
            "prompt_tokens",
            sa.BigInteger(),
            nullable=True,
            comment="sum over leaf LLM spans; empty where none can count",
        ),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=True),
        sa.Column("total_tokens", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True, comment="JSON: the benchmark's own verdict"),
        sa.Column("ingested_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["source_key"], ["source.source_key"], name=op.f("fk_trace_source_key")),
        sa.PrimaryKeyConstraint("trace_key", name=op.f("pk_trace")),
        sa.UniqueConstraint("trace_id", name=op.f("uq_trace_trace_id")),
    )
    with op.batch_alter_table("trace", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_trace_source_key"), ["source_key"], unique=False)

    op.create_table(
        "assignment",
        sa.Column("assignment_key", sa.Integer(), nullable=False),
        sa.Column("queue_key", sa.Integer(), nullable=False),
        sa.Column("item_key", sa.Integer(), nullable=True, comment="empty: the whole queue"),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("withdrawn_at", sa.BigInteger(), nullable=True, comment="empty while it holds"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.ForeignKeyConstraint(["item_key"], ["queue_item.item_key"], name=op.f("fk_assignment_item_key")),
        sa.ForeignKeyConstraint(["queue_key"], ["queue.queue_key"], name=op.f("fk_assignment_queue_key")),
        sa.PrimaryKeyConstraint("assignment_key", name=op.f("pk_assignment")),
    )
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_assignment_queue_key"), ["queue_key"], unique=False)

    op.create_table(
        "expected_event",
        sa.Column("trace_key", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False, comment="JSON of an oracle event"),
        sa.Column("matched", sa.Integer(), nullable=True, comment="1 matched, empty unknown"),
        sa.ForeignKeyConstraint(["trace_key"], ["trace.trace_key"], name=op.f("fk_expected_event_trace_key")),
        sa.PrimaryKeyConstraint("trace_key", "position", name=op.f("pk_expected_event")),
    )
    op.create_table(
        "finding",
        sa.Column("finding_key", sa.Integer(), nullable=False),
        sa.Column("cell_key", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Text(), nullable=True),
        sa.Column("impact", sa.Text(), nullable=True),
        sa.Column("category", sa.Text(), nullable=True),
        sa.Column("check_name", sa.Text(), nullable=True, comment="the offline check that found it"),
        sa.Column("evidence_place", sa.Text(), nullable=True, comment="verbatim, found elsewhere, not found"),
        sa.Column("evidence_span_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["cell_key"], ["cell.cell_key"], name=op.f("fk_finding_cell_key")),
        sa.PrimaryKeyConstraint("finding_key", name=op.f("pk_finding")),
        sa.UniqueConstraint("cell_key", "position", name=op.f("uq_finding_cell_key_position")),
    )
    op.create_table(
        "jury_member",
        sa.Column("cell_key", sa.Integer(), nullable=False, comment="the joint verdict"),
        sa.Column("member_key", sa.Integer(), nullable=False, comment="a member's verdict"),
        sa.ForeignKeyConstraint(["cell_key"], ["cell.cell_key"], name=op.f("fk_jury_member_cell_key")),
        sa.ForeignKeyConstraint(["member_key"], ["cell.cell_key"], name=op.f("fk_jury_member_member_key")),
        sa.PrimaryKeyConstraint("cell_key", "member_key", name=op.f("pk_jury_member")),
    )
    with op.batch_alter_table("jury_member", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_jury_member_member_key"), ["member_key"], unique=False)

    op.create_table(
        "lease",
        sa.Column("lease_key", sa.Integer(), nullable=False),
        sa.Column("item_key", sa.Integer(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("occasion", sa.Integer(), nullable=False, comment="0, 1 for the hidden repeat, 2 for practice"),
        sa.Column("taken_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True, comment="counted, extra, skipped, expired; empty while open"),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["item_key"], ["queue_item.item_key"], name=op.f("fk_lease_item_key")),
        sa.PrimaryKeyConstraint("lease_key", name=op.f("pk_lease")),
        sa.UniqueConstraint("item_key", "annotator", "occasion", name=op.f("uq_lease_item_key_annotator_occasion")),
    )
    with op.batch_alter_table("lease", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_lease_item_key"), ["item_key"], unique=False)

    op.create_table(
        "log",
        sa.Column("log_key", sa.Integer(), nullable=False),
        sa.Column("trace_key", sa.Integer(), nullable=False),
        sa.Column("span_id", sa.Text(), nullable=True),
        sa.Column(
            "holds_answer", sa.Integer(), nullable=False, comment="1: may hold the right answer, never shown to a judge"
        ),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="JSON, zstd"),
        sa.ForeignKeyConstraint(["trace_key"], ["trace.trace_key"], name=op.f("fk_log_trace_key")),
        sa.PrimaryKeyConstraint("log_key", name=op.f("pk_log")),
    )
    with op.batch_alter_table("log", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_log_trace_key"), ["trace_key"], unique=False)

    op.create_table(
        "matching",
        sa.Column("cell_key", sa.Integer(), nullable=False),
        sa.Column(
            "annotator", sa.Text(), nullable=False, comment="whose errors were compared with the findings of the cell"
        ),
        sa.Column(
            "matcher", sa.Text(), nullable=False, comment="who compared them: the rule with its version, or a model"
        ),
        sa.Column("last_label", sa.Integer(), nullable=False, comment="newest row of error_label that was seen; moves"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.ForeignKeyConstraint(["cell_key"], ["cell.cell_key"], name=op.f("fk_matching_cell_key")),
        sa.PrimaryKeyConstraint("cell_key", "annotator", "matcher", name=op.f("pk_matching")),
    )
    op.create_table(
        "message",
        sa.Column("trace_key", sa.Integer(), nullable=False),
        sa.Column("message", sa.Integer(), nullable=False, comment="position in the trace's message table"),
        sa.Column("role", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=True, comment="the text when shorter than 256 characters"),
        sa.Column("content_key", sa.Integer(), nullable=True, comment="the text otherwise"),
        sa.Column(
            "tool_calls",
            sa.Text(),
            nullable=True,
            comment="JSON list of [name, arguments, id]; a long text by reference",
        ),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("tool_call_id", sa.Text(), nullable=True),
        sa.Column("reasoning", sa.Text(), nullable=True, comment="JSON text; a long one by reference"),
        sa.Column("first_seq", sa.Integer(), nullable=True, comment="the first span in reading order that holds it"),
        sa.ForeignKeyConstraint(["content_key"], ["text.text_key"], name=op.f("fk_message_content_key")),
        sa.ForeignKeyConstraint(["trace_key"], ["trace.trace_key"], name=op.f("fk_message_trace_key")),
        sa.PrimaryKeyConstraint("trace_key", "message", name=op.f("pk_message")),
    )
    op.create_table(
        "reply",
        sa.Column("reply_key", sa.Integer(), nullable=False),
        sa.Column("cell_key", sa.Integer(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False, comment="of model, parameters, prompt, form and turns"),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="what came back, UTF-8, zstd"),
        sa.Column("refusal", sa.Text(), nullable=True),
        sa.Column(
            "reasoning", sa.LargeBinary(), nullable=True, comment="what the provider sent beside it, UTF-8, zstd"
        ),
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
        sa.ForeignKeyConstraint(["cell_key"], ["cell.cell_key"], name=op.f("fk_reply_cell_key")),
        sa.PrimaryKeyConstraint("reply_key", name=op.f("pk_reply")),
    )
    with op.batch_alter_table("reply", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reply_cell_key"), ["cell_key"], unique=False)
        batch_op.create_index("ix_reply_request_hash_repeat", ["request_hash", "repeat"], unique=False)

    op.create_table(
        "request",
        sa.Column("request_key", sa.Integer(), nullable=False),
        sa.Column("cell_key", sa.Integer(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False, comment="of the run's owner that sent it"),
        sa.Column("most_usd", sa.Float(), nullable=True, comment="the most it can cost; empty where no price is known"),
        sa.Column(
            "sent_at", sa.BigInteger(), nullable=False, comment="by the database's clock, written before it goes out"
        ),
        sa.Column(
            "outcome",
            sa.Text(),
            nullable=True,
            comment="answered, failed, unknown (perhaps paid); empty while under way; moves",
        ),
        sa.Column("void", sa.Boolean(), nullable=False, comment="its cell was wanted again: no reason not to ask"),
        sa.Column(
            "batch_id",
            sa.Text(),
            nullable=True,
            comment="the provider's batch that it went in; empty: none, or not yet noted",
        ),
        sa.ForeignKeyConstraint(["cell_key"], ["cell.cell_key"], name=op.f("fk_request_cell_key")),
        sa.PrimaryKeyConstraint("request_key", name=op.f("pk_request")),
    )
    with op.batch_alter_table("request", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_request_batch_id"), ["batch_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_request_cell_key"), ["cell_key"], unique=False)

    op.create_table(
        "span",
        sa.Column("span_key", sa.Integer(), nullable=False),
        sa.Column("trace_key", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("span_id", sa.Text(), nullable=False),
        sa.Column("parent_span_id", sa.Text(), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("start_time", sa.BigInteger(), nullable=True),
        sa.Column("end_time", sa.BigInteger(), nullable=True),
        sa.Column("clock", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=True),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=True),
        sa.Column("total_tokens", sa.BigInteger(), nullable=True),
        sa.Column("reasoning_tokens", sa.BigInteger(), nullable=True),
        sa.Column("turn", sa.Integer(), nullable=True),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["trace_key"], ["trace.trace_key"], name=op.f("fk_span_trace_key")),
        sa.PrimaryKeyConstraint("span_key", name=op.f("pk_span")),
    )
    with op.batch_alter_table("span", schema=None) as batch_op:
        batch_op.create_index("ix_span_span_id", ["span_id"], unique=False)
        batch_op.create_index("ix_span_trace_key_seq", ["trace_key", "seq"], unique=True)

    op.create_table(
        "span_detail",
        sa.Column("trace_key", sa.Integer(), nullable=False),
        sa.Column("first_seq", sa.Integer(), nullable=False, comment="the first of the spans that this row holds"),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="JSON list, zstd: a span's remaining columns each"),
        sa.ForeignKeyConstraint(["trace_key"], ["trace.trace_key"], name=op.f("fk_span_detail_trace_key")),
        sa.PrimaryKeyConstraint("trace_key", "first_seq", name=op.f("pk_span_detail")),
    )
    op.create_table(
        "citation",
        sa.Column("citation_key", sa.Integer(), nullable=False),
        sa.Column("finding_key", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("cite", sa.Text(), nullable=False, comment="as the judge wrote it"),
        sa.Column("span_id", sa.Text(), nullable=True, comment="empty: resolves to no span of the trace"),
        sa.ForeignKeyConstraint(["finding_key"], ["finding.finding_key"], name=op.f("fk_citation_finding_key")),
        sa.PrimaryKeyConstraint("citation_key", name=op.f("pk_citation")),
        sa.UniqueConstraint("finding_key", "position", name=op.f("uq_citation_finding_key_position")),
    )
    op.create_table(
        "finding_review",
        sa.Column("row_key", sa.Integer(), nullable=False),
        sa.Column("finding_key", sa.Integer(), nullable=False),
        sa.Column(
            "review", sa.Text(), nullable=True, comment="valid new error, false alarm, duplicate; empty when cleared"
        ),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("label_id", sa.Text(), nullable=True, comment="the candidate label that came of it"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.ForeignKeyConstraint(["finding_key"], ["finding.finding_key"], name=op.f("fk_finding_review_finding_key")),
        sa.PrimaryKeyConstraint("row_key", name=op.f("pk_finding_review")),
    )
    with op.batch_alter_table("finding_review", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_finding_review_finding_key"), ["finding_key"], unique=False)

    op.create_table(
        "joint_finding",
        sa.Column("finding_key", sa.Integer(), nullable=False, comment="of the joint verdict"),
        sa.Column("member_key", sa.Integer(), nullable=False, comment="a member's finding"),
        sa.ForeignKeyConstraint(["finding_key"], ["finding.finding_key"], name=op.f("fk_joint_finding_finding_key")),
        sa.ForeignKeyConstraint(["member_key"], ["finding.finding_key"], name=op.f("fk_joint_finding_member_key")),
        sa.PrimaryKeyConstraint("finding_key", "member_key", name=op.f("pk_joint_finding")),
    )
    with op.batch_alter_table("joint_finding", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_joint_finding_member_key"), ["member_key"], unique=False)

    op.create_table(
        "match",
        sa.Column("row_key", sa.Integer(), nullable=False),
        sa.Column("label_id", sa.Text(), nullable=False),
        sa.Column("finding_key", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False, comment="proposed, confirmed, rejected"),
        sa.Column("author", sa.Text(), nullable=False, comment="a person; 'auto' for proposals of the rule"),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False, comment="JSON list"),
        sa.Column("localized", sa.Boolean(), nullable=False, comment="a citation resolves to a span of the error"),
        sa.Column(
            "withdrawn",
            sa.Boolean(),
            nullable=False,
            comment="a proposal that a later run no longer makes, or a withdrawn decision",
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="UTC microseconds since 1970"),
        sa.ForeignKeyConstraint(["finding_key"], ["finding.finding_key"], name=op.f("fk_match_finding_key")),
        sa.PrimaryKeyConstraint("row_key", name=op.f("pk_match")),
    )
    with op.batch_alter_table("match", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_match_finding_key"), ["finding_key"], unique=False)
        batch_op.create_index("ix_match_label_id_finding_key", ["label_id", "finding_key"], unique=False)
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE span_fts USING fts5("
            "body, content='', detail='none', prefix='1 2 3', tokenize='unicode61 remove_diacritics 2')"
        )
    else:
        op.execute("CREATE TABLE span_search (span_key INTEGER PRIMARY KEY, body tsvector NOT NULL)")
        op.execute("CREATE INDEX ix_span_search_body ON span_search USING gin (body) WITH (fastupdate = off)")


def downgrade() -> None:
    """Refuse: there is no earlier schema."""
    raise NotImplementedError("there is no schema before this one. Try: choose a new home")
