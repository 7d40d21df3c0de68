"""What one record of a conversation says, in the forms of chat interfaces, agents' session files and benchmarks.

Each form is one function from a record to the messages that it writes, tried after those of `message_json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from tracejury.ingest.conventions.message_json import CALL_CAME, CALL_GIVEN, read_turn
from tracejury.ingest.conventions.parts import arguments_text, joined, result_text
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields, objects_in, plain_name
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.trajectory import Usage
from tracejury.ingest.trace import Json, Message, ToolCall

Record = Mapping[str, Json]

_ROLES = {
    "user": "user", "human": "user", "assistant": "assistant", "model": "assistant", "ai": "assistant",
    "agent": "assistant", "gpt": "assistant", "bot": "assistant", "gemini": "assistant", "system": "system",
    "developer": "system", "tool": "tool", "function": "tool", "observation": "tool", "userMessage": "user",
    "apiMessage": "assistant", "chatbot": "assistant", "toolResult": "tool", "toolresult": "tool",
    "_system_prompt": "system",
}  # fmt: skip
"""The speakers of a conversation by the words that tools use for them."""
_TIMES = ("timestamp", "ts", "created", "createdat", "date", "time", "createtime")
_READ = frozenset({
    "role", "content", "parts", "items", "message", "msg", "info", "data", "type", "kind", "delta", "from", "value",
    "sender", "text", "name", "messagetype", "toolcall", "toolcalls", "toolcallid", "toolinvocations", "toolname",
    "toolid", "toolreturn", "toolrequests", "reasoning", "reasoningcontent", "parameters", "output", "result", "args",
    "id", "uuid", "parentuuid", "parentid", "sessionid", "thoughts", "callid", "subtype", "status", "task",
    "stepnumber", "modeloutput", "observations", "modelinputmessages", "modeloutputmessage", "codeaction",
    "actionoutput", "isfinalanswer", "source", "functioncall", "blocks", "contents", "author", "recipient", "channel",
    "query", "answer", "agentthoughts", "messagedata", "mes", "swipes", "usedtools", "conversationid", "speaker",
    "utterance", "body", "toolresults",
})  # fmt: skip
"""Fields that the forms here read, or that number and sort records; names as `plain_name` writes them."""
_READ_OF_CALLS = frozenset((*CALL_GIVEN, *CALL_CAME))
"""Fields of an item of the Responses API that is a call."""
_DONE = frozenset({"output-available", "output-error", "completed", "error", "result"})


class Turn(NamedTuple):
    """The messages of a record, when it was made, by which model, for how many tokens."""

    messages: list[Message]
    time: int | None = None
    model: str | None = None
    usage: Usage | None = None
    is_delta: bool = False
    """Whether the words go on with those of the record before."""
    rest: dict[str, Json] | None = None
    """What the record holds beyond all that; None where nothing."""
    warnings: Sequence[str] = ()
    """The fields whose type is not what the record's form says."""


def read_record(record: Record, path: str = "") -> Turn | None:
    """What a record of a conversation says, whose warnings begin with this path; None where it is no message."""
    if "_role" in record:  # Haystack's older form
        record = {key.removeprefix("_"): item for key, item in record.items()}
    if "Role" in record and "Contents" in record:  # Microsoft.Extensions.AI
        record = {**_camel(record), "contents": [_camel(one) for one in objects_in(record["Contents"])]}
    messages = next((read for form in _FORMS if (read := form(record)) is not None), None)
    if messages is None:
        return None
    fields, inner = Fields(dict(record), path), record.get("message", record.get("info", record.get("data")))
    if path:
        _name_wrong_types(fields)
    inner_fields = Fields(inner if isinstance(inner, dict) else {}, path, fields.warnings)
    steps = Fields({**fields.nested("timing"), **(meta if isinstance(meta := record.get("metadata"), dict) else {})})
    times = (_moment(fields), _moment(inner_fields), steps.time("endtime", "stependtime"))
    moment = next((time for time in times if time is not None), None)
    built = Fields(kwargs if isinstance(kwargs := record.get("kwargs"), dict) else {})
    responses = [one.get("response_metadata") for one in (record, built.raw)]
    beside = [Fields(one) for one in (meta, record.get("meta"), *responses) if isinstance(one, dict)]
    models = (one.text("model", "modelname", "modelid", "modelslug") for one in (fields, inner_fields, *beside))
    model = next((text for text in models if text), None)
    usage = next((used for one in (fields, inner_fields, built, *beside) if (used := _usage(one)) is not None), None)
    is_call = str(record.get("type")).endswith("_call") and "role" not in record
    known = _READ | _READ_OF_CALLS if is_call else _READ
    rest = {key: item for key, item in {**inner_fields.rest(), **fields.rest()}.items() if plain_name(key) not in known}
    return Turn(messages, moment, model, usage, record.get("delta") is True, rest or None, fields.warnings)


