"""A trace as database rows: pure and heavy (hashing, compressing), so that workers can do it in parallel."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b, sha256
from operator import attrgetter
from typing import Any, NamedTuple

import orjson

from tracejury.ingest.long_file import LongFile
from tracejury.ingest.texts import TextPack, TextRefs, compress, packs
from tracejury.ingest.trace import IngestError, Json, Message, Span, Trace

Row = dict[str, Any]
DETAILS = 64  # spans in a row of `span_detail`


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """Rows of one trace, without the keys that the database gives. `references` are all texts it needs, by hash."""

    trace_id: str
    digest: str
    source: Row
    long: LongFile | None
    trace: Row
    spans: list[Row]
    messages: list[Row]
    logs: list[Row]
    expected_events: list[Row]
    details: list[Row]
    texts: list[TextPack]
    references: tuple[str, ...]
    documents: list[str]


class PackedBytes(NamedTuple):
    """A source's bytes as they are kept: what several traces of one file share. A long file is compressed later."""

    digest: str
    size: int
    body: bytes
    long: LongFile | None = None


def pack_bytes(data: bytes) -> PackedBytes:
    return PackedBytes(digest=sha256(data).hexdigest(), size=len(data), body=compress(data))


def pack_long(file: LongFile) -> PackedBytes:
    """As `pack_bytes`, of a file that is not held in memory: only its digest is made."""
    state = sha256()
    for block in file.blocks():
        state.update(block)
    return PackedBytes(digest=state.hexdigest(), size=file.size, body=compress(b""), long=file)


def compressed_parts(file: LongFile, digest: str) -> Iterator[bytes]:
    """The bytes of a long file, compressed block by block. Raises `IngestError` when they are not those of `digest`."""
    state = sha256()
    for block in file.blocks():
        state.update(block)
        yield compress(block)
    if state.hexdigest() != digest:
        raise IngestError("the file changed while it was read", remedy="ingest it again when no program writes to it")


def pack(trace: Trace, *, known_texts: Container[str] = frozenset(), source: PackedBytes | None = None) -> Packed:
    """All rows of `trace`. Texts whose hash is in `known_texts` are not compressed again, nor is a `source` given."""
    content = _content(trace)
    logs = [
        {"span_id": log.span_id, "holds_answer": int(log.holds_answer), "body": compress(dump(log.body), level=3)}
        for log in trace.logs
    ]
    expected = [
        {"position": n, "body": dump(asdict(e)).decode(), "matched": None if e.matched is None else int(e.matched)}
        for n, e in enumerate(trace.expected_events)
    ]
    texts = content.refs.texts
    packed_source = source or pack_bytes(trace.source.data)
    return Packed(
        trace_id=trace.trace_id,
        digest=_digest(content, trace),
        source={
            "digest": packed_source.digest,
            "size": packed_source.size,
            "body": packed_source.body,
            "file": trace.source.file,
            "place": trace.source.place,
        },
        long=packed_source.long,
        trace=trace_row(trace),
        spans=content.spans,
        messages=content.messages,
        logs=logs,
        expected_events=expected,
        details=_detail_rows(content.details),
        texts=list(packs(texts, known_texts)),
        references=tuple(texts),
        documents=list(_documents(trace, content.first_seq)),
    )


def content_digest(trace: Trace) -> str:
    """The digest that `pack` gives this trace: by it the same content is known, whatever file it came from."""
    return _digest(_content(trace), trace)


class _Content(NamedTuple):
    """Spans and messages as rows, and the long texts that they refer to."""

    first_seq: dict[int, int]
    details: list[bytes]
    spans: list[Row]
    messages: list[Row]
    refs: TextRefs


def _content(trace: Trace) -> _Content:
    refs = TextRefs()
    first_seq = first_sequences(trace)
    details = [_detail(span, refs) for span in trace.spans]
    spans = [dict(zip(_SPAN_PLAIN, _span_plain(span), strict=True)) for span in trace.spans]
    messages = [_message_row(p, message, first_seq.get(p), refs) for p, message in enumerate(trace.messages)]
    return _Content(first_seq, details, spans, messages, refs)


