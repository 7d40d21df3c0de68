"""Files of spans broken in many ways, and what they hold, counted in their text alone: no reader of ours is used."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.ingest import export_files as made
from tests.ingest.test_bad_input import otlp_request, trail_document

from tracejury.ingest.trace import Rejected, Trace

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"
Documents = list[Any]


def _sample(name: str) -> Any:
    text = (SAMPLES / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)


def _otlp_lines() -> Documents:
    (group,) = otlp_request()["resourceSpans"][0]["scopeSpans"]
    return [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]} for span in group["spans"]]


def _nested_runs() -> Any:
    first, second, *others = _sample("langsmith/tide.jsonl")
    return {**first, "child_runs": [{**second, "child_runs": others}]}


FILES: dict[str, Callable[[], Documents]] = {
    "trail": lambda: [trail_document()],
    "trail-lines": lambda: [trail_document(), {**trail_document(), "trace_id": "2" * 32}],
    "otlp": lambda: [otlp_request()],
    "otlp-lines": _otlp_lines,
    "phoenix": lambda: [made.phoenix_rows()],
    "phoenix-lines": made.phoenix_rows,
    "jaeger": lambda: [_sample("jaeger/tide.json")],
    "zipkin": lambda: [_sample("zipkin/tide.json")],
    "zipkin-lines": lambda: _sample("zipkin/tide.json"),
    "langfuse": lambda: [made.langfuse_trace()],
    "langfuse-page": lambda: [_sample("langfuse/tides-missing.json")],
    "langsmith": lambda: [_sample("langsmith/tide.jsonl")],
    "langsmith-lines": lambda: _sample("langsmith/tide.jsonl"),
    "langsmith-nested": lambda: [_nested_runs()],
}
"""Files by name, each as its JSON documents: one, or a line each."""
_MARKS: dict[str, tuple[set[str], str, Callable[[dict[str, Any], str], Any]]] = {
    "trail": ({"span_id", "span_attributes"}, "span_name", lambda span, word: span["span_attributes"].update(my=word)),
    "otlp": ({"spanId", "startTimeUnixNano"}, "name",
             lambda span, word: span["attributes"].append({"key": "my", "value": {"stringValue": word}})),
    "phoenix": ({"context.span_id"}, "name", lambda span, word: span.update({"attributes.my": word})),
    "jaeger": ({"spanID", "operationName"}, "operationName",
               lambda span, word: span["tags"].append({"key": "my", "type": "string", "value": word})),
    "zipkin": ({"id", "traceId", "timestamp"}, "name", lambda span, word: span["tags"].update(my=word)),
    "langfuse": ({"id", "type", "startTime"}, "name",
                 lambda span, word: span.update(metadata={**(span.get("metadata") or {}), "my": word})),
    "langsmith": ({"run_type"}, "name", lambda span, word: span.setdefault("extra", {}).update(my=word)),
}  # fmt: skip
"""By format: the keys of a span, the key of its name, and how an attribute is put into it."""
_WORD = re.compile(r"(?:named|marked)-(\d{3})")
NAMED = frozenset({"unreadable_span", "unread_spans", "damaged"})
"""Codes of warnings that name spans which are not read."""


def marked(name: str) -> Documents:
    """The documents of a file, each span of them marked in its name and in an attribute of its own."""
    documents = copy.deepcopy(FILES[name]())
    keys, name_key, put = _MARKS[name.partition("-")[0]]
    spans = [node for node in _objects(documents) if keys <= node.keys()]
    for number, span in enumerate(spans):
        span[name_key] = f"named-{number:03}"
        put(span, f"marked-{number:03}")
    return documents


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
        if isinstance(node, (dict, list)):
            stack.extend(node.values() if isinstance(node, dict) else node)


def mutant(name: str, rng: random.Random) -> bytes:
    """A file of marked spans, broken in its values, in its bytes, in both, or not at all."""
    documents = marked(name)
    for _ in range(rng.choice((0, 1, 1, 2))):
        _break_value(documents, rng)
    indent = rng.choice((None, 1)) if len(documents) == 1 else None
    raw = b"\n".join(json.dumps(document, indent=indent).encode() for document in documents)
    raw = raw.replace(b"null", rng.choice((b"null", b"NaN", b"1e999")), 1)
    return rng.choice(BYTES)(raw, rng) if rng.random() < 0.5 else raw


def _break_value(documents: Documents, rng: random.Random) -> None:
    """Put something else in the place of any value, or the value in another place."""
    holder, key = rng.choice(list(_places(documents)))
    value = holder[key]
    others: list[Any] = [
        None, True, 7, 0.5, -1, 10**400, "garbage", json.dumps(value), [value], {"x": value}, _deep(value)
    ]  # fmt: skip
    if isinstance(holder, dict):
        change = rng.choice(("replace", "rename", "drop"))
    else:
        change = rng.choice(("replace", "double", "shuffle"))
    match change:
        case "rename":
            holder[f"{key}_x"] = holder.pop(key)
        case "drop":
            del holder[key]
        case "double":
            holder.insert(key, copy.deepcopy(value))
        case "shuffle":
            rng.shuffle(holder)
        case _:
            holder[key] = rng.choice(others)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    stack = [value]
    while stack:
        node = stack.pop()
        for key, item in node.items() if isinstance(node, dict) else enumerate(node):
            yield node, key
            if isinstance(item, (dict, list)):
                stack.append(item)


def _deep(value: Any) -> Any:
    for _ in range(300):
        value = [value]
    return value


def _at(raw: bytes, rng: random.Random, new: bytes, *, over: int = 0) -> bytes:
    place = rng.randrange(len(raw))
    return raw[:place] + new + raw[place + over :]


def _line(raw: bytes, rng: random.Random, change: Callable[[list[bytes], int], object]) -> bytes:
    lines = raw.split(b"\n")
    change(lines, rng.randrange(len(lines)))
    return b"\n".join(lines)


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    lambda raw, rng: raw[: rng.randrange(1, len(raw))],
    lambda raw, rng: _at(raw, rng, bytes([rng.randrange(256)]), over=1),
    lambda raw, rng: _at(raw, rng, b"\xff\xfe\x80"),
    lambda raw, rng: _at(raw, rng, b"\x00"),
    lambda raw, _rng: b"\xef\xbb\xbf" + raw,
    lambda raw, _rng: raw.decode().encode("utf-16-le"),
    lambda raw, _rng: raw.decode().encode("utf-16"),
    lambda raw, _rng: raw.decode().encode("utf-32"),
    lambda raw, _rng: raw.replace(b"\n", b"\r"),
    lambda raw, _rng: raw.replace(b"\n", b"\r\n"),
    lambda raw, _rng: raw + raw,
    lambda raw, _rng: raw + b"}",
    lambda raw, rng: _line(raw, rng, lambda lines, at: lines.insert(at, lines[at])),
    lambda raw, rng: _line(raw, rng, lambda lines, _at: rng.shuffle(lines)),
    lambda raw, rng: _line(raw, rng, lambda lines, at: lines.__setitem__(at, lines[at][: len(lines[at]) // 2])),
)


def lost_in_silence(raw: bytes, items: list[Trace | Rejected]) -> set[str]:
    """The numbers of marked spans in a file's text that stand in no span read of it, and that nothing names.

    A rejection, and a warning of `NAMED`, account for what is not read. A span that holds the marks of several
    others holds them as text: those count as lost. Of a trace of one span, what it was read from stands at the trace.
    """
    traces = [item for item in items if isinstance(item, Trace)]
    codes = {warning.partition(":")[0] for trace in traces for warning in trace.all_warnings}
    if len(traces) < len(items) or codes & NAMED or _says_children_are_no_list(traces):
        return set()
    planted = {f"{number:03}" for number in range(10)}
    lost = set(_WORD.findall(_text(raw))) & planted
    spans = [(span, one.attributes if len(one.spans) == 1 else {}) for one in traces for span in one.spans]
    for span, beside in spans:
        text = f"{span!r} {beside!r}"
        own = set(re.findall(r"marked-(\d{3})", text))
        lost -= own if len(own) == 1 else set(re.findall(r"named-(\d{3})", span.name if own else text))
    return lost


def _says_children_are_no_list(traces: list[Trace]) -> bool:
    return any(warning.startswith("retyped: child_spans") for trace in traces for warning in trace.all_warnings)


def _text(raw: bytes) -> str:
    if raw.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return raw.decode("utf-32", "replace")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-16-le" if raw[1:2] == b"\x00" else "utf-8", "replace")