def _camel(record: Record) -> dict[str, Json]:
    """The fields of an object under names that begin with a small letter."""
    return {key[:1].lower() + key[1:]: item for key, item in record.items()}


def _name_wrong_types(fields: Fields) -> None:
    """Warn of calls, thoughts and ids that no form reads, since their type is none that a form has."""
    for call in fields.objects("toolcalls"):
        if call.peek("name") is None:
            call.nested("function")
    for name in ("thoughts", "toolinvocations"):
        list(fields.objects(name))
    fields.word("toolcallid")
    fields.nested("info")


def _moment(fields: Fields) -> int | None:
    if isinstance(fields.peek("time"), dict):
        return fields.inner("time").time("created")
    return fields.time(*_TIMES)


def _usage(fields: Fields) -> Usage | None:
    counts = fields.inner("usage", "usagemetadata", "tokens", "tokenusage", "modelsusage", "metrics")
    prompt = counts.count("prompttokens", "inputtokens", "prompttokencount", "input")
    completion = counts.count("completiontokens", "outputtokens", "candidatestokencount", "output")
    total = counts.count("totaltokens", "totaltokencount", "total")
    reasoning = counts.count("reasoningtokens", "thoughtstokencount", "thoughts", "reasoning")
    known = prompt is not None or completion is not None or total is not None
    return Usage(prompt=prompt, completion=completion, total=total, reasoning=reasoning) if known else None


def _call(name: Json, arguments: Json, call_id: Json) -> Message:
    return Message("assistant", None, (ToolCall(as_text(name), arguments_text(arguments), as_text(call_id)),))


def _result(call_id: Json, content: Json, name: Json = None) -> Message:
    return Message("tool", result_text(content)[0], (), as_text(name), as_text(call_id))


_CALLS_BESIDE = ("tool_calls", "toolCalls")
"""Where calls of tools stand beside the parts of a message."""


def _parts(record: Record) -> list[Message] | None:
    """A role with parts, as chat interfaces and agents keep it: UI messages, OpenCode, Goose, Semantic Kernel."""
    info = record.get("info")
    holder = {**record, **info} if isinstance(info, dict) else record
    role = holder.get("role", holder.get("Role"))
    role = _ROLES.get(str(role.get("Label", role.get("label")) if isinstance(role, dict) else role).lower())
    parts = next(
        (content for key in ("parts", "content", "Items", "items") if isinstance(content := record.get(key), list)),
        None,
    )
    if role is None or parts is None:
        return None
    if (role == "tool" or any(record.get(key) for key in _CALLS_BESIDE)) and (known := _known(record)) is not None:
        return known
    messages: list[Message] = []
    for part in parts:
        read = _part(part, role) if isinstance(part, dict) else [Message(role, as_text(part))]
        if read is None:
            return None
        messages += read
    return _joined(messages)


