"""Opik: a trace with its spans (`opik export`), and the traces and spans that its API and SDK give, page by page.

Fields: Opik's REST reference, `TracePublic` and `SpanPublic`. A trace is itself the root of its spans. Feedback scores
are other people's opinions and may hold the right answer: they go to the logs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from tracejury.ingest.formats.exports import as_text, opinion, without_wrapper
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import Intake, read_collected
from tracejury.ingest.formats.rows import columns_of, opened, take_rows
from tracejury.ingest.formats.spans import kept
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, SpanKind, Trace

NAME = "opik"
MERGES = True

_KINDS: dict[str, SpanKind] = {"llm": "LLM", "tool": "TOOL", "guardrail": "GUARDRAIL", "general": "CHAIN"}
_COUNTS = (
    ("prompt_tokens", ("prompttokens", "inputtokens")),
    ("completion_tokens", ("completiontokens", "outputtokens")),
    ("total_tokens", ("totaltokens",)),
)
_MARKS = frozenset({
    "parent_span_id", "total_estimated_cost", "error_info", "span_count", "thread_id", "last_updated_at",
    "feedback_scores", "llm_span_count",
})  # fmt: skip


def sniff(sample: FileSample) -> bool:
    """A project's id or name and times, with fields of Opik's own."""
    keys = sample.keys | columns_of(sample)
    return not keys.isdisjoint({"project_id", "project_name"}) and "start_time" in keys and len(_MARKS & keys) > 1


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file."""
    yield from read_collected(source, collect, format=NAME)


def collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    """Add the traces and spans of a file; yields and counts the rows that are neither."""
    bad = yield from take_rows(
        source, lambda row: _take(row.values, intake, row.place), lists=("content", "data", "traces")
    )
    _hang_on_traces(intake)
    return bad


def _take(values: dict[str, Json], intake: Intake, place: str) -> None:
    """A trace or a span, or a file of a trace and its spans."""
    file = Fields(values, warnings=intake.warnings)
    trace, spans = file.nested("trace"), list(file.objects("spans", code="unreadable_span"))
    if trace or not spans:
        _take_one(Fields(trace or values), intake, place)
    for fields in spans:
        _take_one(fields, intake, fields.path)


def _take_one(fields: Fields, intake: Intake, place: str) -> None:
    span_id = fields.text("id")
    if span_id is None:
        raise IngestError("a trace or span without id", place=place, remedy="export it again")
    trace_id = fields.text("traceid")
    draft = SpanDraft(span_id=span_id, parent_span_id=fields.text("parentspanid"), name=fields.text("name") or "")
    fields.warnings = draft.warnings
    kind = fields.text("type") if trace_id is not None else "general"
    draft.kind = _KINDS.get((kind or "").lower(), "UNKNOWN")
    draft.start_time, draft.end_time = fields.time("starttime"), fields.time("endtime")
    _error(draft, fields.inner("errorinfo"))
    draft.model = fields.text("model") if draft.kind == "LLM" else None
    usage = fields.inner("usage")
    for column, names in _COUNTS if draft.kind == "LLM" else ():
        setattr(draft, column, usage.count(*names))
    for side in ("input", "output"):
        if (value := without_wrapper(opened(fields.take(side)), side)) is not None:
            draft.attributes[f"export.{side}"] = kept(value)
    for item in fields.listed("feedbackscores"):
        intake.logs.append(opinion("score", trace_id or span_id, span_id, item))
    draft.attributes.update({"usage": usage.rest()} if usage.rest() else {})
    draft.attributes.update({key: kept(opened(item)) for key, item in fields.rest().items()})
    draft.attributes.setdefault("opik.type", "trace" if trace_id is None else kind or "")
    intake.spans.append((trace_id or span_id, draft))


def _error(draft: SpanDraft, error: Fields) -> None:
    if not error.raw:
        return
    kind, message = error.text("exceptiontype"), error.text("message")
    draft.status = "ERROR"
    draft.status_message = ": ".join(one for one in (kind, message) if one) or None
    draft.attributes.update(error.rest("error_info."))


def _hang_on_traces(intake: Intake) -> None:
    """Spans without a parent hang on their trace, where the file holds it."""
    roots = {draft.span_id for _, draft in intake.spans if draft.attributes.get("opik.type") == "trace"}
    for trace_id, draft in intake.spans:
        if draft.parent_span_id is None and trace_id in roots and draft.span_id != as_text(trace_id):
            draft.parent_span_id = trace_id