def dump(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


def first_sequences(trace: Trace) -> dict[int, int]:
    """Give the first span (its place in reading order) that holds each message, by the message's position."""
    first: dict[int, int] = {}
    for span in trace.spans:
        for position in (*span.input_messages, *span.output_messages):
            first.setdefault(position, span.seq)
    return first


_SPAN_PLAIN = (
    "seq", "span_id", "parent_span_id", "depth", "name", "kind", "agent", "start_time", "end_time", "clock",
    "status", "tool_name", "model", "prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens",
    "turn", "step",
)  # fmt: skip
_span_plain = attrgetter(*_SPAN_PLAIN)


def _detail(span: Span, refs: TextRefs) -> bytes:
    """JSON of the columns that are not in the span's own row."""
    detail: dict[str, Json] = {
        name: refs.text(getattr(span, name))
        for name in ("input", "output", "status_message", "tool_arguments", "tool_call_id")
    }
    detail["in"] = list(span.input_messages)
    detail["out"] = list(span.output_messages)
    detail["events"] = [refs.json(event) for event in span.events]
    detail["links"] = [refs.json(link) for link in span.links]
    detail["attributes"] = {key: refs.json(value) for key, value in span.attributes.items()}
    detail["warnings"] = list(span.warnings)
    return dump({key: value for key, value in detail.items() if value not in (None, [], {})})


def _detail_rows(details: Sequence[bytes]) -> list[Row]:
    """Details of DETAILS spans a row: alike as they are, they compress well together."""
    return [
        {"first_seq": at, "body": compress(b"[" + b",".join(details[at : at + DETAILS]) + b"]")}
        for at in range(0, len(details), DETAILS)
    ]


def _message_row(position: int, message: Message, first_seq: int | None, refs: TextRefs) -> Row:
    stored = refs.text(message.content)
    calls = [[refs.text(call.name), refs.text(call.arguments), call.id] for call in message.tool_calls]
    return {
        "message": position,
        "role": message.role,
        "content": stored if isinstance(stored, str) else None,
        "content_hash": stored.get("$text") if isinstance(stored, dict) else None,
        "tool_calls": dump(calls).decode() if calls else None,
        "name": message.name,
        "tool_call_id": message.tool_call_id,
        "reasoning": None if message.reasoning is None else dump(refs.text(message.reasoning)).decode(),
        "first_seq": first_seq,
    }


def _digest(content: _Content, trace: Trace) -> str:
    rows = [content.spans, list(map(_told, content.messages)), trace.attributes, trace.goal, trace.final_answer]
    state = blake2b(dump(rows), digest_size=16)
    for detail in content.details:
        state.update(detail)
    state.update(dump([[log.span_id, log.body] for log in trace.logs]))
    state.update(dump([asdict(e) for e in trace.expected_events]))
    state.update(dump(asdict(trace.outcome) if trace.outcome is not None else None))
    return state.hexdigest()


def _told(message: Row) -> Row:
    """A message's row without a reasoning that is none: its digest is as it was before there was that column."""
    return message if message["reasoning"] is not None else {k: v for k, v in message.items() if k != "reasoning"}


def trace_row(trace: Trace) -> Row:
    """Give the row of a trace itself: where it was read, what belongs to the trace, and its summary."""
    return {
        "trace_id": trace.trace_id,
        "file": trace.source.file,
        "place": trace.source.place,
        "format": trace.format,
        "goal": trace.goal,
        "final_answer": trace.final_answer,
        "attributes": dump(dict(trace.attributes)).decode(),
        "warnings": dump(list(trace.warnings)).decode(),
        "outcome": dump(asdict(trace.outcome)).decode() if trace.outcome is not None else None,
        **summary(trace),
    }


def summary(trace: Trace) -> Row:
    """The columns of a trace's row that follow from its spans."""
    spans = trace.spans
    root = spans[0]
    clock = "wall" if any(s.clock == "wall" and s.start_time is not None for s in spans) else "sim"
    starts = [s.start_time for s in spans if s.clock == clock and s.start_time is not None]
    ends = [s.end_time for s in spans if s.clock == clock and s.end_time is not None]
    leaves = trace.leaf_llm_spans()
    return {
        "name": root.name,
        "status": root.status,
        "spans": len(spans),
        "messages": len(trace.messages),
        "llm_spans": sum(s.kind == "LLM" for s in spans),
        "tool_spans": sum(s.kind == "TOOL" for s in spans),
        "error_spans": sum(s.status == "ERROR" for s in spans),
        "warning_count": len(trace.all_warnings),
        "depth": max(s.depth for s in spans),
        "agents": _names(s.agent for s in spans),
        "models": _names(s.model for s in spans),
        "tools": _names(s.tool_name for s in spans if s.kind == "TOOL"),
        "start_time": min(starts, default=None),
        "end_time": max(ends, default=None),
        "duration_s": (max(ends) - min(starts)) / 1e6 if starts and ends else None,
        "prompt_tokens": _or(_total(s.prompt_tokens for s in leaves), root.prompt_tokens),
        "completion_tokens": _or(_total(s.completion_tokens for s in leaves), root.completion_tokens),
        "total_tokens": _or(_total(s.total_tokens for s in leaves), root.total_tokens),
    }


def _names(values: Iterable[str | None]) -> str:
    return dump(list(dict.fromkeys(value for value in values if value))).decode()


def _total(counts: Iterable[int | None]) -> int | None:
    """Their sum; None where nothing is known, or where it is more than a database's integer holds."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and sum(known) < 2**63 else None


def _or(counted: int | None, of_the_trace: int | None) -> int | None:
    """What the calls count together, else what the source counts for the trace as a whole."""
    return of_the_trace if counted is None else counted


def _documents(trace: Trace, first_seq: dict[int, int]) -> Iterable[str]:
    """What full-text search finds a span by: its names, its own texts, and the messages first said in it."""
    new: dict[int, list[str]] = {}
    for position, seq in first_seq.items():
        message = trace.messages[position]
        texts = [message.content or "", *(f"{call.name} {call.arguments}" for call in message.tool_calls)]
        texts += [message.reasoning] if message.reasoning else []
        new.setdefault(seq, []).extend(texts)
    for span in trace.spans:
        own = (
            span.name,
            span.span_id,
            span.tool_name,
            span.tool_arguments,
            span.input,
            span.output,
            span.status_message,
        )
        yield "\n".join([*(piece for piece in own if piece), *new.get(span.seq, ())])