def _part(part: Record, role: str) -> list[Message] | None:
    """The messages of one part; none of a mark of a step, None of a part that says something unknown."""
    kind = str(part.get("type", part.get("kind", part.get("$type", ""))))
    state, call, result = part.get("state"), part.get("toolCall"), part.get("toolResult")
    match kind:
        case "step-start" | "step-finish" | "snapshot" | "patch":
            return []
        case "text" | "TextContent" if isinstance(text := part.get("text", part.get("Text")), str):
            return [Message(role, text)]
        case "reasoning":
            return [Message("assistant", None, reasoning=as_text(part.get("text")))]
        case "toolRequest" if isinstance(call, dict):
            value = call.get("value")
            value = value if isinstance(value, dict) else call
            return [_call(value.get("name"), value.get("arguments"), part.get("id"))]
        case "toolResponse" if isinstance(result, dict):
            value = result.get("value", result.get("error"))
            return [_result(part.get("id"), value.get("content", value) if isinstance(value, dict) else value)]
        case "FunctionCallContent":
            return [_call(part.get("FunctionName"), part.get("Arguments"), part.get("Id"))]
        case "FunctionResultContent":
            return [_result(part.get("CallId"), part.get("Result"), part.get("FunctionName"))]
        case "tool" if isinstance(state, dict):
            return _called(part.get("tool"), state.get("input"), part.get("callID"), state, state.get("status"))
    if kind.startswith(("tool-", "dynamic-tool")) and kind != "tool-call":
        name = part.get("toolName", kind.removeprefix("tool-"))
        return _called(name, part.get("input"), part.get("toolCallId"), part, state)
    turn = read_turn({"role": role, "content": [dict(part)]})
    return None if turn is None else [parsed.message for parsed in turn]


def _called(name: Json, arguments: Json, call_id: Json, record: Record, state: Json) -> list[Message]:
    """A call, and its result where it has ended."""
    output = record.get("output", record.get("errorText", record.get("error", record.get("result"))))
    is_done = output is not None and (state is None or str(state) in _DONE)
    return [_call(name, arguments, call_id), *([_result(call_id, output, name)] if is_done else [])]


def _joined(messages: list[Message]) -> list[Message]:
    """Neighbours of one speaker as one message; results of tools stay apart."""
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else None
        if last is None or last.role != message.role or message.role == "tool":
            out.append(message)
            continue
        out[-1] = replace(
            last, content=joined([last.content, message.content]), tool_calls=last.tool_calls + message.tool_calls,
            reasoning=joined([last.reasoning, message.reasoning]),
        )  # fmt: skip
    return out


def _known(record: Record) -> list[Message] | None:
    """A message in the form of a provider or framework."""
    role = record.get("role")
    role = role.get("value") if isinstance(role, dict) else role
    if isinstance(role, str) and role not in _ROLES:
        role = role.lower()
        if role not in _ROLES:
            return None
    if role != record.get("role"):
        record = {**record, "role": role}
    turn = read_turn({_OPENAI.get(key, key): item for key, item in record.items()})
    if turn is None:
        return None
    return [replace(one.message, role=_ROLES.get(str(one.message.role), one.message.role)) for one in turn]


_OPENAI = {"toolCalls": "tool_calls", "toolCallId": "tool_call_id", "toolName": "name"}
"""Names of fields that some write in camelCase."""


def _invocations(record: Record) -> list[Message] | None:
    """A message of the AI SDK before version 5: the calls and results of tools beside the words."""
    role, calls = _ROLES.get(str(record.get("role"))), objects_in(record.get("toolInvocations"))
    if role is None or not calls:
        return None
    called = [
        _called(one.get("toolName"), one.get("args"), one.get("toolCallId"), one, one.get("state")) for one in calls
    ]
    words = result_text(record.get("content"))[0]
    return [*(message for some in called for message in some), *([Message(role, words)] if words else [])]


