"""The tables of traces. The store of opinions adds its own to the same `metadata`."""

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# Times are UTC microseconds since 1970. Blobs are zstd; JSON is text.
source = Table(
    "source",
    metadata,
    Column("source_key", Integer, primary_key=True),
    Column("digest", Text, nullable=False, unique=True, comment="SHA-256 of the bytes, 64 hex digits"),
    Column("file", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("size", BigInteger, nullable=False, comment="bytes before compression"),
    Column("body", LargeBinary, nullable=False, comment="the very bytes, zstd"),
    Column("ingested_at", BigInteger, nullable=False),
)

source_part = Table(
    "source_part",
    metadata,
    Column("source_key", ForeignKey("source.source_key"), primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("body", LargeBinary, nullable=False, comment="the next bytes of a source too long for one body, zstd"),
)

trace = Table(
    "trace",
    metadata,
    Column("trace_key", Integer, primary_key=True),
    Column("trace_id", Text, nullable=False, unique=True),
    Column("digest", Text, nullable=False, comment="blake2b of the content, whatever the file looked like"),
    Column("source_key", ForeignKey("source.source_key"), nullable=False, index=True),
    Column("file", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("name", Text, nullable=False, comment="name of the first root"),
    Column("goal", Text, comment="what the user asked"),
    Column("final_answer", Text),
    Column("attributes", Text, nullable=False, comment="JSON: what belongs to the whole trace and to no span"),
    Column("warnings", Text, nullable=False, comment="JSON: list of 'code: detail'"),
    Column("status", Text, nullable=False, comment="ERROR when the first root failed, else its status"),
    Column("spans", Integer, nullable=False),
    Column("messages", Integer, nullable=False),
    Column("llm_spans", Integer, nullable=False),
    Column("tool_spans", Integer, nullable=False),
    Column("error_spans", Integer, nullable=False),
    Column("warning_count", Integer, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("agents", Text, nullable=False, comment="JSON list"),
    Column("models", Text, nullable=False, comment="JSON list"),
    Column("tools", Text, nullable=False, comment="JSON list"),
    Column("start_time", BigInteger),
    Column("end_time", BigInteger),
    Column("duration_s", Float, comment="first start to last end on the wall clock, else on the simulated one"),
    Column("prompt_tokens", BigInteger, comment="sum over leaf LLM spans; empty where none can count"),
    Column("completion_tokens", BigInteger),
    Column("total_tokens", BigInteger),
    Column("outcome", Text, comment="JSON: the benchmark's own verdict"),
    Column("ingested_at", BigInteger, nullable=False),
)

span = Table(
    "span",
    metadata,
    Column("span_key", Integer, primary_key=True),
    Column("trace_key", ForeignKey("trace.trace_key"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("span_id", Text, nullable=False),
    Column("parent_span_id", Text),
    Column("depth", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("agent", Text),
    Column("start_time", BigInteger),
    Column("end_time", BigInteger),
    Column("clock", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("tool_name", Text),
    Column("model", Text),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("total_tokens", BigInteger),
    Column("reasoning_tokens", BigInteger),
    Column("turn", Integer),
    Column("step", Integer),
    Index("ix_span_trace_key_seq", "trace_key", "seq", unique=True),
    Index("ix_span_span_id", "span_id"),
)

span_detail = Table(
    "span_detail",
    metadata,
    Column("trace_key", ForeignKey("trace.trace_key"), primary_key=True),
    Column("first_seq", Integer, primary_key=True, comment="the first of the spans that this row holds"),
    Column("body", LargeBinary, nullable=False, comment="JSON list, zstd: a span's remaining columns each"),
)

text_pack = Table(
    "text_pack",
    metadata,
    Column("pack_key", Integer, primary_key=True),
    Column("body", LargeBinary, nullable=False, comment="texts one after another, UTF-8, zstd"),
)

text = Table(
    "text",
    metadata,
    Column("text_key", Integer, primary_key=True),
    Column("hash", LargeBinary(16), nullable=False, unique=True),
    Column("pack_key", ForeignKey("text_pack.pack_key"), nullable=False),
    Column("start", Integer, nullable=False, comment="bytes into the pack"),
    Column("size", Integer, nullable=False, comment="bytes"),
)

message = Table(
    "message",
    metadata,
    Column("trace_key", ForeignKey("trace.trace_key"), primary_key=True),
    Column("message", Integer, primary_key=True, comment="position in the trace's message table"),
    Column("role", Text),
    Column("content", Text, comment="the text when shorter than 256 characters"),
    Column("content_key", ForeignKey("text.text_key"), comment="the text otherwise"),
    Column("tool_calls", Text, comment="JSON list of [name, arguments, id]; a long text by reference"),
    Column("name", Text),
    Column("tool_call_id", Text),
    Column("reasoning", Text, comment="JSON text; a long one by reference"),
    Column("first_seq", Integer, comment="the first span in reading order that holds it"),
)

log = Table(
    "log",
    metadata,
    Column("log_key", Integer, primary_key=True),
    Column("trace_key", ForeignKey("trace.trace_key"), nullable=False, index=True),
    Column("span_id", Text),
    Column("holds_answer", Integer, nullable=False, comment="1: may hold the right answer, never shown to a judge"),
    Column("body", LargeBinary, nullable=False, comment="JSON, zstd"),
)

expected_event = Table(
    "expected_event",
    metadata,
    Column("trace_key", ForeignKey("trace.trace_key"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("body", Text, nullable=False, comment="JSON of an oracle event"),
    Column("matched", Integer, comment="1 matched, empty unknown"),
)

inbox = Table(
    "inbox",
    metadata,
    Column("inbox_key", Integer, primary_key=True),
    Column("trace_id", Text, nullable=False, index=True),
    Column("body", LargeBinary, nullable=False, comment="one OTLP/JSON request of this trace alone, zstd"),
    Column("has_root", Integer, nullable=False, comment="1: holds an ended span without a parent"),
    Column("received_at", BigInteger, nullable=False),
)

TRACE_TABLES = tuple(metadata.sorted_tables)
"""The tables of this module, each after those that it refers to."""
