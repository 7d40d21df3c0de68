"""What the OpenTelemetry readers share: ids, fields of a span under our names, and spans grouped into traces."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tracejury.ingest.bounded import most_spans, too_much_at_once
from tracejury.ingest.conventions import translate
from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.formats.spans import brief
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.parse import json_text, parse_documents
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Json, LogRecord, LooseLogs, Rejected, Source, SpanDraft, Trace
from tracejury.ingest.tree import PENDING, assemble, completed, once_each

UNNAMED_LOGS = "unread_logs: log records that name no trace are not read, because the file holds several traces"
KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_HEX = frozenset("0123456789abcdef")


@dataclass(slots=True)
class Intake:
    """What a file holds before it is split into traces; ids as the source writes them."""

    spans: list[tuple[str, SpanDraft]] = field(default_factory=list)
    logs: list[SpanLog] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    number: int = 0
    """The spans met so far, those not wanted too."""

    def wants_span(self, trace_id: str, span_id: str, parent_span_id: str | None) -> bool:
        """Whether the span with these ids is to be read; asked once for each, in the order of the file.

        Of more spans than can be held no more are; `traces` then refuses them all.
        """
        self.number += 1
        return self.number <= most_spans()

    def wants_log(self, trace_id: str, span_id: str) -> bool:
        """As `wants_span`, for a log record; both ids may be empty."""
        return True


def take_documents(
    sources: Iterable[Source], take: Callable[[Json, str], None], warnings: list[str]
) -> Generator[Rejected, None, int]:
    """Give every JSON document of the files to `take`, with its place; yields and counts those that cannot be read."""
    bad = 0
    for source in sources:
        for document in parse_documents(source.data):
            warnings.extend(document.warnings)
            try:
                if document.error is not None:
                    raise document.error
                take(document.value, document.place)
            except IngestError as error:
                bad += 1
                yield rejected(source.file, error)
    return bad


def join_runs(intake: Intake, start: int) -> None:
    """Give runs that name no trace, those from `start` on whose trace is their own id, the trace of the run above."""
    trace_of = {draft.span_id: trace_id for trace_id, draft in intake.spans[start:]}
    above = {draft.span_id: draft.parent_span_id for _, draft in intake.spans[start:]}
    for number, (trace_id, draft) in enumerate(intake.spans[start:], start):
        seen: set[str] = set()
        here = draft.span_id
        while trace_of[here] == here and (parent := above[here]) in trace_of and parent not in seen:
            seen.add(here)
            here = str(parent)
        if trace_id == draft.span_id:
            intake.spans[number] = (trace_of[here], draft)


def take_listed(items: Sequence[Json], take: Callable[[Json], bool], intake: Intake) -> bool:
    """Give each item of a list to `take`, which says whether it is one; of several, those that are none are named."""
    intakes = [take(item) for item in items]
    for item, is_taken in zip(items, intakes, strict=True):
        if any(intakes) and not is_taken:
            intake.warnings.append(f"unreadable_span: {brief(item)} is among the spans but is not a span")
    return any(intakes)


def read_collected(
    source: Source, collect: Callable[[Source, Intake], Generator[Rejected, None, int]], *, format: str
) -> Iterator[Trace | Rejected]:
    """Every trace of what `collect` adds; a file of which nothing could be read has been rejected part by part."""
    intake = Intake()
    bad = yield from collect(source, intake)
    if intake.spans or intake.logs or not bad:
        yield from traces(intake, format=format, source=source)


def traces(intake: Intake, *, format: str, source: Source) -> Iterator[Trace | Rejected]:
    """One trace for each trace id of the file, in the order they first appear; ids become lower-case hex.

    Log records are joined to the span they name; those of traces with no span here are yielded as `LooseLogs`.
    """
    if (refusal := too_much_at_once("it", spans=intake.number, size=len(source.data))) is not None:
        raise refusal
    if not intake.spans and not intake.logs:
        raise no_span(intake.warnings, holds_logs=False)
    trace_of = id_reader([*(trace_id for trace_id, _ in intake.spans), *(log.trace_id for log in intake.logs)], 16)
    span_ids = [one for _, draft in intake.spans for one in (draft.span_id, draft.parent_span_id or "")]
    span_of = id_reader([*span_ids, *(log.span_id for log in intake.logs)], 8)
    yield from split(intake, trace_of, span_of, format=format, source=source)


def no_span(warnings: Sequence[str], *, holds_logs: bool) -> IngestError:
    """The refusal of a file without spans."""
    detail = f" ({warnings[0]})" if warnings else ""
    return IngestError(
        f"holds log records but no span{detail}" if holds_logs else f"holds no span{detail}",
        remedy="ingest it together with the file that holds the spans" if holds_logs else "export it again",
    )


IdReader = Callable[[str], str]


def split(
    intake: Intake,
    trace_of: IdReader,
    span_of: IdReader,
    *,
    format: str,
    source: Source,
) -> Iterator[Trace | Rejected]:
    """The traces of what was found, in the order they first appear, then the log records of others."""
    _normalise_ids(intake, trace_of, span_of)
    groups: dict[str, list[SpanDraft]] = {}
    for trace_id, draft in intake.spans:
        groups.setdefault(trace_id, []).append(draft)
    only = next(iter(groups)) if len(groups) == 1 else ""  # what names no trace belongs to the only one
    logs: dict[str, list[SpanLog]] = {}
    for log in intake.logs:
        logs.setdefault(log.trace_id or only, []).append(log)
    if "" in logs and groups:
        intake.warnings.append(UNNAMED_LOGS)
    for trace_id, drafts in groups.items():
        own = logs.get(trace_id, ())
        yield one_trace(drafts, own, trace_id=trace_id, format=format, source=source, warnings=intake.warnings)
    loose = {trace_id: own for trace_id, own in logs.items() if trace_id and trace_id not in groups}
    if loose:
        yield _loose(loose, source)
    elif not groups:
        raise no_span(intake.warnings, holds_logs=True)


def _loose(logs: Mapping[str, Sequence[SpanLog]], source: Source) -> LooseLogs:
    """Log records whose spans stand elsewhere, each trace's as a request of OTLP."""
    subject = "whose spans are" if len(logs) == 1 else "and more, whose spans are"
    count = sum(map(len, logs.values()))
    return LooseLogs(
        file=source.file,
        place=source.place,
        reason=f"holds log records but no span: {count} of trace {', '.join(list(logs)[:3])}; {subject} not in it",
        remedy="ingest the file that holds the spans too, in any order",
        requests=tuple((trace_id, as_request(own)) for trace_id, own in logs.items()),
    )


