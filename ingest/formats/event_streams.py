"""Events that tell a conversation piece by piece, as its messages: AG-UI, Cline's page, LangChain's stream, Bedrock.

A stream of server-sent events (`data: {...}`) is read as the JSON lines that it carries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields, object_in, objects_in
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.streamed import function_call
from tracejury.ingest.formats.turns import Record
from tracejury.ingest.trace import Json

Told = tuple[list[Record], tuple[Record, ...], list[str]]
"""Messages in order, an object that names their ids, the fields of a wrong type."""
_SENT = (b"data:", b"event:", b"id:", b"retry:", b": ")
_DATA = re.compile(rb"^data: ?(\{.*|\[\{.*)$", re.MULTILINE)


def as_lines(data: bytes) -> bytes:
    """The JSON lines in a stream of server-sent events; any other bytes as they are."""
    if not data[:4096].lstrip().startswith(_SENT):
        return data
    return b"\n".join(_DATA.findall(data.replace(b"\r\n", b"\n"))) or data


def messages_of_events(events: Sequence[Record]) -> Told | None:
    """The messages that events tell; None where these are no events known here."""
    form = next((form for knows, form in _FORMS if any(map(knows, events[:20]))), None)
    return None if form is None else form(events)


# AG-UI ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Run:
    """The messages of AG-UI's events while they are read in order, by id."""

    messages: dict[str, dict[str, Json]] = field(default_factory=dict)
    calls: dict[str, dict[str, Json]] = field(default_factory=dict)
    threads: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)


def _is_ag_ui(event: Record) -> bool:
    kind = event.get("type")
    return isinstance(kind, str) and kind.isupper() and kind.startswith(("RUN_", "TEXT_MESSAGE_", "TOOL_CALL_"))


def _ag_ui(events: Sequence[Record]) -> Told:
    run = _Run()
    warnings: list[str] = []
    for number, event in enumerate(events):
        place = f"event {number}"
        _ag_ui_event(run, Fields(dict(event), place, warnings), str(event.get("type")), event, place)
    names: Record = {"id": run.runs[0]} if len(run.runs) == 1 else {"threadId": next(iter(run.threads), None)}
    return list(run.messages.values()), (names,), warnings


def _ag_ui_event(run: _Run, fields: Fields, kind: str, event: Record, place: str) -> None:
    moment = event.get("timestamp")
    match kind:
        case "RUN_STARTED":
            run.threads += [text] if (text := fields.text("threadid")) and text not in run.threads else []
            run.runs += [text] if (text := fields.text("runid")) else []
            for message in [one.values for one in fields.inner("input").objects("messages")]:
                run.messages.setdefault(as_text(message.get("id")) or f"{place} {len(run.messages)}", message)
        case "MESSAGES_SNAPSHOT":
            listed = map(dict, objects_in(fields.take("messages")))
            snapshot = {as_text(one.get("id")) or f"{place} {number}": one for number, one in enumerate(listed)}
            run.messages = {
                **snapshot,
                **{own: one for own, one in run.messages.items() if not _is_within(own, one, snapshot)},
            }
        case "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_CHUNK":
            _add(run, fields.text("messageid"), "content", fields.text("delta"), fields.text("role"), moment)
        case _ if kind.startswith(("REASONING_", "THINKING_")):
            if (words := fields.text("delta")) is not None:
                own = fields.text("messageid") or f"thoughts before {len(run.messages)}"
                _add(run, own, "reasoning_content", words, "assistant", moment)
        case "TOOL_CALL_START" | "TOOL_CALL_ARGS" | "TOOL_CALL_CHUNK":
            _add_call(run, fields, moment)
        case "TOOL_CALL_RESULT":
            own = fields.text("messageid") or place
            call = fields.text("toolcallid")
            run.messages[own] = {
                "role": "tool", "tool_call_id": call, "content": fields.take("content", "result"), "timestamp": moment
            }  # fmt: skip
        case "RUN_ERROR" | "CUSTOM" | "RAW":
            run.messages[place] = dict(event)


def _is_within(own: str, message: Record, snapshot: Mapping[str, Record]) -> bool:
    """Whether a snapshot of all messages tells a message that events told before."""
    calls = {as_text(call.get("id")) for call in objects_in(message.get("tool_calls"))}
    call_ids = {as_text(call.get("id")) for one in snapshot.values() for call in _calls_of(one)}
    words = message.get("content")
    is_said = any(one.get("content") == words and one.get("role") == message.get("role") for one in snapshot.values())
    return own in snapshot or (calls <= call_ids if calls else words is not None and is_said)


def _calls_of(message: Record) -> list[dict[str, Json]]:
    return objects_in(message.get("tool_calls", message.get("toolCalls")))


