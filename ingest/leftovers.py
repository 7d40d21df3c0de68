"""Text of a span that no dialect took: what its attributes and events hold beside what was understood.

Nothing of it is stored again: it is found in the attributes and events where it stands. Technical attributes (ids,
models, settings, the tracer's own) are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from tracejury.ingest.evaluations import is_evaluation
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, Message, SpanKind

LONG, SENTENCE = 80, 24
"""Characters from which words within a value are text whatever the name of its attribute, and words alone in it."""


class Leftover(NamedTuple):
    """A text under its own name: its address (`attribute:NAME`, `event:NUMBER:NAME`), the text, and the words in it."""

    field: str
    name: str
    text: str
    leaves: tuple[str, ...]


class HasText(Protocol):
    """What a span and a draft of one share."""

    @property
    def kind(self) -> SpanKind: ...
    @property
    def input(self) -> str | None: ...
    @property
    def output(self) -> str | None: ...
    @property
    def tool_arguments(self) -> str | None: ...
    @property
    def status_message(self) -> str | None: ...
    @property
    def input_messages(self) -> Sequence[int]: ...
    @property
    def output_messages(self) -> Sequence[int]: ...
    @property
    def attributes(self) -> Mapping[str, Json]: ...
    @property
    def events(self) -> Sequence[dict[str, Json]]: ...


_WANTED = re.compile(
    r"input|output|prompt|completion|message|argument|args|result|response|document|question|content|query|answer"
    r"|text|reply|request|instruction|transcript|reasoning|thought|observation|task|goal|body|conversation|history"
)
_TECHNICAL_FAMILIES = frozenset({
    "otel", "tracejury", "telemetry", "service", "process", "host", "os", "http", "url", "net", "network", "server",
    "client", "thread", "k8s", "cloud", "deployment", "container", "faas", "rpc", "exception", "error", "logfire",
    "user_agent", "aws", "peer", "session", "pat", "scope", "resource",
})  # fmt: skip
_TECHNICAL_STARTS = (
    "gen_ai.request.", "gen_ai.usage.", "gen_ai.tool.definitions", "gen_ai.tool.description", "llm.request.",
    "llm.usage.", "llm.token_count.", "llm.invocation_parameters", "llm.tools", "llm.prompt_template.", "ai.settings.",
    "ai.request.headers.", "ai.usage.", "ai.prompt.tools", "ai.telemetry.", "ai.stream.", "ai.response.avg",
    "ai.response.ms", "embedding.embeddings", "tool.json_schema", "tool.description", "smolagents.", "genkit:path",
    "genkit:context", "genkit:metadata", "haystack.component.input_types", "haystack.component.input_spec",
    "haystack.component.output_spec", "haystack.component.fully_qualified_type", "metadata", "langfuse.trace.metadata",
    "langfuse.observation.metadata", "langfuse.observation.model.parameters", "langsmith.metadata.", "tag.tags",
    "traceloop.association.properties.", "traceloop.workflow.", "model_request_parameters", "operation.",
    "gcp.vertex.agent.associated", "claude_code.version", "mlflow.trace", "mlflow.artifact", "mlflow.chat.tools",
)  # fmt: skip
_TECHNICAL_ENDS = re.compile(
    r"(?:^|[._:])(?:(?:tool|agent)\.description|\w*id|\w*ids|\w*uuid|\w*hash|digest|version|type|kind|types|provider|system|model|model_name"
    r"|\w*finish_?reasons?|\w*_details|extra_body|stop_?reason|stop_?sequences|role|timestamp|\w*time|duration\w*|latency\w*|cost\w*|currency"
    r"|url|mime_type|encoding|level|status|status_code|schema|json_schema|definitions|tools|tools_names|parameters"
    r"|settings|headers|provider_?metadata|tokens?|\w*tokens|usage|count|\w*count|length|\w*length|size|index|code"
    r"|\w*key|visits|seed|temperature|format|language|language_code|func|function_id|functionId|name|\w+_name|truncated"
    r"|\w+_truncated|\w*stack_?trace|traceback|kwargs|logprobs|signature|system_fingerprint|service_tier|outputtype|output_type)$",
    re.IGNORECASE,
)
_TECHNICAL_KEYS = frozenset({
    "type", "role", "id", "object", "model", "finish_reason", "finishReason", "stop_reason", "index", "created",
    "status", "signature", "thoughtSignature", "thought_signature", "encrypted_content", "system_fingerprint",
    "service_tier", "mime_type", "mimeType", "media_type", "mediaType", "logprobs", "lc", "annotations", "usage",
    "usage_metadata", "response_metadata", "metadata", "additional_kwargs", "toolCallType", "event.name", "data",
    "bytes", "base64", "embedding", "embeddings", "tools", "created_at", "exit_reason",
    "token_usage", "meta", "run_id", "thread_id", "trace_id", "span_id",
})  # fmt: skip
_RESTS = frozenset({
    "input.value", "output.value", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt",
    "gen_ai.completion", "events", "all_messages_events", "mlflow.spanInputs", "mlflow.spanOutputs",
    "span_data.input", "span_data.output", "span_data.response", "traceloop.entity.input", "input.messages",
    "output.messages", "output.beside", "request", "response", "response_message", "langfuse.observation.input",
    "langfuse.observation.output", "gen_ai.system_instructions", "pydantic_ai.all_messages",
})  # fmt: skip
"""Where a dialect leaves what a message holds beyond its words: of a value there (no longer text) only prose counts."""
READ_WHOLE = frozenset({"gaia2", "maseval", "inspect"})
"""Formats whose readers take all text themselves: what is left there is the benchmark's own, and may be the answer."""
_GOLD = re.compile(
    r"expected|ground_?truth|gold|(?:true|correct|reference|target|right)_?(?:answer|output)", re.IGNORECASE
)
"""Names that tell of the right answer: never shown to a judge."""
_DIALECTS = (
    "gen_ai.", "llm.", "span_data.", "langfuse.", "langsmith.", "mlflow.", "traceloop.", "ai.", "genkit:", "haystack.",
    "gcp.vertex.agent.", "pydantic_ai.", "record.",
)  # fmt: skip
"""Families of names that a dialect reads: a value there that is no text any more is the rest of what it read."""
_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,")
_WORDS = re.compile(r"\w\s+\w|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2}")
"""Between two words; Thai, Lao, Burmese, Khmer, Japanese and Chinese write none, and a word in about two signs."""


