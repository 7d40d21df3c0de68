"""Langfuse: traces and observations as its interface, its API and its exports give them.

Forms: a trace with its observations (API, and `{"trace", "observations"}` as the interface downloads it),
`{"traces", "observations"}`, pages of traces or observations (`data`, API versions 1 and 2), observations as CSV, JSON
or a line each (blob storage, with or without the fields of their trace). Fields: Langfuse's API reference and export
field reference; camelCase or snake_case. What OpenTelemetry said of a span stands in its metadata and goes through
the conventions. Scores are other people's opinions and may hold the right answer: they go to the logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.conventions.message_json import read_message, read_messages
from tracejury.ingest.formats.exports import as_text, opinion
from tracejury.ingest.formats.fields import Fields, plain_name
from tracejury.ingest.formats.otel import one_trace, together
from tracejury.ingest.formats.rows import columns_of, opened, read_rows
from tracejury.ingest.formats.spans import brief, kept, kept_dict, note_spans
from tracejury.ingest.parse import inner_json
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.times import integer
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, SpanKind, Trace

NAME = "langfuse"
MERGES = True

_KINDS: dict[str, SpanKind] = {
    "GENERATION": "LLM", "EVENT": "EVENT", "AGENT": "AGENT", "TOOL": "TOOL", "CHAIN": "CHAIN",
    "RETRIEVER": "RETRIEVER", "EVALUATOR": "EVALUATOR", "EMBEDDING": "EMBEDDING", "GUARDRAIL": "GUARDRAIL",
}  # fmt: skip
"""Observations that say what they are; one of type SPAN may say more in its metadata."""
_COUNTS = (
    ("prompt_tokens", ("input", "prompttokens", "inputtokens"), ("inputusage", "prompttokens")),
    ("completion_tokens", ("output", "completiontokens", "outputtokens"), ("outputusage", "completiontokens")),
    ("total_tokens", ("total", "totaltokens"), ("totalusage", "totaltokens")),
    ("reasoning_tokens", ("outputreasoning", "outputreasoningtokens", "reasoningtokens"), ()),
)
"""Columns, their names in an object of usage, and beside the observation's other fields."""
_TRACE_FIELDS = ("traceName", "trace_name", "userId", "user_id", "sessionId", "session_id", "tags", "release", "public")
_OBSERVATION_MARKS = frozenset({"startTime", "endTime", "parentObservationId", "traceId"})
_DOUBLY = 3
"""How often a text may be JSON in JSON: the interface encodes what an SDK had encoded already."""


def sniff(sample: FileSample) -> bool:
    """`observations` of a trace, or observations by their own names."""
    keys = sample.keys | columns_of(sample)
    own = {"traceId", "parentObservationId"} <= keys or {"trace_id", "parent_observation_id"} <= keys
    names = {"timestamp", "projectId", "sessionId", "htmlPath", "traceId"}
    return own or ("observations" in keys and not names.isdisjoint(keys))


