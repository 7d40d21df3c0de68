"""The tables of opinions, beside the store's tables of traces. Rows are appended, never changed or deleted.

The exceptions are marked: `annotator`, `invitation`, `queue`, `queue_item`, `assignment`, `lease`, `run`, `cell`,
`request`, `batch` and `matching` hold a state that moves forward; what changed in a queue stands in `audit`.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from tracejury.ingest.store.schema import metadata as metadata


def _key(name: str) -> Column[int]:
    return Column(name, Integer, primary_key=True)


def _when(name: str = "created_at", *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable, comment="UTC microseconds since 1970")


setting = Table(
    "setting", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False), _when()
)

annotator = Table(
    "annotator",
    metadata,
    Column("annotator", Text, primary_key=True, comment="the name that stands at every label"),
    Column("display_name", Text, nullable=False),
    Column("kind", Text, nullable=False, comment="person, imported or adjudicated"),
    Column("role", Text, nullable=False, comment="annotator, adjudicator, researcher or admin"),
    Column("email", Text, unique=True),
    Column("password_hash", Text),
    Column("settings", Text, nullable=False, comment="JSON: key map and the like"),
    Column("active", Boolean, nullable=False),
    _when(),
)

invitation = Table(
    "invitation",
    metadata,
    _key("invitation_key"),
    Column("secret_hash", Text, nullable=False, unique=True, comment="SHA-256 of the link's secret, 256 random bits"),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger, comment="empty while it may be used"),
    Column("revoked_at", BigInteger),
    _when(),
)

guideline = Table(
    "guideline",
    metadata,
    _key("guideline_key"),
    Column("version", Integer, nullable=False, unique=True),
    Column("body", Text, nullable=False, comment="JSON: Markdown by dimension"),
    Column("author", Text, nullable=False),
    Column("note", Text, nullable=False),
    _when(),
)

acknowledgement = Table(
    "acknowledgement",
    metadata,
    _key("acknowledgement_key"),
    Column("annotator", Text, nullable=False),
    Column("version", Integer, nullable=False),
    _when(),
)

queue = Table(
    "queue",
    metadata,
    _key("queue_key"),
    Column("name", Text, nullable=False, unique=True),
    Column("k", Integer, nullable=False, comment="people an overlap item wants"),
    Column("overlap_share", Float, nullable=False, comment="share of items that want k people, 0..1"),
    Column("repeat_share", Float, nullable=False, comment="share of items shown to a person twice, hidden, 0..1"),
    Column("blind", Boolean, nullable=False),
    Column("seed", Integer, nullable=False),
    Column("lease_s", Integer, nullable=False),
    Column("hide", Text, nullable=False, comment="JSON list: agent, model"),
    Column("filter", Text, nullable=False, comment="JSON: how the traces were chosen"),
    Column("author", Text, nullable=False),
    Column("guideline_version", Integer, comment="what people must have read; empty: the newest"),
    Column("due_at", BigInteger, comment="when it is wanted"),
    Column(
        "answers_by",
        Text,
        comment="whose labels are the correct answers of practice; empty: the adjudicated, the author's",
    ),
    Column("after_key", Integer, comment="the practice queue that a person must have passed; empty: none"),
    Column("pass_mark", Integer, comment="percent of the points of practice that open the queue"),
    Column("closed_at", BigInteger, comment="nothing is handed out since; empty while open"),
    _when(),
)

queue_item = Table(
    "queue_item",
    metadata,
    _key("item_key"),
    Column("queue_key", ForeignKey("queue.queue_key"), nullable=False, index=True),
    Column("trace_id", Text, nullable=False, index=True),
    Column("position", Integer, nullable=False),
    Column("wanted", Integer, nullable=False, comment="people this item wants"),
    Column("is_practice", Boolean, nullable=False),
    Column("retired_at", BigInteger, comment="taken out of the queue; its labels stay"),
    Column("inclusion", Float, comment="chance with which the trace was drawn; empty where there is none"),
    UniqueConstraint("queue_key", "trace_id"),
)

corpus_sample = Table(
    "corpus_sample",
    metadata,
    _key("sample_key"),
    Column("url", Text, nullable=False, comment="the corpus that it was drawn from"),
    Column("method", Text, nullable=False, comment="random, stratum or disagreement"),
    Column("seed", Integer, nullable=False),
    Column("population", Integer, nullable=False, comment="traces of the corpus that could be drawn"),
    Column("author", Text, nullable=False),
    _when(),
)

corpus_sample_trace = Table(
    "corpus_sample_trace",
    metadata,
    Column("sample_key", ForeignKey("corpus_sample.sample_key"), primary_key=True),
    Column("trace_id", Text, primary_key=True),
    Column("digest", Text, nullable=False, comment="of the content that was drawn"),
    Column("stratum", Text, nullable=False),
    Column("inclusion", Float, nullable=False, comment="probability with which it was drawn, above 0 and up to 1"),
)

assignment = Table(
    "assignment",
    metadata,
    _key("assignment_key"),
    Column("queue_key", ForeignKey("queue.queue_key"), nullable=False, index=True),
    Column("item_key", ForeignKey("queue_item.item_key"), comment="empty: the whole queue"),
    Column("annotator", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("withdrawn_at", BigInteger, comment="empty while it holds"),
    _when(),
)

lease = Table(
    "lease",
    metadata,
    _key("lease_key"),
    Column("item_key", ForeignKey("queue_item.item_key"), nullable=False, index=True),
    Column("annotator", Text, nullable=False),
    Column("occasion", Integer, nullable=False, comment="0, 1 for the hidden repeat, 2 for practice"),
    Column("taken_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("outcome", Text, comment="counted, extra, skipped, expired; empty while open"),
    Column("late", Boolean, nullable=False),
    UniqueConstraint("item_key", "annotator", "occasion"),
)

op = Table(
    "op",
    metadata,
    Column("op_id", Text, primary_key=True),
    Column("annotator", Text, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("occasion", Integer, nullable=False),
    Column("revision", Integer, nullable=False, comment="of this person's work on this trace, from 1"),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False, comment="JSON as it came"),
    Column("client_time", Text),
    _when(),
    UniqueConstraint("annotator", "trace_id", "occasion", "revision"),
)

error_label = Table(
    "error_label",
    metadata,
    _key("row_key"),
    Column("label_id", Text, nullable=False),
    Column("trace_id", Text, nullable=False, index=True),
    Column("trace_digest", Text, comment="empty while the trace is not in the workspace"),
    Column("annotator", Text, nullable=False),
    Column("occasion", Integer, nullable=False),
    Column("span_ids", Text, nullable=False, comment="JSON list"),
    Column("dimensions", Text, nullable=False, comment="JSON list"),
    Column("impact", Text, comment="low, medium, high; empty while unfinished"),
    Column("category", Text, comment="TRAIL category"),
    Column("description", Text, nullable=False),
    Column("evidence", Text, nullable=False, comment="JSON list"),
    Column("phase", Text, nullable=False, comment="blind or revealed"),
    Column("attributes", Text, nullable=False, comment="JSON: what an import brought besides"),
    Column("deleted", Boolean, nullable=False),
    Column("author", Text, nullable=False, comment="who wrote this revision"),
    Column("guideline_version", Text),
    Column("op_id", Text),
    _when(),
    Index("ix_error_label_label_id_row_key", "label_id", "row_key"),
    Index("ix_error_label_annotator_trace_id", "annotator", "trace_id"),
)

score_label = Table(
    "score_label",
    metadata,
    _key("row_key"),
    Column("trace_id", Text, nullable=False, index=True),
    Column("trace_digest", Text),
    Column("annotator", Text, nullable=False),
    Column("occasion", Integer, nullable=False),
    Column("dimension", Text, nullable=False),
    Column("value", Float, comment="empty when cleared or not applicable"),
    Column("not_applicable", Boolean, nullable=False),
    Column("note", Text, nullable=False),
    Column("confidence", Integer),
    Column("phase", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("guideline_version", Text),
    Column("op_id", Text),
    _when(),
    Index("ix_score_label_annotator_trace_id", "annotator", "trace_id"),
)

review = Table(
    "review",
    metadata,
    _key("row_key"),
    Column("trace_id", Text, nullable=False, index=True),
    Column("trace_digest", Text),
    Column("annotator", Text, nullable=False),
    Column("occasion", Integer, nullable=False),
    Column("status", Text, nullable=False, comment="open, submitted, skipped"),
    Column("no_error", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("active_ms", BigInteger, comment="time at work, pauses left out"),
    Column("revealed", Boolean, nullable=False, comment="the judges' errors have been shown to this person"),
    Column("item_key", Integer),
    Column("guideline_version", Text),
    Column("op_id", Text),
    _when(),
    Index("ix_review_annotator_trace_id", "annotator", "trace_id"),
)

seen = Table(
    "seen",
    metadata,
    _key("seen_key"),
    Column("annotator", Text, nullable=False),
    Column("trace_id", Text, nullable=False, index=True),
    Column("what", Text, nullable=False, comment="where the person saw verdicts or labels of others on the trace"),
    _when(),
    UniqueConstraint("annotator", "trace_id", "what"),
)

comment = Table(
    "comment",
    metadata,
    _key("row_key"),
    Column("comment_id", Text, nullable=False, index=True),
    Column("kind", Text, nullable=False, comment="comment, return (of a submitted trace) or message"),
    Column("trace_id", Text, index=True, comment="empty: a message that is about no trace"),
    Column("span_id", Text),
    Column("label_id", Text, comment="the error label that it is about"),
    Column("occasion", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("mentions", Text, nullable=False, comment="JSON list of people; of a message without any: everyone"),
    Column(
        "while_blind",
        Boolean,
        nullable=False,
        comment="of a return: its author says that it tells nothing of judges or others, so it may be read while blind",
    ),
    Column("deleted", Boolean, nullable=False),
    Column("author", Text, nullable=False),
    _when(),
)

comment_read = Table(
    "comment_read",
    metadata,
    _key("read_key"),
    Column("comment_id", Text, nullable=False, index=True),
    Column("annotator", Text, nullable=False, comment="who has read it or was told of it"),
    _when(),
    UniqueConstraint("annotator", "comment_id"),
)

judge_version = Table(
    "judge_version",
    metadata,
    Column("judge_version", Text, primary_key=True, comment="hash of rubric, prompt order, model, parameters, mode"),
    Column("rubric", Text, nullable=False, comment="key of the rubric (LC ...), or the name of an imported judge"),
    Column("model", Text, nullable=False),
    Column("rubric_version", Text, nullable=False),
    Column("rubric_body", Text, nullable=False, comment="JSON: the rubric as it was"),
    Column("prompt_order", Text, nullable=False),
    Column("agent_text", Text, nullable=False, comment="the agent description given to the judge"),
    Column("parameters", Text, nullable=False, comment="JSON: what was sent to the provider"),
    Column("mode", Text, nullable=False, comment="trace, span, jury, checks or imported"),
    _when(),
)

run = Table(
    "run",
    metadata,
    _key("run_key"),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False, comment="queued, running, paused, out of budget, cancelled, done; moves"),
    Column("spec", Text, nullable=False, comment="JSON: judges, model, repeats, mode, limits"),
    Column("author", Text, nullable=False),
    Column("budget_usd", Float),
    Column("owner", Text, comment="the process that works on it, by a name that no other has; empty: none"),
    Column("epoch", Integer, nullable=False, default=0, comment="counts owners: an earlier one writes nothing more"),
    Column("heartbeat_at", BigInteger, comment="the owner's last heartbeat by the database's clock"),
    Column("message", Text, nullable=False, comment="why it stopped"),
    Column("ended_at", BigInteger),
    _when(),
)

cell = Table(
    "cell",
    metadata,
    _key("cell_key"),
    Column("run_key", ForeignKey("run.run_key"), nullable=False),
    Column("judge_version", ForeignKey("judge_version.judge_version"), nullable=False),
    Column("rubric", Text, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("trace_digest", Text),
    Column("repeat", Integer, nullable=False),
    Column(
        "state",
        Text,
        nullable=False,
        comment="pending, running (the run's owner is at it), then one of records.CELL_STATES; moves",
    ),
    Column("score", Integer),
    Column("criteria", Text),
    Column("rationale", Text),
    Column("reason", Text, comment="why there is no score"),
    Column("notes", Text, comment="JSON list"),
    Column("model", Text),
    Column("parameters", Text, comment="JSON"),
    Column("prompt_hash", Text),
    Column("raw_reply", LargeBinary, comment="UTF-8, zstd"),
    Column("repair_reply", LargeBinary),
    Column("reasoning", LargeBinary, comment="what came beside the answer, UTF-8, zstd"),
    Column("finish_reason", Text),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("cost_usd", Float),
    Column("latency_s", Float),
    Column("attempts", Integer, nullable=False),
    Column("finished_at", BigInteger),
    UniqueConstraint("run_key", "judge_version", "trace_id", "repeat"),
    Index("ix_cell_trace_id_rubric", "trace_id", "rubric"),
    Index("ix_cell_run_key_state_rubric_score_cost_usd", "run_key", "state", "rubric", "score", "cost_usd"),
    Index("ix_cell_trace_id_state_score", "trace_id", "state", "score"),
    Index("ix_cell_judge_version_state_finished_at", "judge_version", "state", "finished_at"),
    Index("ix_cell_finished_at", "finished_at"),
    Index("ix_cell_run_key_finished_at", "run_key", "finished_at"),
)

reply = Table(
    "reply",
    metadata,
    _key("reply_key"),
    Column("cell_key", ForeignKey("cell.cell_key"), nullable=False, index=True),
    Column("request_hash", Text, nullable=False, comment="of model, parameters, prompt, form and turns"),
    Column("repeat", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="what came back, UTF-8, zstd"),
    Column("refusal", Text),
    Column("reasoning", LargeBinary, comment="what the provider sent beside it, UTF-8, zstd"),
    Column("finish_reason", Text),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Column("cache_write_tokens", BigInteger),
    Column("cost_usd", Float),
    Column("latency_s", Float),
    Column("attempts", Integer, nullable=False),
    Column("void", Boolean, nullable=False, comment="its cell was wanted again: never replayed"),
    _when(),
    Index("ix_reply_request_hash_repeat", "request_hash", "repeat"),
)

request = Table(
    "request",
    metadata,
    _key("request_key"),
    Column("cell_key", ForeignKey("cell.cell_key"), nullable=False, index=True),
    Column("request_hash", Text, nullable=False),
    Column("epoch", Integer, nullable=False, comment="of the run's owner that sent it"),
    Column("most_usd", Float, comment="the most it can cost; empty where no price is known"),
    Column("sent_at", BigInteger, nullable=False, comment="by the database's clock, written before it goes out"),
    Column("outcome", Text, comment="answered, failed, unknown (perhaps paid); empty while under way; moves"),
    Column("void", Boolean, nullable=False, comment="its cell was wanted again: no reason not to ask"),
    Column("batch_id", Text, index=True, comment="the provider's batch that it went in; empty: none, or not yet noted"),
)

batch = Table(
    "batch",
    metadata,
    Column("batch_id", Text, primary_key=True, comment="the provider's"),
    Column("run_key", ForeignKey("run.run_key"), nullable=False, index=True),
    Column("model", Text, nullable=False),
    Column("collected_at", BigInteger, comment="empty while its replies are not stored"),
    _when(),
)

finding = Table(
    "finding",
    metadata,
    _key("finding_key"),
    Column("cell_key", ForeignKey("cell.cell_key"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("description", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("dimension", Text),
    Column("impact", Text),
    Column("category", Text),
    Column("check_name", Text, comment="the offline check that found it"),
    Column("evidence_place", Text, comment="verbatim, found elsewhere, not found"),
    Column("evidence_span_id", Text),
    UniqueConstraint("cell_key", "position"),
)

citation = Table(
    "citation",
    metadata,
    _key("citation_key"),
    Column("finding_key", ForeignKey("finding.finding_key"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("cite", Text, nullable=False, comment="as the judge wrote it"),
    Column("span_id", Text, comment="empty: resolves to no span of the trace"),
    UniqueConstraint("finding_key", "position"),
)

jury_member = Table(
    "jury_member",
    metadata,
    Column("cell_key", ForeignKey("cell.cell_key"), primary_key=True, comment="the joint verdict"),
    Column("member_key", ForeignKey("cell.cell_key"), primary_key=True, index=True, comment="a member's verdict"),
)

joint_finding = Table(
    "joint_finding",
    metadata,
    Column("finding_key", ForeignKey("finding.finding_key"), primary_key=True, comment="of the joint verdict"),
    Column("member_key", ForeignKey("finding.finding_key"), primary_key=True, index=True, comment="a member's finding"),
)

match = Table(
    "match",
    metadata,
    _key("row_key"),
    Column("label_id", Text, nullable=False),
    Column("finding_key", ForeignKey("finding.finding_key"), nullable=False, index=True),
    Column("status", Text, nullable=False, comment="proposed, confirmed, rejected"),
    Column("author", Text, nullable=False, comment="a person; 'auto' for proposals of the rule"),
    Column("confidence", Float, nullable=False),
    Column("reasons", Text, nullable=False, comment="JSON list"),
    Column("localized", Boolean, nullable=False, comment="a citation resolves to a span of the error"),
    Column(
        "withdrawn",
        Boolean,
        nullable=False,
        comment="a proposal that a later run no longer makes, or a withdrawn decision",
    ),
    _when(),
    Index("ix_match_label_id_finding_key", "label_id", "finding_key"),
)

matching = Table(
    "matching",
    metadata,
    Column("cell_key", ForeignKey("cell.cell_key"), primary_key=True),
    Column("annotator", Text, primary_key=True, comment="whose errors were compared with the findings of the cell"),
    Column("matcher", Text, primary_key=True, comment="who compared them: the rule with its version, or a model"),
    Column("last_label", Integer, nullable=False, comment="newest row of error_label that was seen; moves"),
    _when(),
)

finding_review = Table(
    "finding_review",
    metadata,
    _key("row_key"),
    Column("finding_key", ForeignKey("finding.finding_key"), nullable=False, index=True),
    Column("review", Text, comment="valid new error, false alarm, duplicate; empty when cleared"),
    Column("author", Text, nullable=False),
    Column("label_id", Text, comment="the candidate label that came of it"),
    _when(),
)

adjudication = Table(
    "adjudication",
    metadata,
    _key("row_key"),
    Column("trace_id", Text, nullable=False, index=True),
    Column("version", Integer, nullable=False, comment="of the gold of this trace, from 1"),
    Column("author", Text, nullable=False),
    Column("subject", Text, nullable=False, comment="error, score or done"),
    Column("action", Text, nullable=False, comment="keep, merge, edit, reject, add, score, close"),
    Column("payload", Text, nullable=False, comment="JSON: labels taken, the result"),
    Column("reason", Text, nullable=False),
    _when(),
)

audit = Table(
    "audit",
    metadata,
    _key("row_key"),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False, comment="JSON"),
    _when(),
)