def leftovers(span: HasText) -> Iterator[Leftover]:
    """The texts of a span that no column holds, under their own names, in the order of the source.

    What an evaluator said is none: it becomes a verdict, and neither annotators nor judges may read it here.
    """
    is_bare = _is_bare(span)
    for name, value in span.attributes.items():
        if is_evaluation(name):
            continue
        leftover = _leftover(f"attribute:{name}", name, name, value, is_bare=is_bare)
        if leftover is not None:
            yield leftover
    for number, event in enumerate(span.events):
        attributes = event.get("attributes")
        if not isinstance(attributes, dict) or event.get("name") == "exception":
            continue
        for name, value in attributes.items():
            if is_evaluation(str(event.get("name"))) or is_evaluation(name):
                continue
            label = f"event {event.get('name') or number}: {name}"
            known = not isinstance(value, str) and str(event.get("name")).startswith(_DIALECTS)
            leftover = _leftover(f"event:{number}:{name}", label, name, value, is_rest=known, is_bare=is_bare)
            if leftover is not None:
                yield leftover


def has_messages(span: HasText, messages: Sequence[Message]) -> bool:
    """Whether a span has a message with words or calls, or text that went in or came out."""
    if span.input or span.output:
        return True
    own = (messages[position] for position in (*span.input_messages, *span.output_messages))
    return any(message.content or message.tool_calls or message.reasoning for message in own)