def _wrapped(record: Record) -> list[Message] | None:
    """A record that holds its message: under `message` (Strands, Qwen Code, Cursor), `content` (ADK) or `msg`.

    A row of a database holds it as JSON text (LangChain's history, the session of OpenAI's Agents SDK).
    """
    for key in ("message", "content", "msg", "message_data"):
        inner, is_text = record.get(key), isinstance(record.get(key), str)
        inner = opened(inner) if is_text and "role" not in record and key.startswith("message") else inner
        if isinstance(inner, dict) and isinstance(inner.get("role"), str):
            return _known(inner) or _parts(inner)
        if is_text and isinstance(inner, dict) and (turn := read_turn(inner)) is not None:
            return [one.message for one in turn]
    return None


def _share_gpt(record: Record) -> list[Message] | None:
    speaker, value = record.get("from"), record.get("value")
    if not isinstance(speaker, str) or not isinstance(value, str):
        return None
    call = opened(value) if speaker == "function_call" else None
    if isinstance(call, dict) and "name" in call:
        return [_call(call.get("name"), call.get("arguments"), call.get("id"))]
    role = _ROLES.get(speaker.lower())
    if role == "assistant" and (calls := _tagged(value, _TOOL_CALL)):
        words = _TOOL_CALL.sub("", value).strip() or None
        made = tuple(ToolCall(as_text(one.get("name")), arguments_text(one.get("arguments")), None) for one in calls)
        return [Message(role, words, made)]
    if role == "tool" and len(given := _tagged(value, _TOOL_RESPONSE)) == 1 and "content" in given[0]:
        return [_result(None, given[0]["content"], given[0].get("name"))]
    return None if role is None else [Message(role, value)]


_TOOL_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_TOOL_RESPONSE = re.compile(r"<tool_response>\s*(\{.*?\})\s*</tool_response>", re.DOTALL)
"""How models of the Hermes and Qwen families write calls of tools and what these gave back."""


def _tagged(text: str, tag: re.Pattern[str]) -> list[dict[str, Json]]:
    """The objects between tags; none where one of them is no object."""
    values = [opened(one) for one in tag.findall(text)]
    return [one for one in values if isinstance(one, dict)] if all(isinstance(one, dict) for one in values) else []


def _silly_tavern(record: Record) -> list[Message] | None:
    words, is_user = record.get("mes"), record.get("is_user")
    if not isinstance(words, str) or not isinstance(is_user, bool):
        return None
    return [Message("user" if is_user else "assistant", words)]


def _of_type(record: Record) -> list[Message] | None:
    """A message in the memory of LangChain4j or Spring AI, whose speaker is its `type`."""
    kind, words = record.get("type"), record.get("contents", record.get("content", record.get("text")))
    if kind == "TOOL_EXECUTION_RESULT":
        return [_result(record.get("id"), record.get("text"), record.get("toolName"))]
    role = _ROLES.get(kind.lower()) if isinstance(kind, str) and kind.isupper() else None
    requests = objects_in(record.get("toolExecutionRequests"))
    if role is None or (words is None and not requests):
        return None
    parts = [{**one, "type": str(one.get("type")).lower()} for one in objects_in(words)]
    calls = [_call(one.get("name"), one.get("arguments"), one.get("id")) for one in requests]
    said = [Message(role, result_text(cast("Json", parts) or words)[0])] if words else []
    return _joined([*said, *calls])


_WHO = ("sender", "speaker", "author", "from")
_SAID = ("text", "message", "utterance", "body")


def _sender(record: Record) -> list[Message] | None:
    """Who said it, and the words: Claude's export of chats (parts in `content`, or `text` in older ones), dialogues."""
    who = next((own for key in _WHO if isinstance(own := record.get(key), str)), None)
    role = _ROLES.get(str(who).lower())
    if role is None:
        return None
    if record.get("content"):
        return _known({"role": role, "content": record["content"]})
    words = next((own for key in _SAID if isinstance(own := record.get(key), str)), None)
    return [Message(role, words)] if words is not None else None


