"""The types of an agent trace: spans in reading order, the messages said once, what ingest doubts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
SpanKind = Literal[
    "AGENT", "CHAIN", "LLM", "TOOL", "RETRIEVER", "EMBEDDING", "RERANKER",
    "GUARDRAIL", "EVALUATOR", "PROMPT", "EVENT", "UNKNOWN",
]  # fmt: skip
SPAN_KINDS: tuple[SpanKind, ...] = get_args(SpanKind)
Clock = Literal["wall", "sim"]
Status = Literal["OK", "ERROR", "UNSET"]


class Column(NamedTuple):
    """One column of the span table; `type` names an Arrow type (see `ingest.table.ARROW_TYPES`)."""

    name: str
    type: str
    meaning: str


SPAN_COLUMNS: tuple[Column, ...] = (
    Column("trace_id", "text", "the trace this span belongs to"),
    Column("seq", "int", "position in reading order, from 0: parents first, siblings by start time, then source order"),
    Column("span_id", "text", "16 lower-case hex digits as OpenTelemetry writes it, else the source's own text"),
    Column("parent_span_id", "text", "the parent as the source names it, kept also when no such span is in the trace"),
    Column("depth", "int", "0 for a root; an orphan counts as a root"),
    Column("name", "text", "the span's name in the source"),
    Column("kind", "text", "one of `SPAN_KINDS`: the names of OpenInference, EVENT and UNKNOWN"),
    Column("agent", "text", "the agent (thread of conversation) this span works for"),
    Column("start_time", "time", "UTC, microseconds"),
    Column("end_time", "time", "UTC, microseconds"),
    Column("duration_s", "real", "seconds; a negative duration is clamped to 0 with a warning"),
    Column("clock", "text", "wall or sim; times of different clocks are never subtracted"),
    Column("status", "text", "OK, ERROR or UNSET"),
    Column("status_message", "text", "the source's message, mostly an exception"),
    Column("input", "text", "input that is not messages"),
    Column("output", "text", "output that is not messages"),
    Column("input_messages", "messages", "messages sent to the model, in order"),
    Column("output_messages", "messages", "messages the model answered with, in order"),
    Column("tool_name", "text", "the tool called, for TOOL spans"),
    Column("tool_arguments", "text", "the arguments as the source holds them, mostly JSON text"),
    Column("tool_call_id", "text", "the id that joins this call with the model's tool call"),
    Column("model", "text", "the model's name"),
    Column("prompt_tokens", "int", "empty where the source cannot count (never 0 for unknown)"),
    Column("completion_tokens", "int", "empty where the source cannot count"),
    Column("total_tokens", "int", "empty where the source cannot count"),
    Column("reasoning_tokens", "int", "empty where the source cannot count"),
    Column("turn", "int", "turn of the conversation with the user, from 0 (GAIA2)"),
    Column("step", "int", "step of the agent, as the source numbers it"),
    Column("events", "json", "span events: name, time, attributes"),
    Column("links", "json", "span links: trace_id, span_id, attributes"),
    Column("attributes", "json", "every other attribute of the source"),
    Column("warnings", "texts", "what ingest doubts about this span, each 'code: detail'"),
)  # fmt: skip


class IngestError(Exception):
    """Input that cannot be read. `place` is where in the file, `remedy` what the reader of the message can do.

    `lost` counts the bytes of a damaged part that could not be read, where that is known.
    """

    def __init__(self, reason: str, *, place: str = "", remedy: str = "", lost: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.place, self.remedy, self.lost = reason, place, remedy, lost


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """One input, or one trace of it, that could not be taken; the rest of the batch goes on."""

    file: str
    place: str
    reason: str
    remedy: str
    lost: int = 0
    """Bytes of a damaged part that could not be read, where that is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LooseLogs(Rejected):
    """Log records of traces whose spans stand in another file; a store keeps them until those come.

    `requests` holds each trace's id and its records as an OTLP/JSON request.
    """

    requests: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call inside a message; `arguments` is the text as the source holds it (None for JSON null)."""

    name: str | None
    arguments: str | None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What was said, once. `content` is text; a picture or a file stands in it as a placeholder.

    `reasoning` is what the model thought before it said so, where the source tells the two apart.
    """

    role: str | None
    content: str | None
    tool_calls: tuple[ToolCall, ...] = ()
    name: str | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """One span. Times are UTC microseconds since 1970; messages are positions in `Trace.messages`."""

    trace_id: str
    seq: int
    span_id: str
    parent_span_id: str | None
    depth: int
    name: str
    kind: SpanKind
    agent: str | None
    start_time: int | None
    end_time: int | None
    duration_s: float | None
    clock: Clock
    status: Status
    status_message: str | None
    input: str | None
    output: str | None
    input_messages: tuple[int, ...]
    output_messages: tuple[int, ...]
    tool_name: str | None
    tool_arguments: str | None
    tool_call_id: str | None
    model: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    reasoning_tokens: int | None
    turn: int | None
    step: int | None
    events: tuple[dict[str, Json], ...]
    links: tuple[dict[str, Json], ...]
    attributes: Mapping[str, Json]
    warnings: tuple[str, ...]