def _add(run: _Run, own: str | None, key: str, words: str | None, role: str | None, moment: Json) -> None:
    """Add words to the message of an id, which begins with them where it is new."""
    name = own or next(reversed(run.messages), "message")
    message = run.messages.setdefault(name, {"role": role or "assistant", "timestamp": moment})
    if words is not None:
        message[key] = f"{message.get(key) or ''}{words}"


def _add_call(run: _Run, fields: Fields, moment: Json) -> None:
    """Begin a call at the message that makes it, or go on with its arguments."""
    own, words = fields.text("toolcallid") or next(reversed(run.calls), "call"), fields.text("delta")
    if own not in run.calls:
        function: dict[str, Json] = {"name": fields.text("toolcallname", "toolname"), "arguments": ""}
        run.calls[own] = function
        parent = fields.text("parentmessageid")
        owner = run.messages.setdefault(
            parent if parent in run.messages else f"calls {own}", {"role": "assistant", "timestamp": moment}
        )
        calls = owner.setdefault("tool_calls", [])
        if isinstance(calls, list):
            calls.append({"id": own, "type": "function", "function": function})
    if words is not None:
        run.calls[own]["arguments"] = f"{run.calls[own]['arguments']}{words}"


# Cline, Roo Code ------------------------------------------------------------------------------------------------

_CALLS = {"command": "execute_command", "use_mcp_server": "use_mcp_tool", "browser_action_launch": "browser_action",
          "browser_action": "browser_action"}  # fmt: skip
_RESULTS = frozenset({"command_output", "mcp_server_response", "browser_action_result"})
_ANSWERS = frozenset({"text", "completion_result", "followup", "plan_mode_respond"})


def _is_cline(event: Record) -> bool:
    kind = event.get("type")
    return kind in ("say", "ask") and "ts" in event and isinstance(event.get(str(kind)), str)


def _cline(events: Sequence[Record]) -> Told:
    """The messages of `ui_messages.json`: what the agent said and called, what the user and the tools answered."""
    messages: list[Record] = []
    usage: Json = None
    for event in events:
        if event.get("partial") is True:
            continue
        kind = str(event.get(str(event.get("type"))))
        words = as_text(event.get("text")) or ""
        if kind == "api_req_started":
            usage = _cline_usage(opened(words))
            continue
        record = _cline_message(kind, words, event, is_first=not messages)
        if record is None:
            continue
        if record.get("role") == "assistant" and usage is not None:
            record, usage = {**record, "usage": usage}, None
        messages.append(record)
    return _joined_outputs(messages), (), []


def _cline_message(kind: str, words: str, event: Record, *, is_first: bool) -> Record | None:
    moment = event.get("ts")
    if kind in ("task", "user_feedback") or (is_first and kind == "text"):
        return {"role": "user", "content": words, "ts": moment}
    if kind in _RESULTS:
        return {"role": "tool", "content": words, "ts": moment}
    if kind == "reasoning":
        return {"role": "assistant", "content": None, "reasoning_content": words, "ts": moment}
    if kind == "tool" or kind in _CALLS:
        return {"role": "assistant", "content": None, "tool_calls": [_cline_call(kind, words)], "ts": moment}
    if kind in _ANSWERS:
        return {"role": "assistant", "content": _cline_words(words), "ts": moment} if words else None
    return {"type": f"cline {kind}", "text": words, "ts": moment} if words and kind != "checkpoint_created" else None


def _cline_call(kind: str, words: str) -> Json:
    value = opened(words)
    arguments: dict[str, Json] = dict(value) if isinstance(value, dict) else {"command": words}
    name = as_text(arguments.pop("tool", None)) if kind == "tool" else _CALLS[kind]
    function: dict[str, Json] = {"name": name, "arguments": arguments}
    return {"type": "function", "function": function}


def _cline_words(words: str) -> str:
    """The question or the plan in the JSON of some answers, else the words."""
    value = opened(words)
    inner = value.get("question", value.get("response")) if isinstance(value, dict) else None
    return inner if isinstance(inner, str) else words


def _cline_usage(request: Json) -> Json:
    counts = request if isinstance(request, dict) else {}
    usage = {"input_tokens": counts.get("tokensIn"), "output_tokens": counts.get("tokensOut")}
    return {name: count for name, count in usage.items() if count is not None} or None


def usage_by_call(events: Sequence[Record]) -> list[Json]:
    """The tokens of each request that Cline's page shows, in order; nothing of other events."""
    started = [one for one in events if _is_cline(one) and one.get("say") == "api_req_started"]
    return [_cline_usage(opened(as_text(one.get("text")) or "")) for one in started]


