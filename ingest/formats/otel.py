"""What the OpenTelemetry readers share: ids, fields of a span under our names, and spans grouped into traces."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ingest.conventions import translate
from ingest.conventions.context import SpanLog
from ingest.head import rejected
from ingest.messages import MessageTable
from ingest.parse import parse_documents
from ingest.trace import IngestError, Json, LogRecord, Rejected, Source, SpanDraft, Trace
from ingest.tree import assemble, once_each

Writing = Literal["hex", "base64", "decimal", "text"]
KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_HEX = frozenset("0123456789abcdef")


@dataclass(slots=True)
class Found:
    """What a file holds before it is split into traces; ids as the source writes them."""

    spans: list[tuple[str, SpanDraft]] = field(default_factory=list)
    logs: list[SpanLog] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


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


def traces(found: Found, *, format: str, source: Source) -> Iterator[Trace]:
    """One trace for each trace id of the file, in the order they first appear; ids become lower-case hex.

    Log records are joined to the span they name; those of a trace with no span here stay out, with an error
    when there are nothing but such.
    """
    if not found.spans:
        told = f" ({found.warnings[0]})" if found.warnings else ""
        raise IngestError(
            f"holds log records but no span{told}" if found.logs else f"holds no span{told}",
            remedy="ingest it together with the file that holds the spans" if found.logs else "export it again",
        )
    _normalise_ids(found)
    groups: dict[str, list[SpanDraft]] = {}
    for trace_id, draft in found.spans:
        groups.setdefault(trace_id, []).append(draft)
    only = next(iter(groups)) if len(groups) == 1 else ""  # what names no trace belongs to the only one
    logs: dict[str, list[SpanLog]] = {}
    for log in found.logs:
        logs.setdefault(log.trace_id or only, []).append(log)
    for trace_id, drafts in groups.items():
        own = logs.get(trace_id, ())
        yield one_trace(drafts, own, trace_id=trace_id, format=format, source=source, warnings=found.warnings)


def together(sources: Sequence[Source]) -> Source:
    """Several files as one source: their texts line after line, as the readers take them; bytes are not joined."""
    if len(sources) == 1:
        return sources[0]
    text = all(source.data.lstrip()[:1] in (b"{", b"[") for source in sources)
    data = b"\n".join(source.data for source in sources) if text else b""
    return Source(file=" + ".join(source.file for source in sources), data=data)


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
    told = list(warnings)
    drafts = once_each(drafts, told)
    table = MessageTable()
    in_time = sorted(drafts, key=lambda draft: (draft.start_time is None, draft.start_time or 0))
    translate(in_time, table, logs=logs)
    records = [
        LogRecord(span_id=log.span_id or None, body=log.as_json(), holds_gold=not log.event_name.startswith("gen_ai"))
        for log in logs
    ]
    return assemble(
        drafts,
        trace_id=trace_id,
        format=format,
        source=source,
        messages=table,
        logs=records,
        warnings=told,
        attributes=attributes,
        goal=goal,
        final_answer=final_answer,
    )


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


def writing_of(ids: Iterable[str], size: int) -> Writing:
    """How a file writes its ids of `size` bytes: one way for all of them, so that a parent is found by its text."""
    bare = {one.lower().removeprefix("0x") for one in ids if one}
    if all(len(one) == 2 * size and _HEX.issuperset(one) for one in bare):
        return "hex"
    given = {one for one in ids if one}
    if all(one.isascii() and one.isdigit() and int(one) < 256**size for one in given):
        return "decimal"
    if all(_from_base64(one, size) is not None for one in given):
        return "base64"
    return "text"


def id_reader(ids: Sequence[str], size: int) -> Callable[[str], str]:
    """The function that gives each id its normal form: lower-case hex, or the text itself when it is no such id."""
    writing = writing_of(ids, size)

    def read(one: str) -> str:
        if not one:
            return one
        if writing == "decimal":
            return f"{int(one):0{2 * size}x}"
        if writing == "base64":
            return (_from_base64(one, size) or b"").hex()
        bare = one.lower().removeprefix("0x")
        return bare if len(bare) == 2 * size and _HEX.issuperset(bare) else one

    return read


def _from_base64(text: str, size: int) -> bytes | None:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set(text) & set("-_") else None)
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == size else None


def _normalise_ids(found: Found) -> None:
    """Rewrite every id in its normal form; an original in another writing is kept in the attributes."""
    linked = [link for _, draft in found.spans for link in draft.links]
    trace_of = id_reader([*(trace_id for trace_id, _ in found.spans), *(log.trace_id for log in found.logs)], 16)
    span_ids = [one for _, draft in found.spans for one in (draft.span_id, draft.parent_span_id or "")]
    span_of = id_reader([*span_ids, *(log.span_id for log in found.logs)], 8)
    renamed = []
    for trace_id, draft in found.spans:
        normal = trace_of(trace_id)
        _keep_original(draft, "otel.trace_id", trace_id, normal)
        renamed.append((normal, draft))
        own = span_of(draft.span_id)
        _keep_original(draft, "otel.span_id", draft.span_id, own)
        draft.span_id = own
        if draft.parent_span_id is not None:
            draft.parent_span_id = parent_or_none(span_of(draft.parent_span_id))
    found.spans = renamed
    for log in found.logs:
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