def as_request(logs: Sequence[SpanLog]) -> bytes:
    """Log records of one trace as a request of OTLP/JSON, which reads as what they are."""
    records = [
        {
            **{key: item for key, item in log.rest.items() if item is not None},
            "traceId": log.trace_id,
            "spanId": log.span_id,
            "timeUnixNano": str((log.time or 0) * 1000),
            "eventName": log.event_name,
            "body": _any_value(log.body),
            "attributes": [{"key": key, "value": _any_value(item)} for key, item in log.attributes.items()],
        }
        for log in logs
    ]
    return json_text({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).encode()


def _any_value(value: Json) -> Json:
    """A value as OTLP writes it."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [_any_value(item) for item in value]}}
        case dict():
            return {"kvlistValue": {"values": [{"key": key, "value": _any_value(item)} for key, item in value.items()]}}
        case _:
            return {}


def together(sources: Sequence[Source]) -> Source:
    """Several files as one source: their texts line after line, or their requests of protobuf, as the readers take
    them; the bytes of tables are not joined.
    """
    if len(sources) == 1:
        return sources[0]
    are_text = {source.data.lstrip()[:1] in (b"{", b"[") for source in sources}
    is_table = any(source.data[:4] in (b"PAR1", b"ARRO", b"\xff\xff\xff\xff") for source in sources)
    data = b"" if len(are_text) > 1 or is_table else (b"\n" if True in are_text else b"").join(s.data for s in sources)
    warnings = tuple(dict.fromkeys(warning for source in sources for warning in source.warnings))
    return Source(file=" + ".join(source.file for source in sources), data=data, warnings=warnings)


def one_trace(
    drafts: list[SpanDraft],
    logs: Sequence[SpanLog] = (),
    *,
    trace_id: str,
    format: str,
    source: Source,
    warnings: Sequence[str] = (),
    attributes: dict[str, Json] | None = None,
    goal: str | None = None,
    final_answer: str | None = None,
) -> Trace:
    """The trace of these drafts: translated in the order of time, so that messages are numbered as they were said."""
    texts = list(warnings)
    for draft in drafts:
        _take_place_of_pending(draft)
    drafts = completed(once_each(drafts, texts), texts)
    table = MessageTable()
    in_time = sorted(drafts, key=lambda draft: (draft.start_time is None, draft.start_time or 0))
    translate(in_time, table, logs=logs)
    records = [
        LogRecord(span_id=log.span_id or None, body=log.as_json(), holds_answer=not log.event_name.startswith("gen_ai"))
        for log in logs
    ]
    return assemble(
        drafts,
        trace_id=trace_id,
        format=format,
        source=source,
        messages=table,
        logs=records,
        warnings=texts,
        attributes=attributes,
        goal=goal,
        final_answer=final_answer,
    )


def _take_place_of_pending(draft: SpanDraft) -> None:
    """Give a span that Logfire sent when it began the id of the span itself, which it names as its parent."""
    above = draft.attributes.get("logfire.pending_parent_id")
    if draft.attributes.get(PENDING[0]) == PENDING[1] and isinstance(above, str) and draft.parent_span_id is not None:
        draft.attributes["logfire.pending_span_id"] = draft.span_id
        draft.span_id, draft.parent_span_id = draft.parent_span_id, parent_or_none(above)
        draft.end_time = None


def kind_name(value: Json) -> Json:
    """OpenTelemetry's span kind by name (`INTERNAL`), from its number or any spelling."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(KINDS):
        return KINDS[value]
    if isinstance(value, str):
        return value.rsplit(".", 1)[-1].removeprefix("SPAN_KIND_").upper()
    return value


def parent_or_none(value: str | None) -> str | None:
    """A parent id, None where it is empty or all zeros, as some exporters write a root's."""
    return value if value and value.strip("0x") else None


class IdWriting:
    """How a file writes its ids of `size` bytes: one way for all of them, so that a parent is found by its text."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._is_hex = self._is_decimal = self._is_base64 = True

    def add(self, *ids: str) -> None:
        """Note ids of the file; empty ones say nothing."""
        for one in ids:
            if one:
                self._is_hex = self._is_hex and _is_hex(one.lower().removeprefix("0x"), self._size)
                self._is_decimal = self._is_decimal and _is_decimal(one, self._size)
                self._is_base64 = self._is_base64 and _from_base64(one, self._size) is not None

    def reader(self) -> IdReader:
        """The function that gives an id its normal form: lower-case hex, or the text itself when it is no such id."""
        is_decimal = self._is_decimal and not self._is_hex
        is_base64 = self._is_base64 and not self._is_hex and not is_decimal
        size = self._size

        def read(one: str) -> str:
            if not one:
                return one
            if is_decimal:
                return f"{int(one):0{2 * size}x}"
            if is_base64:
                return (_from_base64(one, size) or b"").hex()
            bare = one.lower().removeprefix("0x")
            return bare if _is_hex(bare, size) else one

        return read


def id_reader(ids: Iterable[str], size: int) -> IdReader:
    """The reader of a file with these ids."""
    writing = IdWriting(size)
    writing.add(*ids)
    return writing.reader()


def _is_hex(one: str, size: int) -> bool:
    return len(one) == 2 * size and _HEX.issuperset(one)


def _is_decimal(one: str, size: int) -> bool:
    return one.isascii() and one.isdigit() and int(one) < 256**size


def _from_base64(text: str, size: int) -> bytes | None:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set(text) & set("-_") else None)
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == size else None


def _normalise_ids(intake: Intake, trace_of: IdReader, span_of: IdReader) -> None:
    """Rewrite every id in its normal form; an original in another writing is kept in the attributes."""
    linked = [link for _, draft in intake.spans for link in draft.links]
    renamed = []
    for trace_id, draft in intake.spans:
        normal = trace_of(trace_id)
        _keep_original(draft, "otel.trace_id", trace_id, normal)
        renamed.append((normal, draft))
        own = span_of(draft.span_id)
        _keep_original(draft, "otel.span_id", draft.span_id, own)
        draft.span_id = own
        if draft.parent_span_id is not None:
            draft.parent_span_id = parent_or_none(span_of(draft.parent_span_id))
    intake.spans = renamed
    for log in intake.logs:
        log.trace_id = trace_of(log.trace_id) if log.trace_id else ""
        log.span_id = span_of(log.span_id) if log.span_id else ""
    for link in linked:
        for key, reader in (("trace_id", trace_of), ("span_id", span_of)):
            value = link.get(key)
            if isinstance(value, str) and value:
                link[key] = reader(value)


def _keep_original(draft: SpanDraft, key: str, original: str, normal: str) -> None:
    if original.lower().removeprefix("0x") != normal:
        draft.attributes.setdefault(key, original)