def _joined_outputs(messages: list[Record]) -> list[Record]:
    """The messages, the pieces of one command's output joined."""
    joined: list[Record] = []
    for message in messages:
        if message.get("role") == "tool" and joined and joined[-1].get("role") == "tool":
            joined[-1] = {**joined[-1], "content": f"{joined[-1]['content']}\n{message['content']}"}
        else:
            joined.append(message)
    return joined


# LangChain's stream of events -----------------------------------------------------------------------------------


def _is_lang_chain(event: Record) -> bool:
    kind = event.get("event")
    return (
        isinstance(kind, str) and kind.startswith("on_c") and "run_id" in event and isinstance(event.get("data"), dict)
    )


def _lang_chain(events: Sequence[Record]) -> Told:
    """The messages of `astream_events`: what models were asked for the first time, answered, and got from tools."""
    messages: list[Record] = []
    warnings: list[str] = []
    for number, event in enumerate(events):
        data = Fields(dict(event), f"event {number}", warnings).inner("data")
        match event.get("event"):
            case "on_chat_model_start" | "on_llm_start":
                messages += [one for one in _asked(data) if not _is_told(one, messages)]
            case "on_chat_model_end" | "on_llm_end":
                messages += _answered(data)
            case "on_tool_end" | "on_tool_error":
                output = data.take("output", "error")
                message: Record = {"role": "tool", "name": event.get("name"), "content": output}
                messages.append(output if isinstance(output, dict) and "content" in output else message)
    thread = next((text for one in events if (text := Fields(object_in(one.get("metadata"))).text("threadid"))), None)
    return messages, ({"id": thread or as_text(events[0].get("run_id"))},), warnings


def _asked(data: Fields) -> list[Record]:
    """The messages of a request, which stand in a list of lists, or its prompts."""
    asked = data.inner("input")
    listed = asked.listed("messages")
    inner = [one for some in listed for one in (some if isinstance(some, list) else [some])]
    prompts: list[Record] = [{"role": "user", "content": one} for one in asked.listed("prompts")]
    return [one if isinstance(one, dict) else {"role": "user", "content": as_text(one)} for one in inner] or prompts


def _answered(data: Fields) -> list[Record]:
    """The answer of a model: a message, the generations of the first version of these events, or a text."""
    output = data.take("output")
    holder = object_in(output)
    generations = holder.get("generations")
    listed = [one for some in (generations if isinstance(generations, list) else []) for one in objects_in(some)]
    inner = [object_in(one.get("message")) or {"role": "assistant", "content": one.get("text")} for one in listed[:1]]
    return [*inner] or [holder or {"role": "assistant", "content": as_text(output)}]


def _is_told(message: Record, messages: Sequence[Record]) -> bool:
    """Whether a message that a request holds was told before."""
    return any(_told_words(message) == _told_words(one) for one in messages)


def _told_words(message: Record) -> tuple[str | None, ...]:
    inner = object_in(message.get("kwargs")) or message
    return tuple(as_text(inner.get(key) or None) for key in ("content", "tool_calls", "tool_call_id"))


# LangGraph's stream of updates ----------------------------------------------------------------------------------


def _is_update(event: Record) -> bool:
    """What each node of a graph adds: `{NODE: {"messages": [...]}}`."""
    updates = [object_in(one) for one in event.values() if one is not None]
    return bool(updates) and all(_lang_messages(one.get("messages")) for one in updates)


def _lang_messages(value: Json) -> list[dict[str, Json]]:
    listed = objects_in([value] if isinstance(value, dict) else value)
    return [one for one in listed if one.get("type") in _LANG_CHAIN or "role" in one]


_LANG_CHAIN = ("human", "ai", "tool", "system", "constructor")


def _updates(events: Sequence[Record]) -> Told:
    """The messages of all updates; none where one holds both sides: then each line is a chat of its own."""
    told: list[list[Record]] = []
    for event in events:
        updates = [object_in(one) for one in event.values()]
        told.append([message for one in updates for message in _lang_messages(one.get("messages"))])
    speakers = [{one.get("type") or one.get("role") for one in some} for some in told]
    are_updates = not any(some & {"human", "user"} and some & {"ai", "assistant"} for some in speakers)
    return [one for some in told for one in some] if are_updates else [], (), []


# Bedrock's agents -----------------------------------------------------------------------------------------------

_INVOCATIONS = {
    "actionGroupInvocationInput": (("function", "apiPath", "actionGroupName"), ("parameters", "requestBody")),
    "agentCollaboratorInvocationInput": (("agentCollaboratorName",), ("input",)),
    "knowledgeBaseLookupInput": (("knowledgeBaseId",), ("text",)),
    "codeInterpreterInvocationInput": ((), ("code", "files")),
}  # fmt: skip
"""How a trace of an agent of Bedrock names what it calls, and what it gives to it."""


