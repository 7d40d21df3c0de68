"""LangSmith: runs as `list_runs` and its API give them (a list, a line each, `{"runs"}`), its bulk export (Parquet).

Fields: LangSmith's run data format. Feedback is other people's opinions and may hold the right answer: it goes to
the logs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from tracejury.ingest.formats.exports import opinion, without_wrapper
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import Intake, join_runs, read_collected
from tracejury.ingest.formats.rows import columns_of, opened, take_rows
from tracejury.ingest.formats.spans import brief, kept, note_spans
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, SpanKind, Trace

NAME = "langsmith"
MERGES = True

_KINDS: dict[str, SpanKind] = {
    "llm": "LLM", "chain": "CHAIN", "tool": "TOOL", "retriever": "RETRIEVER", "embedding": "EMBEDDING",
    "prompt": "PROMPT", "parser": "CHAIN", "agent": "AGENT",
}  # fmt: skip
_RUN_MARKS = frozenset({"run_type", "start_time", "end_time", "dotted_order"})
_MODEL_NAMES = ("lsmodelname", "modelname", "model")
_COUNTS = (
    ("prompt_tokens", ("prompttokens", "inputtokens")),
    ("completion_tokens", ("completiontokens", "outputtokens")),
    ("total_tokens", ("totaltokens",)),
)


def sniff(sample: FileSample) -> bool:
    """`run_type` with the ids of a run."""
    keys = sample.keys | columns_of(sample)
    return "run_type" in keys and not keys.isdisjoint({"dotted_order", "parent_run_id", "parent_run_ids", "trace_id"})


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file."""
    yield from read_collected(source, collect, format=NAME)


def collect(source: Source, intake: Intake) -> Generator[Rejected, None, int]:
    """Add the span of each run; yields and counts the rows that hold none."""
    start = len(intake.spans)
    bad = yield from take_rows(
        source, lambda row: _take(row.values, intake, row.place, parent=None, trace_id=None), lists=("runs", "data")
    )
    join_runs(intake, start)
    return bad


def _take(values: dict[str, Json], intake: Intake, place: str, *, parent: str | None, trace_id: str | None) -> None:
    """Add a run and the runs that stand in it."""
    stack = [(values, parent, trace_id)]
    while stack:
        one, above, of = stack.pop()
        fields = Fields(one)
        children = fields.listed("childruns")
        span_id = fields.text("id", "runid")
        if span_id is None and one is values:
            raise IngestError("a run without id", place=place, remedy="export the field `id` too")
        if span_id is None:
            span_id = f"unnamed-{len(intake.spans) + 1}"
            intake.warnings.append(f"no_span_id: a child run in {place} has no id; called {span_id}")
        path = (fields.text("dottedorder") or "").split(".")
        own_trace = fields.text("traceid") or of or _id_in(path[0]) or span_id
        draft = _span(fields, span_id)
        draft.parent_span_id = _parent(fields) or above or (_id_in(path[-2]) if len(path) > 1 else None)
        if path != [""]:
            draft.attributes["dotted_order"] = ".".join(path)
        intake.spans.append((own_trace, draft))
        _feedback(one, own_trace, span_id, intake)
        for child in reversed(children):
            if isinstance(child, dict):
                stack.append((child, span_id, own_trace))
            else:
                intake.warnings.append(f"unreadable_span: a child run of {span_id} is {brief(child)}, not an object")


def _id_in(part: str) -> str | None:
    """The run's id in a part of a dotted order: a time up to `Z`, then the id."""
    return part.partition("Z")[2] or None


def _parent(fields: Fields) -> str | None:
    above = [one for one in fields.listed("parentrunids") if isinstance(one, str)]
    return fields.text("parentrunid") or (above[-1] if above else None)


def _span(fields: Fields, span_id: str) -> SpanDraft:
    draft = SpanDraft(span_id=span_id, name=fields.text("name") or "", warnings=fields.warnings)
    kind = fields.text("runtype") or ""
    draft.kind = _KINDS.get(kind.lower(), "UNKNOWN")
    draft.attributes["run_type"] = kind
    draft.start_time, draft.end_time = fields.time("starttime"), fields.time("endtime")
    error, status = fields.text("error"), fields.text("status")
    draft.status = "ERROR" if error or status == "error" else "OK" if status == "success" else "UNSET"
    draft.status_message = error
    if status not in (None, "error", "success"):
        draft.attributes["status"] = status
    for side in ("input", "output"):
        value = without_wrapper(opened(fields.take(f"{side}s")), side)
        if value is not None:
            draft.attributes[f"export.{side}"] = kept(value)
            if side == "output" and draft.kind == "LLM":
                _counts(draft, _usage_in(value))
    if draft.kind == "LLM":
        _counts(draft, fields)
    draft.events = [_event(item) for item in fields.listed("events")]
    _extra(draft, fields)
    for key, item in fields.rest().items():
        note_spans(item, _RUN_MARKS, key, draft.warnings)
        if key != "feedback_stats":
            draft.attributes.setdefault(key, kept(opened(item)))
    return draft


def _extra(draft: SpanDraft, fields: Fields) -> None:
    extra = fields.inner("extra")
    metadata = extra.nested("metadata")
    if draft.kind == "LLM":
        for source in (metadata, extra.nested("invocationparams")):
            draft.model = draft.model or Fields(source).text(*_MODEL_NAMES)
            draft.attributes.update({f"langsmith.metadata.{key}": kept(item) for key, item in source.items()})
    else:
        draft.attributes.update({f"langsmith.metadata.{key}": kept(item) for key, item in metadata.items()})
    draft.attributes.update(extra.rest("extra."))


def _counts(draft: SpanDraft, fields: Fields) -> None:
    """Token counts of a model call; a chain repeats the sum of its calls, which stays in the attributes."""
    for column, names in _COUNTS:
        count = fields.count(*names)
        if count and getattr(draft, column) is None:
            setattr(draft, column, count)


def _usage_in(outputs: Json) -> Fields:
    """The usage that the answer of a model holds: its message's `usage_metadata`, or the provider's `token_usage`."""
    stack: list[Json] = [outputs]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            for name in ("usage_metadata", "token_usage", "usage"):
                if isinstance(usage := node.get(name), dict):
                    return Fields(usage)
            stack.extend(node[name] for name in ("llm_output", "kwargs", "message", "generations") if name in node)
        elif isinstance(node, list) and len(node) == 1:
            stack.append(node[0])
    return Fields({})


def _event(item: Json) -> dict[str, Json]:
    fields = Fields(item)
    return {"name": fields.take("name"), "time": fields.time("time", "timestamp"), "attributes": fields.rest()}


def _feedback(values: dict[str, Json], trace_id: str, span_id: str, intake: Intake) -> None:
    feedback = opened(values.get("feedback_stats"))
    if feedback:
        intake.logs.append(opinion("feedback", trace_id, span_id, feedback))
