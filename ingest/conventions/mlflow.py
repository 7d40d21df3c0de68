"""MLflow tracing: `mlflow.spanType`, `mlflow.spanInputs`, `mlflow.spanOutputs`, `mlflow.chat.*`.

Names: `mlflow.tracing.constant.SpanAttributeKey`. MLflow writes every attribute as JSON text.
"""

from __future__ import annotations

from tracejury.ingest.conventions.context import Context, column_of
from tracejury.ingest.conventions.message_json import read_message, read_messages, rest_of
from tracejury.ingest.parse import inner_json, json_text, unquoted
from tracejury.ingest.trace import SPAN_KINDS, Json, Message, SpanDraft, SpanKind

NAME = "mlflow"

_KINDS: dict[str, SpanKind] = {
    "CHAT_MODEL": "LLM", "PARSER": "CHAIN", "MEMORY": "CHAIN", "WORKFLOW": "CHAIN", "TASK": "CHAIN",
}  # fmt: skip
_USAGE = (
    ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"), ("total_tokens", "total_tokens"),
)  # fmt: skip


def apply(draft: SpanDraft, context: Context) -> None:
    """Move MLflow's attributes, already read from their JSON, into columns."""
    if "mlflow" not in context.roots:
        return
    attributes = draft.attributes
    _open(attributes)
    _kind(draft)
    _usage(draft)
    model = attributes.get("mlflow.llm.model")
    if isinstance(model, str) and draft.model is None:
        draft.model = attributes.pop("mlflow.llm.model")  # type: ignore[assignment]
    inputs, outputs = attributes.pop("mlflow.spanInputs", None), attributes.pop("mlflow.spanOutputs", None)
    if draft.kind == "LLM":
        inputs = _messages(draft, "input", inputs, context)
        outputs = _messages(draft, "output", outputs, context)
        if isinstance(inputs, dict) and draft.model is None and isinstance(inputs.get("model"), str):
            draft.model = str(inputs["model"])
    _put(draft, column_of(draft, "input"), inputs, "mlflow.spanInputs")
    _put(draft, "output", outputs, "mlflow.spanOutputs")
    _chat_messages(draft, context)


def _open(attributes: dict[str, Json]) -> None:
    """Read the attributes of a span that was sent as OTLP from the JSON text that each of them is."""
    if not str(attributes.get("mlflow.spanType", "")).startswith('"'):
        return
    for name in [name for name in attributes if name.startswith("mlflow.")]:
        value = attributes[name]
        if isinstance(value, str):
            inner = inner_json(value)
            attributes[name] = unquoted(value) if inner is None else inner


def _kind(draft: SpanDraft) -> None:
    kind = draft.attributes.get("mlflow.spanType")
    if not isinstance(kind, str) or draft.kind != "UNKNOWN":
        return
    if kind in SPAN_KINDS:
        draft.kind = kind
        del draft.attributes["mlflow.spanType"]
    else:
        draft.kind = _KINDS.get(kind, "UNKNOWN")


def _usage(draft: SpanDraft) -> None:
    usage = draft.attributes.get("mlflow.chat.tokenUsage")
    if not isinstance(usage, dict):
        return
    for column, name in _USAGE:
        count = usage.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and getattr(draft, column) is None:
            setattr(draft, column, count)


def _messages(draft: SpanDraft, side: str, value: Json, context: Context) -> Json:
    """The messages of a chat call's inputs or outputs into their column; what is left of the value."""
    if getattr(draft, f"{side}_messages"):
        return value
    listed, others = _listed(value)
    turns = read_messages(listed)
    if turns is None:
        return value
    setattr(draft, f"{side}_messages", [context.add(item.message) for item in turns])
    rest = rest_of(turns)
    if rest is not None:
        draft.attributes[f"mlflow.span{side.title()}s"] = {"messages": rest}
    return others or None


def _listed(value: Json) -> tuple[Json, dict[str, Json]]:
    if not isinstance(value, dict):
        return value, {}
    if isinstance(value.get("messages"), list):
        return value["messages"], {key: item for key, item in value.items() if key != "messages"}
    choices = value.get("choices")
    if isinstance(choices, list) and choices and all(isinstance(c, dict) and "message" in c for c in choices):
        left = [{k: v for k, v in c.items() if k != "message"} for c in choices if isinstance(c, dict)]
        others: dict[str, Json] = {key: item for key, item in value.items() if key != "choices"}
        others["choices"] = list[Json](left)
        return [c["message"] for c in choices if isinstance(c, dict)], others
    return ([value], {}) if read_message(value) is not None else (None, {})


def _put(draft: SpanDraft, column: str, value: Json, key: str) -> None:
    if value is None:
        return
    if getattr(draft, column) is None:
        setattr(draft, column, value if isinstance(value, str) else json_text(value))
    else:
        draft.attributes[key] = value


def _chat_messages(draft: SpanDraft, context: Context) -> None:
    """`mlflow.chat.messages` repeats inputs and outputs; it is dropped where it says nothing that they do not."""
    turns = read_messages(draft.attributes.get("mlflow.chat.messages"))
    if turns is None:
        return
    messages = [item.message for item in turns]
    if not draft.input_messages and not draft.output_messages:
        draft.input_messages = [context.add(message) for message in messages[:-1]]
        draft.output_messages = [context.add(messages[-1])]
    positions = {*draft.input_messages, *draft.output_messages}
    if all(_known(message, positions, context) for message in messages) and rest_of(turns) is None:
        del draft.attributes["mlflow.chat.messages"]


def _known(message: Message, positions: set[int], context: Context) -> bool:
    table = context.messages.messages
    return any(table[position] == message for position in positions)