def _dify(record: Record) -> list[Message] | None:
    """A question with its answer, and the tools that the agent used in between, as Dify keeps a message."""
    if not isinstance(record.get("query"), str) or not isinstance(record.get("answer"), str):
        return None
    messages = [Message("user", as_text(record["query"]))]
    for one in objects_in(record.get("agent_thoughts")):
        thought, tool = as_text(one.get("thought")) or None, as_text(one.get("tool")) or None
        if tool is not None:
            call = _call(tool, one.get("tool_input"), one.get("id"))
            messages += [replace(call, reasoning=thought), _result(one.get("id"), one.get("observation"), tool)]
    return [*messages, *([Message("assistant", as_text(record["answer"]))] if record["answer"] else [])]


def _eleven_labs(record: Record) -> list[Message] | None:
    """A turn of ElevenLabs' agents: words, the calls of tools, or what these gave back."""
    role = _ROLES.get(str(record.get("role")))
    if role is None or not {"tool_calls", "tool_results"} <= record.keys():
        return None
    calls = [_call(one.get("tool_name"), one.get("params_as_json"), one.get("request_id"))
             for one in objects_in(record["tool_calls"])]  # fmt: skip
    given = [_result(one.get("request_id"), one.get("result_value"), one.get("tool_name"))
             for one in objects_in(record["tool_results"])]  # fmt: skip
    words = as_text(record.get("message"))
    return [*_joined([*([Message(role, words)] if words else []), *calls]), *given]


def _flowise(record: Record) -> list[Message] | None:
    """A message of Flowise's chat, with the tools that were used for it."""
    role, words = _ROLES.get(str(record.get("role"))), record.get("content")
    used = objects_in(opened(record.get("usedTools")))
    if role != "assistant" or not isinstance(words, str) or not used:
        return None
    calls = [_called(one.get("tool"), one.get("toolInput"), f"{record.get('id', 'tool')}-{number}",
                     {"output": one.get("toolOutput")}, None) for number, one in enumerate(used)]  # fmt: skip
    return [*(message for some in calls for message in some), Message(role, words)]


def path_of_tree(value: Record) -> tuple[list[Record], int]:
    """The messages from the first to the current one of a ChatGPT chat, and the number of those on other branches."""
    mapping = value.get("mapping")
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)} if isinstance(mapping, dict) else {}
    messages = {key: message for key, node in nodes.items() if isinstance(message := node.get("message"), dict)}
    path: list[str] = []
    key = as_text(value.get("current_node")) or next(reversed(nodes), "")
    while key in nodes and key not in path:
        path.append(key)
        key = as_text(nodes[key].get("parent")) or ""
    chosen: list[Record] = [messages[key] for key in reversed(path) if key in messages]
    return chosen, len(messages) - len(chosen)


def _chat_gpt(record: Record) -> list[Message] | None:
    """A message of ChatGPT's export: `author`, `recipient` and `content` of a `content_type`."""
    author, content = record.get("author"), record.get("content")
    if not isinstance(author, dict) or not isinstance(content, dict) or "content_type" not in content:
        return None
    role, recipient = _ROLES.get(str(author.get("role"))), as_text(record.get("recipient")) or "all"
    kind, words = content["content_type"], _chat_gpt_words(content)
    if role is None or kind in ("user_editable_context", "model_editable_context"):
        return None
    if kind == "thoughts" and isinstance(listed := content.get("thoughts"), list):
        thoughts = [joined([as_text(one.get("summary")), as_text(one.get("content"))]) if isinstance(one, dict)
                    else as_text(one) for one in listed]  # fmt: skip
        return [Message("assistant", None, reasoning=joined(thoughts))]
    if kind == "reasoning_recap":
        return []
    if role == "tool":
        return [Message("tool", words, (), as_text(author.get("name")))]
    if role == "assistant" and recipient != "all":
        return [_call(recipient, words, None)]
    return None if words is None else [Message(role, words)] if words else []