@dataclass(kw_only=True, slots=True)
class SpanDraft:
    """A span as a reader found it, in source order; `assemble` gives it its place in the tree."""

    span_id: str
    parent_span_id: str | None = None
    name: str = ""
    kind: SpanKind = "UNKNOWN"
    agent: str | None = None
    start_time: int | None = None
    end_time: int | None = None
    clock: Clock = "wall"
    status: Status = "UNSET"
    status_message: str | None = None
    input: str | None = None
    output: str | None = None
    input_messages: Sequence[int] = ()
    output_messages: Sequence[int] = ()
    tool_name: str | None = None
    tool_arguments: str | None = None
    tool_call_id: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    turn: int | None = None
    step: int | None = None
    events: Sequence[dict[str, Json]] = ()
    links: Sequence[dict[str, Json]] = ()
    attributes: dict[str, Json] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogRecord:
    """A log record beside a span. `holds_answer` marks text that may hold the right answer: never shown to a judge."""

    span_id: str | None
    body: Json
    holds_answer: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedEvent:
    """An oracle event of a GAIA2 scenario; `matched` is True or None (unknown), never False by guess."""

    event_id: str
    app: str | None
    function: str | None
    args: Json
    relative_time: float | None
    event_time: float | None
    comparator: str | None
    depends_on: tuple[str, ...]
    turn: int | None
    matched: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What the benchmark itself said of an execution; `score` None means unscored, with `reason` saying why."""

    decision: str | None
    score: float | None
    reason: str | None
    rationale: str | None
    source: str
    row_status: str | None = None
    has_exception: bool | None = None
    exception_type: str | None = None
    exception_message: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where a trace was read: the file's name, the place in it, and the very bytes (kept by the store).

    Of a file too long to be held, `data` is empty and the first `size` bytes stand at `path`.
    """

    file: str
    place: str = ""
    data: bytes = b""
    path: str = ""
    size: int = 0
    warnings: tuple[str, ...] = ()
    """What was left out of the bytes before a format read them: warnings of each trace in them."""

    @property
    def stem(self) -> str:
        """The file's name up to its first dot, without its folders."""
        return self.file.replace("\\", "/").rpartition("/")[2].partition(".")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """The record of one task of an agent. `spans` stand in reading order: `spans[i].seq == i`.

    `goal` is what the user asked, `final_answer` what the agent answered, both None where the trace does
    not say. `attributes` hold what belongs to the trace and to no span. `warnings` are those of the trace;
    `all_warnings` adds those of its spans.
    """

    trace_id: str
    format: str
    source: Source
    spans: tuple[Span, ...]
    messages: tuple[Message, ...]
    goal: str | None = None
    final_answer: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)
    logs: tuple[LogRecord, ...] = ()
    expected_events: tuple[ExpectedEvent, ...] = ()
    outcome: Outcome | None = None
    warnings: tuple[str, ...] = ()

    @property
    def all_warnings(self) -> tuple[str, ...]:
        return (*self.warnings, *(warning for span in self.spans for warning in span.warnings))

    def leaf_llm_spans(self) -> tuple[Span, ...]:
        """LLM spans with no LLM span below them: the only ones whose tokens may be summed."""
        parents = {span.span_id: span.parent_span_id for span in self.spans}
        kinds = {span.span_id: span.kind for span in self.spans}
        above_llm: set[str] = set()
        for span in self.spans:
            if span.kind != "LLM":
                continue
            parent = span.parent_span_id
            while parent is not None and parent in parents and parent not in above_llm:
                above_llm.add(parent)
                parent = parents[parent]
        return tuple(span for span in self.spans if kinds[span.span_id] == "LLM" and span.span_id not in above_llm)
