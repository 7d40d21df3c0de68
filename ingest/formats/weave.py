"""W&B Weave: calls as its service answers `calls/stream_query` (a line each), as a list, or as its pages download them.

Fields: Weave's call schema. The feedback of a call may hold the right answer: it goes to the logs.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from tracejury.ingest.formats.exports import opinion
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import Intake, read_collected
from tracejury.ingest.formats.rows import columns_of, opened, take_rows
from tracejury.ingest.formats.spans import kept
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.times import integer
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, SpanKind, Trace

NAME = "weave"
MERGES = True

_KINDS: dict[str, SpanKind] = {
    "llm": "LLM", "tool": "TOOL", "agent": "AGENT", "scorer": "EVALUATOR", "chain": "CHAIN", "retriever": "RETRIEVER",
    "embedding": "EMBEDDING",
}  # fmt: skip
_MODEL_CALL = re.compile(
    r"chat\.completions|\bcompletions?\.create|messages\.(create|stream)|responses\.create|generate_?content"
    r"|\ba?completion\b|converse|chat\.complete|langchain\.llm",
    re.IGNORECASE,
)
"""Operations of the clients that Weave patches, each a call of a model."""
_COUNTS = (
    ("prompt_tokens", ("prompttokens", "inputtokens", "prompttokencount")),
    ("completion_tokens", ("completiontokens", "outputtokens", "candidatestokencount")),
    ("total_tokens", ("totaltokens", "totaltokencount")),
)


def sniff(sample: FileSample) -> bool:
    """`op_name` with the ids and times of a call."""
    keys = sample.keys | columns_of(sample)
    return {"op_name", "trace_id", "started_at"} <= keys


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file."""
    yield from read_collected(source, collect, format=NAME)


def collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    """Add the span of each call; yields and counts the rows that hold none."""
    return (
        yield from take_rows(
            source,
            lambda row: _take(Fields(row.values), intake, row.place),
            lists=("calls", "data", "raw_logging_results"),
        )
    )


def _take(fields: Fields, intake: Intake, place: str) -> None:
    span_id, trace_id = fields.text("id", "callid"), fields.text("traceid")
    if span_id is None or trace_id is None:
        raise IngestError("a call without id or trace_id", place=place, remedy="export the columns id and trace_id too")
    operation = fields.text("opname") or ""
    short = operation.rsplit("/", 1)[-1].split(":")[0]
    draft = SpanDraft(span_id=span_id, parent_span_id=fields.text("parentid"), warnings=fields.warnings)
    draft.name = fields.text("displayname") or short
    draft.start_time, draft.end_time = fields.time("startedat"), fields.time("endedat")
    inputs, output = _side(fields, "inputs"), _side(fields, "output")
    attributes, summary = fields.nested("attributes"), fields.nested("summary")
    summary = summary or fields.below("summary.")
    draft.kind = _kind(attributes, operation)
    exception = fields.text("exception")
    status = Fields(Fields(summary).nested("weave")).text("status")
    draft.status = "ERROR" if exception or status == "error" else "OK" if status == "success" else "UNSET"
    draft.status_message = exception
    _usage(draft, summary, inputs, output)
    draft.attributes = {"op_name": operation, **{f"weave.{key}": kept(item) for key, item in attributes.items()}}
    draft.attributes.update(
        {f"export.{k}": kept(v) for k, v in (("input", inputs), ("output", output)) if v is not None}
    )
    _feedback(summary, trace_id, span_id, intake)
    draft.attributes.update({f"summary.{key}": kept(item) for key, item in summary.items()})
    draft.attributes.update({key: kept(opened(item)) for key, item in fields.rest().items()})
    intake.spans.append((trace_id, draft))


def _side(fields: Fields, name: str) -> Json:
    """What went in or came out; a table spreads an object over columns `inputs.x`."""
    value = opened(fields.take(name))
    spread = {key: opened(item) for key, item in fields.below(f"{name}.").items()}
    return spread if value is None and spread else value


def _kind(attributes: dict[str, Json], operation: str) -> SpanKind:
    inner = attributes.get("weave")
    for source in (attributes, inner if isinstance(inner, dict) else {}):
        if isinstance(kind := source.get("kind"), str) and kind.lower() in _KINDS:
            return _KINDS[kind.lower()]
    return "LLM" if _MODEL_CALL.search(operation) else "CHAIN"


def _usage(draft: SpanDraft, summary: dict[str, Json], inputs: Json, output: Json) -> None:
    """Model and tokens of a model call, of its summary, else of its answer: a parent repeats the sums of its calls,
    which stay in the attributes.
    """
    if draft.kind != "LLM":
        return
    usage = opened(summary.get("usage"))
    by_model = usage if isinstance(usage, dict) else {}
    named = inputs.get("model") if isinstance(inputs, dict) else None
    draft.model = named if isinstance(named, str) else next(iter(by_model), None)
    output_usage = output.get("usage") if isinstance(output, dict) else None
    only = next(iter(by_model.values())) if len(by_model) == 1 else output_usage if not by_model else None
    if isinstance(only, dict):
        fields = Fields(only)
        for column, names in _COUNTS:
            setattr(draft, column, integer(fields.take(*names)))


def _feedback(summary: dict[str, Json], trace_id: str, span_id: str, intake: Intake) -> None:
    inner = summary.get("weave")
    if isinstance(inner, dict) and inner.get("feedback"):
        summary["weave"] = {key: item for key, item in inner.items() if key != "feedback"}
        intake.logs.append(opinion("feedback", trace_id, span_id, inner["feedback"]))
