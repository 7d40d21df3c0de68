"""OpenTelemetry GenAI: `gen_ai.*` attributes, span events and log records that carry message text.

Names and meanings: opentelemetry-semantic-conventions, "Generative AI"; the older spellings (events, `gen_ai.prompt`,
`prompt_tokens`) are read too.
"""

from __future__ import annotations

import re

from tracejury.ingest.conventions.context import Context, SpanLog, forget_zero_tokens, put, put_count
from tracejury.ingest.conventions.conversation import read_conversation, take_conversation
from tracejury.ingest.conventions.message_json import read_messages, read_turn, rest_of
from tracejury.ingest.conventions.parts import read_content
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, Message, SpanDraft, SpanKind

NAME = "genai"

_OPERATIONS: dict[str, SpanKind] = {
    "chat": "LLM", "text_completion": "LLM", "generate_content": "LLM", "completion": "LLM", "responses": "LLM",
    "embeddings": "EMBEDDING", "embedding": "EMBEDDING", "retrieval": "RETRIEVER", "rerank": "RERANKER",
    "execute_tool": "TOOL", "invoke_agent": "AGENT", "create_agent": "AGENT", "invoke_workflow": "CHAIN",
    "execute_task": "CHAIN", "execute_event_loop_cycle": "CHAIN", "chain": "CHAIN",
    "process_thread_run": "AGENT", "start_thread_run": "AGENT", "create_thread": "CHAIN", "create_message": "CHAIN",
    "list_messages": "CHAIN", "submit_tool_outputs": "CHAIN", "list_run_steps": "CHAIN",
}  # fmt: skip
_WORDS: tuple[tuple[tuple[str, ...], SpanKind], ...] = (
    (("tool", "function"), "TOOL"), (("agent",), "AGENT"), (("embed",), "EMBEDDING"), (("retriev",), "RETRIEVER"),
    (("chat", "completion", "generat", "llm"), "LLM"),
)  # fmt: skip
_TELLING: tuple[tuple[str, SpanKind], ...] = (
    ("gen_ai.tool.name", "TOOL"), ("gen_ai.tool.call.id", "TOOL"), ("gen_ai.input.messages", "LLM"),
    ("gen_ai.output.messages", "LLM"),
)  # fmt: skip
"""Attributes that tell the kind of a span that names no operation."""
_ROLES = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}  # fmt: skip
_CHOICES = ("gen_ai.choice", "gen_ai.content.completion")
_EVENTS = frozenset({*_ROLES, *_CHOICES, "gen_ai.content.prompt"})
_CONTENT = ("gen_ai.event.content", "body")
"""Where the body of an event stands as JSON text: Azure's agents and Semantic Kernel, Koog."""
_TEXT_AGAIN = ("gen_ai.prompt", "message.content")
"""Attributes in which litellm repeats the text of a log record's body."""
_DETAILS = "gen_ai.client.inference.operation.details"
_SIDES = (
    ("gen_ai.input.messages", "input_messages"), ("gen_ai.output.messages", "output_messages"),
    ("gen_ai.request.messages", "input_messages"),
)  # fmt: skip
_ANSWER = ("gen_ai.response.text", "gen_ai.response.tool_calls")
"""Where Sentry keeps what a model answered: its texts, and its calls of tools."""
_TOOL_TEXTS = (
    ("gen_ai.tool.call.arguments", "tool_arguments"), ("gen_ai.tool.arguments", "tool_arguments"),
    ("gen_ai.tool.input", "tool_arguments"), ("gen_ai.tool.args", "tool_arguments"),
    ("gen_ai.tool.call.result", "output"), ("gen_ai.tool.result", "output"),
    ("gen_ai.tool.output", "output"),
)  # fmt: skip
_HEADINGS = {
    "Chat Model Prompt Content:": "input_messages", "Chat Client Prompt Content:": "input_messages",
    "Chat Model Completion:": "output_messages", "Chat Client Completion:": "output_messages",
}  # fmt: skip
"""How the lines begin in which Spring AI logs what a model was asked and answered."""
_SPEAKERS = {"input_messages": "user", "output_messages": "assistant"}


def apply(draft: SpanDraft, context: Context) -> None:
    """Move GenAI's attributes, the message events of the span and its log records into columns."""
    logs = context.logs.get(draft.span_id, [])
    if not logs and not draft.events and "gen_ai" not in context.roots:
        return
    _open_entries(draft.attributes)
    _kind(draft)
    _model(draft)
    _tokens(draft)
    put(draft, "agent", "gen_ai.agent.name")
    if draft.kind == "TOOL":
        _tool(draft)
    _attribute_messages(draft, context)
    context.note_filled(draft)
    _event_messages(draft, context)
    _log_messages(draft, logs, context)