def _chat_gpt_words(content: Record) -> str | None:
    """The words of a message, empty where it has none; None of content in a form that is unknown."""
    parts = content.get("parts")
    if isinstance(parts, list):
        return "" if not any(parts) else result_text([_chat_gpt_part(part) for part in parts if part != ""])[0]
    return next(
        (words for key in ("text", "result", "content") if (words := as_text(content.get(key))) is not None), None
    )


def _chat_gpt_part(part: Json) -> Json:
    """A part in the form of a provider: words, or a picture by its address in ChatGPT's store."""
    if not isinstance(part, dict):
        return {"type": "text", "text": as_text(part) or ""}
    address = part.get("asset_pointer")
    return {"type": "image", "url": address} if address is not None else {"type": "text", "text": as_text(part)}


def _letta(record: Record) -> list[Message] | None:
    call = record.get("tool_call")
    match record.get("message_type"):
        case "user_message" | "system_message" | "assistant_message" as kind:
            return [Message(_ROLES[str(kind).partition("_")[0]], result_text(record.get("content"))[0])]
        case "reasoning_message":
            return [Message("assistant", None, reasoning=as_text(record.get("reasoning")))]
        case "tool_call_message" if isinstance(call, dict):
            return [_call(call.get("name"), call.get("arguments"), call.get("tool_call_id"))]
        case "tool_return_message":
            return [_result(record.get("tool_call_id"), record.get("tool_return"), record.get("name"))]
    return None


def _gemini_cli(record: Record) -> list[Message] | None:
    """A record of Gemini CLI's session file, or of its stream of JSON lines."""
    kind, content = record.get("type"), record.get("content")
    if kind in ("user", "gemini") and isinstance(content, (str, list)):
        thoughts = [f"{one.get('subject')}: {one.get('description')}" for one in objects_in(record.get("thoughts"))]
        reasoning = joined(thoughts)
        messages = [Message(_ROLES[str(kind)], result_text(content)[0] or None, reasoning=reasoning)]
        for call in objects_in(record.get("toolCalls")):
            messages += _called(call.get("name"), call.get("args"), call.get("id"), {"output": _given(call)}, None)
        return _joined(messages)
    if kind == "tool_use" and "tool_name" in record:
        return [_call(record.get("tool_name"), record.get("parameters"), record.get("tool_id"))]
    if kind == "tool_result" and "tool_id" in record:
        return [_result(record.get("tool_id"), record.get("output", record.get("error")))]
    return None


def _given(call: Record) -> Json:
    """What a tool of Gemini CLI gave back, out of its `functionResponse`."""
    for one in objects_in(call.get("result")):
        inner = one.get("functionResponse")
        response = inner.get("response") if isinstance(inner, dict) else None
        if isinstance(response, dict):
            return response.get("output", response.get("error", response))
    return call.get("result", call.get("resultDisplay"))


def _copilot(record: Record) -> list[Message] | None:
    """An event of Copilot CLI's session."""
    data = record.get("data")
    if not isinstance(data, dict):
        return None
    match record.get("type"):
        case "user.message" | "system.message" as kind:
            return [Message(_ROLES[str(kind).partition(".")[0]], as_text(data.get("content")))]
        case "assistant.message":
            calls = [_call(one.get("name"), one.get("arguments"), one.get("toolCallId"))
                     for one in objects_in(data.get("toolRequests"))]  # fmt: skip
            return _joined([Message("assistant", as_text(data.get("content")) or None), *calls])
        case "tool.execution_complete":
            result = data.get("result", data.get("error"))
            words = result.get("content", result.get("message", result)) if isinstance(result, dict) else result
            return [_result(data.get("toolCallId"), words)]
    return None


