"""What the dialects share while one trace is translated: its messages, and calls whose messages are incomplete."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracejury.ingest.messages import MessageTable
from tracejury.ingest.trace import Json, Message, SpanDraft

_USAGE_NAMES = (
    ("prompt_tokens", ("prompt_tokens", "input_tokens", "input", "promptTokens", "inputTokens")),
    ("completion_tokens", ("completion_tokens", "output_tokens", "output", "completionTokens", "outputTokens")),
    ("total_tokens", ("total_tokens", "total", "totalTokens")),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """A call whose first messages the tracer dropped; `said` holds the rest by their number in the call."""

    draft: SpanDraft
    said: dict[int, Message]


@dataclass(kw_only=True, slots=True)
class SpanLog:
    """A log record beside a span. A dialect that turns its body into a message takes it out (`body` None)."""

    trace_id: str
    span_id: str
    event_name: str
    time: int | None
    body: Json
    attributes: dict[str, Json]
    rest: dict[str, Json]

    def as_json(self) -> dict[str, Json]:
        """The record as it is kept in `Trace.logs`."""
        record: dict[str, Json] = {"event_name": self.event_name, "time": self.time, "body": self.body}
        record["attributes"] = self.attributes
        return {key: item for key, item in {**self.rest, **record}.items() if item not in (None, "", {})}


@dataclass(slots=True)
class Context:
    """The state of one trace's translation."""

    messages: MessageTable
    logs: dict[str, list[SpanLog]] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    roots: set[str] = field(default_factory=set)
    """The first parts of the draft's attribute names: a dialect whose part is not among them has nothing to do."""
    attribute_count: int = 0
    """Attributes that the tracer counted; those that a reader or a vendor's collector adds are left out."""
    maps: set[str] = field(default_factory=set)
    """The maps of the user's own that filled a span of this trace."""
    _filled: set[tuple[int, str]] = field(default_factory=set)
    _plain: dict[tuple[str | None, str | None], Message] = field(default_factory=dict)

    def begin(self, draft: SpanDraft) -> None:
        """Note which families of attributes the draft has, and how many its tracer counted."""
        roots = [key.partition(".")[0] for key in draft.attributes]
        self.roots = set(roots)
        self.attribute_count = len(roots) - roots.count("otel") - roots.count("pat")

    def add(self, message: Message) -> int:
        return self.messages.place(message)

    def note_filled(self, draft: SpanDraft) -> None:
        """Remember which message columns the attributes filled, before events and logs add to them."""
        for column in ("input_messages", "output_messages"):
            if getattr(draft, column):
                self._filled.add((id(draft), column))

    def is_filled(self, draft: SpanDraft, column: str) -> bool:
        """Whether the attributes filled this column."""
        return (id(draft), column) in self._filled

    def plain(self, role: str | None, content: str | None) -> Message:
        """The message of a role and a text, made once however often it is said."""
        message = self._plain.get((role, content))
        if message is None:
            message = self._plain[role, content] = Message(role, content)
        return message


def column_of(draft: SpanDraft, side: str) -> str:
    """The column of what went in (`side` input) or came out (output): a tool takes arguments."""
    return "tool_arguments" if draft.kind == "TOOL" and side == "input" else side


def put(draft: SpanDraft, column: str, key: str) -> None:
    """Move a text attribute into an empty column; other types and a column already filled stay as they are."""
    value = draft.attributes.get(key)
    if not isinstance(value, str):
        return
    present = getattr(draft, column)
    if present is None and value:
        setattr(draft, column, value)
    elif present != value:
        return
    del draft.attributes[key]


def put_count(draft: SpanDraft, column: str, *keys: str) -> None:
    """Move a token count (number or text) into a column, from the first key that has one."""
    for key in keys:
        if key not in draft.attributes:
            continue
        value = draft.attributes[key]
        count = _count(value)
        if count is None:
            if value is not None and value != "":
                draft.warnings.append(f"not_a_count: {key} is {_short(value)}; kept as an attribute")
        elif getattr(draft, column) in (None, count):
            setattr(draft, column, count)
            del draft.attributes[key]


def put_usage(draft: SpanDraft, usage: Json, prefix: str) -> None:
    """The counts of a usage object, in OpenAI's, Anthropic's or Langfuse's names; a count that is none is warned of."""
    if not isinstance(usage, dict):
        return
    for column, names in _USAGE_NAMES:
        counts = {f"{prefix}{name}": usage[name] for name in names if usage.get(name) is not None}
        draft.attributes.update(counts)
        put_count(draft, column, *counts)


def forget_zero_tokens(draft: SpanDraft) -> None:
    """A call of no token at all was not counted: null, never 0. The attributes say what the source held."""
    counts = {
        name: getattr(draft, name)
        for name in ("prompt_tokens", "completion_tokens", "total_tokens")
        if getattr(draft, name) is not None
    }
    if draft.kind == "LLM" and counts and not any(counts.values()):
        draft.warnings.append("zero_tokens: the source counts 0 tokens for a model call; taken as unknown")
        draft.attributes["tracejury.zero_tokens"] = [*sorted(counts)]
        draft.prompt_tokens = draft.completion_tokens = draft.total_tokens = None


def _count(value: Json) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip().removesuffix(".0")  # pandas writes counts beside empty cells as 11.0
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return value if isinstance(value, int) and 0 <= value < 2**63 else None


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