def _steps_of(event: Record) -> dict[str, Json]:
    """The step in an event of a trace, which the stream of `InvokeAgent` wraps once more."""
    outer = object_in(event.get("trace"))
    inner = object_in(outer.get("trace")) or outer
    return next((object_in(step) for key, step in inner.items() if key.endswith("Trace")), {})


def _is_bedrock(event: Record) -> bool:
    known = {"modelInvocationInput", "modelInvocationOutput", "invocationInput", "observation", "rationale"}
    return not known.isdisjoint(_steps_of(event))


def _bedrock(events: Sequence[Record]) -> Told:
    """The messages of an agent of Bedrock: what it was asked first, each call that it made, what came of it."""
    messages: list[Record] = []
    about: dict[str, Json] = {}
    thought: str | None = None
    names: list[str | None] = []
    warnings: list[str] = []
    for number, event in enumerate(events):
        names.append(Fields(dict(event)).text("sessionid") or Fields(object_in(event.get("trace"))).text("sessionid"))
        step = Fields(_steps_of(event), f"event {number}", warnings)
        if not messages and (asked := step.inner("modelinvocationinput").text("text")) is not None:
            messages += _bedrock_prompt(asked)
        if step.peek("modelinvocationoutput") is not None:
            about = {**about, **_bedrock_usage(step.inner("modelinvocationoutput"))}
        thought = step.inner("rationale").text("text") or thought
        call = _bedrock_call(step.inner("invocationinput"), number)
        final = step.inner("observation")
        if call is not None:
            messages.append({**about, **call, "reasoning_content": thought})
            about, thought = {}, None
        elif final.peek("finalresponse") is not None:
            words = final.inner("finalresponse").text("text")
            messages.append({**about, "role": "assistant", "content": words, "reasoning_content": thought})
            about, thought = {}, None
        elif (output := _bedrock_output(final)) is not None:
            messages.append({"role": "tool", "content": output})
        elif step.peek("failurereason") is not None:
            messages.append({"type": "failure", **step.rest()})
    return messages, ({"id": next(filter(None, names), None)},), warnings


def _bedrock_prompt(text: str) -> list[Record]:
    """The system prompt and the messages in the JSON of a prompt; else the prompt as one message."""
    request = Fields(opened(text)) if isinstance(opened(text), dict) else None
    if request is None:
        return [{"role": "user", "content": text}]
    system = request.take("system")
    listed: list[Record] = [one.values for one in request.objects("messages")]
    whole: list[Record] = listed or [{"role": "user", "content": text}]
    return [*([{"role": "system", "content": system}] if system else []), *whole]


def _bedrock_usage(output: Fields) -> dict[str, Json]:
    raw = output.inner("rawresponse").take("content")
    return {
        "usage": output.inner("metadata").take("usage"),
        "rawResponse": raw,
        "model": output.text("foundationmodel"),
    }


def _bedrock_call(invocation: Fields, number: int) -> Record | None:
    """The call of a tool, a knowledge base, a program or another agent."""
    for key, (named, given) in _INVOCATIONS.items():
        if invocation.peek(key.lower()) is None:
            continue
        inner = invocation.inner(key.lower())
        name = inner.text(*(one.lower() for one in named)) or key.removesuffix("InvocationInput")
        arguments = _bedrock_arguments(inner.take(*(one.lower() for one in given)))
        call = function_call(f"call-{number}", name, arguments)
        return {"role": "assistant", "content": None, "tool_calls": [call], "rest": inner.rest() or None}
    return None


def _bedrock_arguments(value: Json) -> Json:
    """Parameters by name; the text to another agent, the code or the question as it stands."""
    named = objects_in(value)
    if named and all("name" in one and "value" in one for one in named):
        return {str(one["name"]): one["value"] for one in named}
    return {"input": value} if isinstance(value, str) else value


def _bedrock_output(observation: Fields) -> Json:
    for key in ("actiongroupinvocationoutput", "agentcollaboratorinvocationoutput", "codeinterpreterinvocationoutput"):
        if observation.peek(key) is not None:
            inner = observation.inner(key)
            value = inner.take("text", "executionoutput", "output", "value")
            return value.get("text", value) if isinstance(value, dict) else value
    if observation.peek("knowledgebaselookupoutput") is not None:
        return observation.inner("knowledgebaselookupoutput").take("retrievedreferences")
    return observation.inner("repromptresponse").text("text")


_FORMS: tuple[tuple[Callable[[Record], bool], Callable[[Sequence[Record]], Told]], ...] = (
    (_is_ag_ui, _ag_ui),
    (_is_cline, _cline),
    (_is_lang_chain, _lang_chain),
    (_is_bedrock, _bedrock),
    (_is_update, _updates),
)
