"""A map proposed from the text that no dialect took; nothing is stored, and a person looks it over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from tracejury.ingest.conventions.conversation import read_conversation
from tracejury.ingest.conventions.message_json import read_messages
from tracejury.ingest.leftovers import leftovers
from tracejury.ingest.parse import inner_json
from tracejury.ingest.readers import read_traces
from tracejury.ingest.trace import Json, Rejected, Span, Trace
from tracejury.ingest.words import counted

_KIND_NAMES = ("kind", "type", "span_type", "operation", "category", "step_type", "role")
_KINDS = (
    ("LLM", ("llm", "model", "chat", "generat", "completion", "infer")), ("TOOL", ("tool", "function", "action")),
    ("AGENT", ("agent",)), ("RETRIEVER", ("retriev", "search")), ("EMBEDDING", ("embed",)),
    ("CHAIN", ("chain", "workflow", "flow", "task", "step")),
)  # fmt: skip
_FIELDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("tool_arguments", ("tool.arg", "tool.input", "arguments", ".args", "tool_input", "params")),
    ("tool_result", ("tool.result", "tool.output", "tool_output", "tool_result", "observation")),
    ("input_messages", ("request", "prompt", "messages", "question", "query", "history", "conversation")),
    ("output_messages", ("response", "completion", "reply", "answer", "generation")),
    ("input", ("input",)),
    ("output", ("output", "result", "document", "content", "text")),
)  # fmt: skip
_MOST_VALUES = 12


@dataclass
class Suggestion:
    """What the spans of a file hold beside what was understood: attributes by field, and values that may be kinds."""

    fields: dict[str, Counter[str]] = field(default_factory=dict)
    kinds: dict[str, Counter[str]] = field(default_factory=dict)
    names: dict[str, Counter[str]] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)
    spans: int = 0

    def toml(self) -> str:
        """The map as TOML text, to be looked over; how often each attribute was met stands beside it."""
        return "\n".join([*self._head(), "", *self._fields(), *self._kind()]) + "\n"

    def _head(self) -> Iterator[str]:
        yield f"# Proposed from {counted(self.spans, 'span')}: check it, then run `tracejury ingest --map THIS PATH`."
        if not self.fields:
            yield "# Nothing to map: every attribute with text is already understood."

    def _fields(self) -> Iterator[str]:
        yield "[fields]"
        for name, attributes in self.fields.items():
            listed = [attribute for attribute, _ in attributes.most_common()]
            counts = ", ".join(counted(count, "span") for count in attributes.values())
            value = _quoted(listed[0]) if len(listed) == 1 else f"[{', '.join(map(_quoted, listed))}]"
            yield f"{name} = {value}  # {counts}"
        for name, attributes in self.names.items():
            yield f"{name} = {_quoted(attributes.most_common(1)[0][0])}"

    def _kind(self) -> Iterator[str]:
        for attribute, values in self.kinds.items():
            kinds = [(value, _kind_of(value)) for value, _ in values.most_common(_MOST_VALUES)]
            if any(kind is not None for _, kind in kinds):
                yield from ("", "[kind]", f"attribute = {_quoted(attribute)}", "[kind.values]")
                yield from (f'{_quoted(value)} = "{kind or "UNKNOWN"}"' for value, kind in kinds)
                return


def suggest(path: Path | str) -> Suggestion:
    """What a map for the spans under `path` could say. Raises `IngestError` where nothing is."""
    suggestion = Suggestion()
    for item in read_traces(path):
        if isinstance(item, Rejected):
            suggestion.rejected.append(item)
        else:
            _take(item, suggestion)
    return suggestion


def _take(trace: Trace, suggestion: Suggestion) -> None:
    for span in trace.spans:
        suggestion.spans += 1
        for leftover in leftovers(span):
            name = leftover.name if leftover.field.startswith("event:") else leftover.field.partition(":")[2]
            field_name = _field_of(name, span)
            place = name + (_path_to_messages(leftover.text) if field_name.endswith("_messages") else "")
            suggestion.fields.setdefault(field_name, Counter())[place] += 1
        if span.kind == "UNKNOWN":
            for attribute, value in _short_texts(span):
                if attribute.rpartition(".")[2].rpartition("_")[2] in _KIND_NAMES:
                    suggestion.kinds.setdefault(attribute, Counter())[value] += 1
        for attribute, _ in _short_texts(span):
            if attribute.endswith(("tool.name", "tool_name")) and span.tool_name in (None, span.name):
                suggestion.names.setdefault("tool_name", Counter())[attribute] += 1
            elif attribute.endswith((".model", "model_name")) and span.model is None:
                suggestion.names.setdefault("model", Counter())[attribute] += 1
        for attribute, number in span.attributes.items():
            count = _count_of(attribute.lower()) if isinstance(number, int) else None
            if count is not None and getattr(span, count) is None:
                suggestion.names.setdefault(count, Counter())[attribute] += 1


def _path_to_messages(text: str) -> str:
    """The way into JSON to its messages, where these are not suggestion without one; "" otherwise."""
    content = inner_json(text)
    if content is None or read_conversation(content, "user") is not None:
        return ""
    waiting: list[tuple[str, Json]] = [("$", content)]
    while waiting:
        path, node = waiting.pop(0)
        if isinstance(node, list) and read_messages(node) is not None:
            return f" {path}"
        if isinstance(node, dict):
            waiting += [(f"{path}['{key}']" if not key.isidentifier() else f"{path}.{key}", item)
                        for key, item in node.items()]  # fmt: skip
    return ""


def _short_texts(span: Span) -> Iterable[tuple[str, str]]:
    named = ((key, value) for key, value in span.attributes.items() if not key.startswith(("otel.", "tracejury.")))
    return ((key, value) for key, value in named if isinstance(value, str) and len(value) < 80)


def _field_of(name: str, span: Span) -> str:
    """The field that an attribute's name tells of; of a tool's span its arguments and its result."""
    lower = name.lower()
    field_name = next((field for field, words in _FIELDS if any(word in lower for word in words)), "input")
    if span.kind == "TOOL":
        return {"input": "tool_arguments", "output": "tool_result"}.get(field_name, field_name)
    return field_name


def _count_of(name: str) -> str | None:
    if "token" not in name:
        return None
    words = {"prompt_tokens": ("prompt", "input", ".in"), "completion_tokens": ("completion", "output", ".out"),
             "total_tokens": ("total",)}  # fmt: skip
    return next((field for field, parts in words.items() if any(part in name for part in parts)), None)


def _kind_of(value: str) -> str | None:
    return next((kind for kind, words in _KINDS if any(word in value.lower() for word in words)), None)


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()  # a TOML basic string is written as JSON's