def decisions_of(value: Json, *, depth: int = 0) -> Iterator[str]:
    """Every text in a value, JSON and Python literals within texts opened; fields that are technical left out."""
    if isinstance(value, str):
        inner = opened(value) if depth < 6 else value
        if isinstance(inner, str):
            inner = inner_json(value) or value
        if not isinstance(inner, str):
            yield from decisions_of(inner, depth=depth + 1)
        elif value.strip() and not _DATA_URI.match(value):
            yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _TECHNICAL_KEYS:
                yield from decisions_of(item, depth=depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from decisions_of(item, depth=depth + 1)


def holds_text(name: str, value: Json) -> bool:
    """Whether an attribute of this name and value would be shown as text that no dialect took."""
    return _leftover("", name, name, value) is not None


def _is_bare(span: HasText) -> bool:
    """Whether nothing was understood of a span: what few words it has may be all that it says."""
    texts = (span.input, span.output, span.tool_arguments, span.status_message)
    is_told = any(texts) or len(span.input_messages) + len(span.output_messages) > 0
    return span.kind in {"UNKNOWN", "LLM", "TOOL"} and not is_told


def _leftover(
    field: str, label: str, name: str, value: Json, *, is_rest: bool = False, is_bare: bool = False
) -> Leftover | None:
    if not isinstance(value, (str, list, dict)) or not value or _is_technical(name) or _GOLD.search(name):
        return None
    if _holds_answer(value):
        return None
    leaves = tuple(decisions_of(value))
    if is_rest or (not isinstance(value, str) and (name in _RESTS or name.startswith(_DIALECTS))):
        leaves = tuple(filter(_is_prose, leaves))
        is_text = bool(leaves)
    elif _WANTED.search(name.lower()) is not None:
        is_text = bool(leaves) or not isinstance(value, str) or inner_json(value) is not None
    else:
        is_told = any(map(_is_sentence, leaves)) if _is_plain(value) else _tells_text(value)
        is_text = is_told or any(map(_is_prose, leaves)) or (is_bare and any(map(_WORDS.search, leaves)))
    if not is_text or (all(map(_is_data, leaves or ("",))) and leaves):
        return None
    return Leftover(field, label, value if isinstance(value, str) else json_text(value), leaves)


def _holds_answer(value: Json) -> bool:
    """Whether a field of the value is named as the right answer is."""
    return any(_GOLD.search(key) for key, _ in _fields(value))


def _fields(value: Json) -> Iterator[tuple[str, Json]]:
    """Every field of a value, at any depth, with what it holds; the value may be JSON text."""
    content = inner_json(value) if isinstance(value, str) else value
    if isinstance(content, dict):
        yield from content.items()
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    for item in inner:
        if isinstance(item, (dict, list)):
            yield from _fields(item)


def _is_technical(name: str) -> bool:
    family = re.split(r"[.:]", name, maxsplit=1)[0]
    return (
        (family in _TECHNICAL_FAMILIES and name not in _TEXT_OF_FAMILIES)
        or name.startswith(_TECHNICAL_STARTS)
        or _TECHNICAL_ENDS.search(name) is not None
    )


_TEXT_OF_FAMILIES = frozenset({"error.message", "http.request.body", "http.response.body", "service.message"})


def _is_prose(text: str) -> bool:
    """Words of some length: no id, no hash, no bytes."""
    return _weight(text) >= LONG and len(_WORDS.findall(text[:400])) >= 5


def _is_plain(value: Json) -> bool:
    """Whether a value is text, or a list of texts, with no fields."""
    items = value if isinstance(value, list) else [value]
    return all(isinstance(item, str) and inner_json(item) is None for item in items)


def _is_sentence(text: str) -> bool:
    """A few words, which no name or setting has."""
    return _weight(text) >= SENTENCE and len(_WORDS.findall(text[:400])) >= 4


def _weight(text: str) -> int:
    """How long a text is in letters of an alphabet: in bytes of UTF-8, of which a sign of other scripts has three."""
    return len(text[:LONG].encode(errors="replace"))


def _tells_text(value: Json) -> bool:
    """Whether a field of the value is named as text is, and holds some."""
    named = (item for key, item in _fields(value) if key not in _TECHNICAL_KEYS and _WANTED.search(key.lower()))
    return any(isinstance(item, str) and _WORDS.search(item) for item in named)


def _is_data(text: str) -> bool:
    """Bytes as text (base64, hex), which nobody reads."""
    if len(text) >= 32 and re.fullmatch(r"[0-9a-fA-F-]+", text):
        return True
    return len(text) >= 64 and re.fullmatch(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/=_-]+", text) is not None