def _cursor(record: Record) -> list[Message] | None:
    """A call of a tool in the stream of Cursor's agent, when it begins and when it ends."""
    holder = record.get("tool_call")
    if record.get("type") != "tool_call" or not isinstance(holder, dict) or len(holder) != 1:
        return None
    ((name, call),) = holder.items()
    if not isinstance(call, dict):
        return None
    if record.get("subtype") == "started":
        return [_call(name.removesuffix("ToolCall"), call.get("args"), record.get("call_id"))]
    result = call.get("result")
    ended = result.get("success", result.get("error", result)) if isinstance(result, dict) else result
    content = ended.get("content", ended) if isinstance(ended, dict) else ended
    return [_result(record.get("call_id"), content, name.removesuffix("ToolCall"))]


_PYDANTIC = {"system-prompt": "system", "user-prompt": "user", "text": "assistant", "instructions": "system"}


def _pydantic(record: Record) -> list[Message] | None:
    """A request or response as Pydantic AI writes all messages of a run."""
    if record.get("kind") not in ("request", "response"):
        return None
    messages: list[Message] = []
    parts = record.get("parts")
    for part in parts if isinstance(parts, list) else []:
        if not isinstance(part, dict):
            messages.append(Message("user" if record["kind"] == "request" else "assistant", as_text(part)))
            continue
        match part.get("part_kind"):
            case str(kind) if kind in _PYDANTIC:
                messages.append(Message(_PYDANTIC[kind], result_text(part.get("content"))[0]))
            case "thinking":
                messages.append(Message("assistant", None, reasoning=as_text(part.get("content"))))
            case "tool-call" | "builtin-tool-call":
                messages.append(_call(part.get("tool_name"), part.get("args"), part.get("tool_call_id")))
            case "tool-return" | "builtin-tool-return" | "retry-prompt":
                messages.append(_result(part.get("tool_call_id"), part.get("content"), part.get("tool_name")))
    return _joined(messages)


def _smolagents(record: Record) -> list[Message] | None:
    """A step of smolagents' memory: the task, or what the model wrote, called and got back."""
    if isinstance(record.get("task"), str) and "step_number" not in record:
        return [Message("user", as_text(record["task"]))]
    if "step_number" not in record or not {"model_output", "observations"} <= record.keys():
        return None
    calls = [call for one in objects_in(record.get("tool_calls")) if isinstance(call := one.get("function"), dict)]
    ids = [one.get("id") for one in objects_in(record.get("tool_calls"))]
    call_messages = [_call(one.get("name"), one.get("arguments"), own) for one, own in zip(calls, ids, strict=False)]
    error = record.get("error")
    fault = as_text(error.get("message") if isinstance(error, dict) else error)
    observation = joined([as_text(record.get("observations")) or None, fault])
    answer = Message("assistant", as_text(record.get("model_output")))
    return [
        *_joined([answer, *call_messages]),
        *([_result(ids[0], observation or record.get("action_output"))] if ids else []),
    ]


def _browser_use(record: Record) -> list[Message] | None:
    """A step of browser-use's history: what the model thought, the actions that it chose, what each gave."""
    output, results = record.get("model_output"), objects_in(record.get("result"))
    if not isinstance(output, dict) or not isinstance(output.get("action"), list) or "state" not in record:
        return None
    thought = joined([f"{key}: {item}" for key, item in output.items() if isinstance(item, str) and item])
    actions = [(name, item) for one in objects_in(output["action"]) for name, item in one.items() if item is not None]
    calls = tuple(ToolCall(name, arguments_text(item), None) for name, item in actions)
    texts = [as_text(one.get("extracted_content", one.get("error")) or one.get("error")) for one in results]
    return [
        Message("assistant", None, calls, reasoning=thought),
        *(Message("tool", one) for one in texts[: len(calls)]),
    ]


_FORMS: tuple[Callable[[Record], list[Message] | None], ...] = (
    _eleven_labs, _invocations, _dify, _flowise, _chat_gpt, _share_gpt, _letta, _copilot, _cursor, _pydantic,
    _gemini_cli, _smolagents, _browser_use, _silly_tavern, _of_type, _wrapped, _parts, _known, _sender,
)  # fmt: skip
"""Asked in this order, the more particular first."""