@dataclass(slots=True)
class _Run:
    """What the files tell of one trace."""

    values: dict[str, Json] = field(default_factory=dict)
    observations: dict[str, dict[str, Json]] = field(default_factory=dict)
    scores: dict[str, Json] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace: observations are grouped by the trace they name."""
    yield from read_bundle((source,))


def read_bundle(sources: tuple[Source, ...], beside: Sequence[str] = ()) -> Iterator[Trace | Rejected]:
    """The traces of several files together."""
    runs: dict[str, _Run] = {}
    bad = 0
    for source in sources:
        for row in read_rows(source.data, lists=("data",)):
            if row.error is None:
                _take(row.values, runs, "")
            else:
                bad += 1
                yield rejected(source.file, row.error)
    if not runs and not bad:
        raise IngestError("holds no trace and no observation", remedy="export it again")
    for trace_id, run in runs.items():
        try:
            yield _trace(trace_id, run, together(sources))
        except IngestError as error:
            yield rejected(sources[0].file, error)


def _take(values: dict[str, Json], runs: dict[str, _Run], of: str) -> None:
    """Sort a record, and what stands in it, under the traces they name."""
    whole = values.get("trace")
    listed = {name: opened(values.get(name)) for name in ("traces", "observations", "scores")}
    is_file = isinstance(whole, dict) or isinstance(listed["traces"], list)
    fields = Fields(values)
    own = of or fields.text("traceid") or ""
    if isinstance(whole, dict):
        own = as_text(whole.get("id")) or own or "unnamed"
        _take(whole, runs, own)
    for item in listed["traces"] if isinstance(listed["traces"], list) else []:
        if isinstance(item, dict):
            _take(item, runs, "")
    if not is_file:
        if "traceId" in values or "trace_id" in values or plain_name("traceId") in map(plain_name, values):
            _take_part(values, own, runs)
            return
        own = of or as_text(values.get("id")) or "unnamed"
        run = runs.setdefault(own, _Run())
        for key in values.keys() - {"observations", "scores", "input", "output", "metadata"}:
            note_spans(values[key], _OBSERVATION_MARKS, key, run.warnings)
        run.values.update({key: item for key, item in values.items() if key not in ("observations", "scores")})
    for name in ("observations", "scores"):
        items = listed[name]
        if items is not None and not isinstance(items, list):
            _unreadable(f"{name} is {brief(items)}, not a list", own, runs)
        for number, item in enumerate(items if isinstance(items, list) else []):
            _take_listed(opened(item), f"{name}[{number}]", own, runs)


def _take_listed(item: Json, place: str, own: str, runs: dict[str, _Run]) -> None:
    if isinstance(item, dict):
        _take_part(item, as_text(Fields(item).take("traceid")) or own or "unnamed", runs)
    elif not isinstance(item, str) or item[:1] in (
        "{",
        "[",
    ):  # a page of traces names its observations by their ids alone
        _unreadable(f"{place} is {brief(item)}, not an object", own, runs)


def _unreadable(warning: str, own: str, runs: dict[str, _Run]) -> None:
    runs.setdefault(own or "unnamed", _Run()).warnings.append(f"unreadable_span: {warning}")


def _take_part(values: dict[str, Json], own: str, runs: dict[str, _Run]) -> None:
    """An observation or a score, once: a download may list it twice."""
    run, fields = runs.setdefault(own or "unnamed", _Run()), Fields(values)
    is_score = fields.take("starttime", "type") is None and fields.take("value", "stringvalue") is not None
    into: dict[str, Json] = run.scores if is_score else cast("dict[str, Json]", run.observations)
    named = as_text(fields.take("id"))
    same = named is not None and (named not in into or into[named] == values)
    into[named if named is not None and same else f"{named or 'unnamed'}#{len(into) + 1}"] = values


def _trace(trace_id: str, run: _Run, source: Source) -> Trace:
    if not run.observations and run.scores and not run.values:
        raise IngestError(
            f"holds scores of trace {trace_id} but not the trace",
            remedy="export the observations too, or read scores by `tracejury labels import`",
        )
    attributes = _attributes(run)
    drafts = [_observation(item) for item in run.observations.values()] or [_trace_as_span(run.values, trace_id)]
    question, answer = _unwrapped(run.values.get("input")), _unwrapped(run.values.get("output"))
    trace = one_trace(
        drafts,
        [_score(item, trace_id) for item in run.scores.values()],
        trace_id=trace_id,
        format=NAME,
        source=source,
        attributes=attributes,
        warnings=run.warnings,
        goal=_words(question, "user"),
        final_answer=_words(answer, "assistant"),
    )
    return replace(trace, goal=trace.goal or as_text(question), final_answer=trace.final_answer or as_text(answer))


def _attributes(run: _Run) -> dict[str, Json]:
    """What belongs to the trace: its own fields, or those that enriched observations repeat."""
    shared: dict[str, Json] = {}
    for item in run.observations.values():
        for key in _TRACE_FIELDS:
            if item.get(key) not in (None, "", []):
                shared.setdefault(key, kept(opened(item[key])))
    own = {
        key: kept(item if key in ("input", "output") else opened(item))
        for key, item in run.values.items()
        if key != "id" and item is not None
    }
    return {**shared, **own}


def _trace_as_span(values: dict[str, Json], trace_id: str) -> SpanDraft:
    """A trace that holds no observation is one span of its own."""
    fields = Fields(values)
    draft = SpanDraft(span_id=trace_id, name=fields.text("name") or "", kind="CHAIN", warnings=fields.warnings)
    draft.start_time = fields.time("timestamp")
    draft.input, draft.output = as_text(_unwrapped(fields.take("input"))), as_text(_unwrapped(fields.take("output")))
    if draft.input is None and draft.output is None:
        raise IngestError(
            f"trace {trace_id} holds no observation, no input and no output",
            remedy="export its observations too (`fields=io` in the API)",
        )
    return draft


def _observation(values: dict[str, Json]) -> SpanDraft:
    fields = Fields(values)
    draft = SpanDraft(span_id=fields.text("id") or "unnamed", warnings=fields.warnings)
    draft.parent_span_id = fields.text("parentobservationid")
    fields.take("traceid")
    draft.name = fields.text("name") or ""
    kind = fields.text("type") or ""
    draft.kind = _KINDS.get(kind.upper(), "UNKNOWN")
    draft.start_time, draft.end_time = fields.time("starttime"), fields.time("endtime")
    if draft.kind == "EVENT" and draft.end_time is None:
        draft.end_time = draft.start_time
    level = fields.take("level")
    draft.status = "ERROR" if level == "ERROR" else "UNSET"
    draft.status_message = fields.text("statusmessage")
    draft.model = fields.text("providedmodelname", "model", "modelname")
    _usage(draft, fields)
    _metadata(draft, fields)
    sides = {side: _unwrapped(fields.take(side)) for side in ("input", "output")}
    if kind:
        draft.attributes["langfuse.observation.type"] = kind.lower()
    draft.attributes.update({f"langfuse.observation.{k}": kept(v) for k, v in sides.items() if v is not None})
    if level is not None:
        draft.attributes["level"] = level
    for key, item in fields.rest().items():
        draft.attributes.setdefault(key, kept(opened(item)))
    return draft


def _usage(draft: SpanDraft, fields: Fields) -> None:
    """Token counts; zeros that every row of a table has are not counts. What is no column stays in the attributes."""
    details = fields.nested("usagedetails", "usage")
    detail_fields = Fields(details)
    counts = {column: integer(detail_fields.take(*names)) for column, names, _ in _COUNTS}
    if not any(counts.values()):
        raw = {names[0]: fields.take(*names) for _, _, names in _COUNTS if names}
        counts = {column: integer(raw.get(names[0])) for column, _, names in _COUNTS if names}
        if not any(counts.values()):
            draft.attributes.update({f"usage.{name}": item for name, item in raw.items() if item is not None})
    for column, count in counts.items():
        setattr(draft, column, count if any(counts.values()) else None)
    if details:
        draft.attributes["usageDetails"] = kept(details)


def _metadata(draft: SpanDraft, fields: Fields) -> None:
    """The metadata; what OpenTelemetry told of the span in it becomes attributes again."""
    content = _unwrapped(fields.peek("metadata"))
    if not isinstance(content, dict):
        return  # which stays an attribute as it is: Langfuse takes any JSON there
    fields.drop("metadata")
    metadata = dict(content)
    spans = opened(metadata.pop("attributes", None))
    if isinstance(spans, dict):
        draft.attributes.update(kept_dict(spans))
    elif spans is not None:
        metadata["attributes"] = spans
    for name, key in (("resourceAttributes", "otel.resource"), ("scope", "otel.scope")):
        if isinstance(one := opened(metadata.get(name)), dict):
            draft.attributes[key] = kept(one)
            del metadata[name]
    if metadata:
        draft.attributes["metadata"] = kept(metadata)


def _unwrapped(value: Json) -> Json:
    """A value out of the JSON texts around it; a text that is no JSON stays as it is."""
    for _ in range(_DOUBLY):
        if not isinstance(value, str):
            return value
        inner = inner_json(f"[{value}]") if value[:1] == '"' and value[-1:] == '"' and len(value) > 1 else None
        if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], str):
            value = inner[0]
        elif value[:1] in ("{", "[") and (content := inner_json(value)) is not None:
            value = content
        else:
            return value
    return value


def _words(value: Json, role: str) -> str | None:
    """The text of a trace's input or output: the user's message, the last answer, or plain text; None of other JSON."""
    value = opened(value)  # BeeAI writes a message as a Python literal
    if value is None or isinstance(value, str):
        return value
    content = value.get("messages") if isinstance(value, dict) and "messages" in value else value
    one = read_message(content)
    turns = [one] if one is not None else read_messages(content) or []
    texts = [item.message.content for item in turns if item.message.role == role and item.message.content]
    return (texts[0] if role == "user" else texts[-1]) if texts else None


def _score(item: Json, trace_id: str) -> SpanLog:
    about = Fields(item).text("observationid") if isinstance(item, dict) else None
    return opinion("score", trace_id, about, item)