def _open_entries(attributes: dict[str, Json]) -> None:
    """Make messages of the prompt that Spring AI writes as `["system":"...", "user":"..."]`, which is no JSON."""
    prompt = attributes.get("gen_ai.prompt")
    if isinstance(prompt, list) and all(isinstance(one, str) for one in prompt):
        prompt = f"[{', '.join(map(str, prompt))}]"
    if isinstance(prompt, str) and (messages := _entries(prompt)) is not None:
        attributes["gen_ai.prompt"] = messages


def _entries(text: str) -> list[Json] | None:
    """The messages of Spring AI's entries; None of any other text."""
    marks = list(_ENTRY.finditer(text))
    if not marks or marks[0].start() != 0 or text[-2:] not in ('"]', "']"):
        return None
    ends = [mark.start() for mark in marks[1:]] + [len(text) - 2]
    return [{"role": mark[2], "content": text[mark.end() : end]} for mark, end in zip(marks, ends, strict=True)]


_ENTRY = re.compile(r"""(?:^\[|(?<=.)["'], )(["'])(system|user|assistant|tool)\1:\1""", re.DOTALL)


def _kind(draft: SpanDraft) -> None:
    operation = draft.attributes.get("gen_ai.operation.name")
    if isinstance(operation, str) and draft.kind == "UNKNOWN":
        draft.kind = _OPERATIONS.get(operation.lower()) or _kind_by_words(operation.lower())
    if operation is None and draft.kind == "UNKNOWN":
        draft.kind = next((kind for key, kind in _TELLING if key in draft.attributes), "UNKNOWN")


def _kind_by_words(operation: str) -> SpanKind:
    """The kind that an operation of a name of its own tells: `chat.completions`, `llm_call`, `tool_call`."""
    return next((kind for words, kind in _WORDS if any(word in operation for word in words)), "UNKNOWN")


def _model(draft: SpanDraft) -> None:
    put(draft, "model", "gen_ai.response.model")
    put(draft, "model", "gen_ai.request.model")


def _tokens(draft: SpanDraft) -> None:
    put_count(draft, "prompt_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    put_count(draft, "completion_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
    put_count(draft, "total_tokens", "gen_ai.usage.total_tokens", "llm.usage.total_tokens")
    put_count(
        draft,
        "reasoning_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.details.reasoning_tokens",
    )
    forget_zero_tokens(draft)


def _tool(draft: SpanDraft) -> None:
    put(draft, "tool_name", "gen_ai.tool.name")
    put(draft, "tool_call_id", "gen_ai.tool.call.id")
    for key, column in _TOOL_TEXTS:
        value = draft.attributes.get(key)
        if value is not None and getattr(draft, column) is None:
            setattr(draft, column, value if isinstance(value, str) else json_text(value))
            del draft.attributes[key]


def _attribute_messages(draft: SpanDraft, context: Context) -> None:
    """`gen_ai.input.messages` and the like, as JSON text or as values; the system instructions come first."""
    system = _system(draft.attributes)
    first = [] if system is None else [context.add(system)]
    for key, column in _SIDES:
        if draft.kind != "TOOL" or _is_list(draft.attributes.get(key)):
            take_conversation(draft, key, column, context, role=_SPEAKERS[column])
    if not draft.output_messages and any(key in draft.attributes for key in _ANSWER):
        _answer(draft, context)
    if first:
        draft.input_messages = [*first, *draft.input_messages]


def _answer(draft: SpanDraft, context: Context) -> None:
    """One message of the texts and the calls of tools that stand apart."""
    text, calls = (
        inner_json(value) if isinstance(value := draft.attributes.get(key), str) else value for key in _ANSWER
    )
    words = draft.attributes.get(_ANSWER[0]) if text is None else text
    content = "\n".join(map(str, words)) if isinstance(words, list) else words
    read = read_turn({"role": "assistant", "content": content, "tool_calls": calls})
    if read is None or len(read) != 1:
        return
    draft.output_messages = [context.add(read[0].message)]
    for key in _ANSWER:
        draft.attributes.pop(key, None)
    if read[0].rest is not None:
        draft.attributes[_ANSWER[1]] = read[0].rest


def _is_list(value: Json) -> bool:
    content = inner_json(value) if isinstance(value, str) else value
    return isinstance(content, list) and read_messages(content) is not None


def _system(attributes: dict[str, Json]) -> Message | None:
    value = attributes.get("gen_ai.system_instructions")
    if value is None:
        return None
    opened_value = inner_json(value) if isinstance(value, str) else value
    content, _, rest = read_content(opened_value if isinstance(opened_value, list) else value)
    if rest is None:
        del attributes["gen_ai.system_instructions"]
    else:
        attributes["gen_ai.system_instructions"] = rest
    return Message("system", content)


def _event_messages(draft: SpanDraft, context: Context) -> None:
    """Span events that carry messages, in their order; an event keeps its name, time and what is no message."""
    records: list[dict[str, Json]] = []
    for event in draft.events:
        name, attributes = event.get("name"), event.get("attributes")
        body = None
        if name == _DETAILS and isinstance(attributes, dict):
            fields = dict(attributes)
            _from_details(draft, fields, context)
            records.append({**event, "attributes": fields})
            continue
        if isinstance(name, str) and name in _EVENTS and isinstance(attributes, dict):
            body = _from_event(name, attributes)
        if body is None:
            records.append(event)
            continue
        column, messages, rest = body
        if draft.kind == "TOOL" and not _of_tool(draft, column, messages):
            records.append(event)
            continue
        for message in messages if draft.kind != "TOOL" else ():
            append(draft, column, message, context)
        records.append({**event, "attributes": rest})
    draft.events = records
    if (
        draft.kind == "AGENT"
        and not draft.output_messages
        and len(records)
        and not context.is_filled(draft, "input_messages")
    ):
        _split_answer(draft, context)


def _split_answer(draft: SpanDraft, context: Context) -> None:
    """An agent's conversation told as events alone: what the assistant says last is what it answers."""
    messages, table = list(draft.input_messages), context.messages.messages
    answer: list[int] = []
    while messages and table[messages[-1]].role == "assistant" and not table[messages[-1]].tool_calls:
        answer.insert(0, messages.pop())
    if messages:
        draft.input_messages, draft.output_messages = messages, answer


def _from_event(name: str, attributes: dict[str, Json]) -> tuple[str, list[Message], dict[str, Json]] | None:
    key = next((key for key in _CONTENT if key in attributes), None)
    if key is not None:
        return _from_content(name, attributes, key)
    if name.startswith("gen_ai.content."):
        key = "gen_ai.prompt" if name.endswith("prompt") else "gen_ai.completion"
        value = _opened(attributes.get(key))
        is_text = isinstance(value, str) and value[:1] in ("{", "[")
        told = None if is_text else read_conversation(value, "user" if key == "gen_ai.prompt" else "assistant")
        if told is None:
            return None
        turns = told.messages
        column = "input_messages" if key == "gen_ai.prompt" else "output_messages"
        others, rest = {k: v for k, v in attributes.items() if k != key} | told.others, rest_of(turns)
        return column, [item.message for item in turns], others if rest is None else {**others, key: rest}
    body = {key: _opened(value) for key, value in attributes.items() if not key.startswith("gen_ai.")}
    read = read_body(name, body)
    if read is None:
        return None
    column, messages, rest = read
    others = {key: value for key, value in attributes.items() if key.startswith("gen_ai.")}
    return column, messages, {**others, **rest}


def _from_content(
    name: str, attributes: dict[str, Json], key: str
) -> tuple[str, list[Message], dict[str, Json]] | None:
    """An event whose body stands as JSON text, or as plain text, in one attribute."""
    beside = {name: item for name, item in attributes.items() if name != key}
    body = _opened(attributes[key])
    role = "assistant" if name in _CHOICES else _ROLES.get(name, "user")
    if not isinstance(body, dict):
        conversation = read_conversation(body, role)
        if conversation is None or conversation.others or rest_of(conversation.messages) is not None:
            return None
        column = "output_messages" if name in _CHOICES else "input_messages"
        return column, [item.message for item in conversation.messages], beside
    read = read_body("gen_ai.choice" if name in _CHOICES else name, body)
    return None if read is None else (read[0], read[1], {**beside, **read[2]})


def _opened(value: Json) -> Json:
    content = inner_json(value) if isinstance(value, str) else None
    return value if content is None else content


def _log_messages(draft: SpanDraft, logs: list[SpanLog], context: Context) -> None:
    """Log records of the span, by time; one whose text became a message keeps only what is no message."""
    for log in logs:
        if log.event_name in _EVENTS and isinstance(log.body, dict):
            read = read_body(log.event_name, log.body)
            if read is not None:
                column, messages, rest = read
                for message in messages:
                    append(draft, column, message, context)
                log.body = rest or None
                for key in _TEXT_AGAIN:
                    if log.attributes.get(key) in [message.content for message in messages if message.content]:
                        del log.attributes[key]
        elif isinstance(log.body, dict) and _holds_sides(log.body):
            _from_sides(draft, log, context)
        elif isinstance(log.body, str):
            _from_text(draft, log, context)
        elif log.event_name == _DETAILS:
            _from_details(draft, log.body if isinstance(log.body, dict) and log.body else log.attributes, context)


def _from_text(draft: SpanDraft, log: SpanLog, context: Context) -> None:
    """A line of a program's log that holds messages behind a heading, as Spring AI writes them."""
    heading, _, text = str(log.body).partition("\n")
    column = _HEADINGS.get(heading.strip())
    if column is None or draft.kind == "TOOL":
        return
    told = read_conversation(_entries(text.strip()) or _opened(text.strip()), _SPEAKERS[column])
    if told is not None:
        for item in told.messages:
            append(draft, column, item.message, context)
        log.body = rest_of(told.messages) or told.others or None


def _holds_sides(body: dict[str, Json]) -> bool:
    """`{"input": {"messages"}, "output": {"messages"}}`: how AgentCore's collector writes what a span said."""
    sides = [side for name in ("input", "output") if isinstance(side := body.get(name), dict)]
    return bool(sides) and all(isinstance(side.get("messages"), list) for side in sides)


def _from_sides(draft: SpanDraft, log: SpanLog, context: Context) -> None:
    body = dict(log.body) if isinstance(log.body, dict) else {}
    for name, column in (("input", "input_messages"), ("output", "output_messages")):
        side = body.get(name)
        messages = read_messages(side.get("messages")) if isinstance(side, dict) else None
        if messages is None or (
            draft.kind == "TOOL" and not _of_tool(draft, column, [item.message for item in messages])
        ):
            continue
        for item in messages if draft.kind != "TOOL" else ():
            append(draft, column, item.message, context)
        rest = rest_of(messages)
        body[name] = None if rest is None else {"messages": rest}
    log.body = {key: item for key, item in body.items() if item is not None} or None


def _from_details(draft: SpanDraft, source: dict[str, Json], context: Context) -> None:
    """The messages of an event of details, which some write as a log record and some as an event of the span."""
    system = _system(source)
    if system is not None:
        append(draft, "input_messages", system, context)
    for key, column in _SIDES:
        value = source.get(key)
        turns = read_messages(inner_json(value) if isinstance(value, str) else value)
        if turns is None or (draft.kind == "TOOL" and not _of_tool(draft, column, [item.message for item in turns])):
            continue
        for item in turns if draft.kind != "TOOL" else ():
            append(draft, column, item.message, context)
        rest = rest_of(turns)
        if rest is None:
            del source[key]
        else:
            source[key] = rest


def _of_tool(draft: SpanDraft, side: str, messages: list[Message]) -> bool:
    """What a tool was given and gave back, told as a message: columns of its span. False: it stays in the event."""
    column = "output" if side == "output_messages" else "tool_arguments"
    content = messages[0].content if len(messages) == 1 and not messages[0].tool_calls else None
    if content is None:
        return False
    if getattr(draft, column) is None:
        setattr(draft, column, content)
    return bool(getattr(draft, column) == content)


def read_body(name: str, body: dict[str, Json]) -> tuple[str, list[Message], dict[str, Json]] | None:
    """The column, the messages and the rest of a `gen_ai.*.message` or `gen_ai.choice` body; None when it is none.

    One message, or one for each tool's result in it.
    """
    outer: dict[str, Json] = {}
    column = "input_messages"
    value = dict(body)
    if name in _CHOICES:
        column = "output_messages"
        inner = value.pop("message", None)
        if isinstance(inner, dict):
            outer, value = value, dict(inner)
        elif isinstance(inner, (str, list)):
            outer, value = value, {"content": inner}
        elif inner is not None:
            return None
    value.setdefault("role", _ROLES.get(name, "assistant"))
    if name == "gen_ai.tool.message" and isinstance(value.get("id"), str):
        value.setdefault("tool_call_id", value.pop("id"))
    turns = read_turn(value)
    if turns is None or not any(_says_something(item.message) for item in turns):
        return None  # an event whose body is in no form known here stays an event
    rest = {**outer, **(turns[0].rest if isinstance(turns[0].rest, dict) else {})}
    return column, [item.message for item in turns], rest


def _says_something(message: Message) -> bool:
    return message.content is not None or bool(message.tool_calls) or message.reasoning is not None


def append(draft: SpanDraft, column: str, message: Message, context: Context) -> None:
    """One more message at the end of a column; where attributes filled it, what an event repeats is not said twice."""
    says_nothing = message.role == "assistant" and not message.content and not message.tool_calls
    if says_nothing and getattr(draft, column):
        return  # litellm logs a reply that is a call alone without the call; a tool's empty answer is an answer
    position = context.add(message)
    if not context.is_filled(draft, column) or position not in getattr(draft, column):
        setattr(draft, column, [*getattr(draft, column), position])
