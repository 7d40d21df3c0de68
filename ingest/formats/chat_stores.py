"""Chats and runs that their tools keep in a form of their own, as messages in order.

Chat interfaces (Open WebUI, LM Studio, LibreChat, Google AI Studio), editors (VS Code's Copilot, Continue, Kiro and
Amazon Q, Zed), agents (Trae), stores of LlamaIndex, evaluation sets of ADK, transcripts of bots (Copilot Studio, Bot
Framework, Rasa).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tracejury.ingest.formats.exchanges import instructions
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields, object_in, objects_in, plain_name
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.streamed import function_call
from tracejury.ingest.trace import Json

Record = Mapping[str, Json]


class StoredChat(NamedTuple):
    """The messages of a chat in order, an object that names its ids, how many stand on branches that are not shown."""

    records: list[Record]
    about: Record
    left_out: int = 0


def stored_chats(value: Record, warnings: list[str]) -> list[StoredChat]:
    """The chats that a document holds in a tool's own form; none of any other document.

    Fields of a wrong type are named in `warnings`.
    """
    for knows, chats in _FORMS:
        if knows(value):
            return list(chats(Fields(dict(value), warnings=warnings)))
    return []


def _message(role: str, content: Json, **more: Json) -> Record:
    return {"role": role, "content": content, **{key: item for key, item in more.items() if item is not None}}


def _calling(name: Json, arguments: Json, call_id: Json, **more: Json) -> Record:
    """A message that calls one tool."""
    return _message("assistant", None, tool_calls=[function_call(call_id, name, arguments)], **more)


def _result(call_id: Json, content: Json, **more: Json) -> Record:
    return _message("tool", content, tool_call_id=call_id, **more)


def _holds(key: str, *names: str) -> Callable[[Record], bool]:
    """Whether the first object of a list under a key has all these fields."""

    def knows(value: Record) -> bool:
        first = next(iter(objects_in(value.get(key))), {})
        return set(names) <= first.keys()

    return knows


# chat interfaces ------------------------------------------------------------------------------------------------


def messages_of_pairs(value: Sequence[Json]) -> list[Record]:
    """The messages in pairs of what a user and a model said (Gradio), or of a speaker and words; else none.

    A side without words is null or a file. Pairs that begin with few words and no question are a table, and no chat.
    """
    pairs = [(one[0], one[1]) for one in value if isinstance(one, list) and len(one) == 2]
    if not pairs or len(pairs) < len(value):
        return []
    if all(isinstance(role, str) and role in _SPEAKERS for role, _ in pairs):
        return [_message(str(role), words) for role, words in pairs]
    are_sides = all(side is None or isinstance(side, str | list | dict) for pair in pairs for side in pair)
    if not are_sides or not any(_is_asked(asked) and isinstance(answer, str) for asked, answer in pairs):
        return []
    sides = (("user", asked, "assistant", answer) for asked, answer in pairs)
    told = [one for who, asked, other, answer in sides for one in (_side(who, asked), _side(other, answer))]
    return [one for one in told if one is not None]


_SPEAKERS = frozenset({"user", "human", "assistant", "ai", "system", "tool", "bot", "model"})
_FEWEST_WORDS = 4


def _is_asked(side: Json) -> bool:
    return isinstance(side, str) and (len(side.split()) >= _FEWEST_WORDS or side.rstrip().endswith("?"))


def _side(role: str, side: Json) -> Record | None:
    """One side of a pair: words, or a file as `[path, caption]` or an object."""
    if side is None:
        return None
    if isinstance(side, list):
        path, caption = [*side, None, None][:2]
        parts: list[Json] = [{"type": "file", "url": path}]
        return _message(role, [*parts, caption] if caption else parts)
    return _message(role, [{"type": "file", **side}] if isinstance(side, dict) else side)


def _is_open_webui(value: Record) -> bool:
    chat = value.get("chat")
    history = chat.get("history") if isinstance(chat, dict) else None
    return isinstance(history, dict) and isinstance(history.get("messages"), dict)


def _open_webui(fields: Fields) -> Iterator[StoredChat]:
    """The branch of a chat that is shown; answers that were generated anew are on others."""
    chat = fields.inner("chat")
    history = chat.inner("history")
    messages = {own: one.values for own, one in history.named("messages")}
    current = history.text("currentid")
    branch = _branch(messages, current, "parentId")
    if branch:
        own = fields.text("id") or chat.text("id")
        yield StoredChat(branch, {"id": own}, len(messages) - len(branch))


def _branch(messages: Mapping[str, Record], last: str | None, parent: str) -> list[Record]:
    """The messages from the first to the last one along their parents; all in order where these lead nowhere."""
    path: list[str] = []
    here = last
    while here is not None and here in messages and here not in path:
        path.append(here)
        here = as_text(messages[here].get(parent))
    return [messages[own] for own in reversed(path)] or list(messages.values())


def _libre_chat(fields: Fields) -> Iterator[StoredChat]:
    rows = [one.values for one in fields.objects("messages")]
    by_id: dict[str, Record] = {as_text(one.get("messageId")) or f"message {n}": one for n, one in enumerate(rows)}
    branch = _branch(by_id, next(reversed(by_id), None), "parentMessageId")
    records = [record for one in branch for record in _libre_message(one)]
    yield StoredChat(records, {"id": fields.text("conversationid")}, len(by_id) - len(branch))


def _libre_message(row: Record) -> Iterator[Record]:
    role = "user" if row.get("isCreatedByUser") is True else "assistant"
    about: dict[str, Json] = {"createdAt": row.get("createdAt"), "model": row.get("model")}
    words: list[Json] = []
    for part in objects_in(row.get("content")):
        call = part.get("tool_call")
        if isinstance(call, dict):
            yield _calling(call.get("name"), call.get("args"), call.get("id"), **about)
            yield _result(call.get("id"), call.get("output"))
        else:
            words.append(part)
    text = row.get("text") or words
    if text:
        yield _message(role, text, **about)


def _lm_studio(fields: Fields) -> Iterator[StoredChat]:
    prompt = fields.text("systemprompt")
    records: list[Record] = [_message("system", prompt)] if prompt else []
    left_out = 0
    for turn in fields.objects("messages"):
        versions = list(turn.objects("versions"))
        left_out += max(len(versions) - 1, 0)
        chosen = turn.count("currentlyselected") or 0
        if versions:
            records += _lm_studio_version(versions[chosen if chosen < len(versions) else -1])
    yield StoredChat(records, {}, left_out)


def _lm_studio_version(version: Fields) -> Iterator[Record]:
    """The messages of the version of a message that is shown."""
    role = version.text("role") or "user"
    if version.peek("steps") is None:
        yield _message(role, version.take("content"))
        return
    for step in version.objects("steps"):
        generated = step.inner("geninfo")
        stats = generated.inner("stats")
        usage: Json = {
            "prompt_tokens": stats.count("prompttokenscount"), "completion_tokens": stats.count("predictedtokenscount")
        }  # fmt: skip
        model = generated.text("identifier", "indexedmodelidentifier")
        is_thought = step.inner("style").text("type") == "thinking"
        for part in step.objects("content"):
            yield _lm_studio_part(part, role, is_thought=is_thought, model=model, usage=usage if model else None)


def _lm_studio_part(part: Fields, role: str, *, is_thought: bool, model: str | None, usage: Json) -> Record:
    match part.peek("type"):
        case "toolCallRequest":
            call_id = part.text("toolcallrequestid", "callid")
            return _calling(part.text("name"), part.take("parameters"), call_id, model=model, usage=usage)
        case "toolCallResult":
            return _result(part.text("toolcallrequestid", "callid"), part.take("content"))
        case "text" if is_thought:
            return _message("assistant", None, reasoning_content=part.text("text"))
    return _message(role, [dict(part.values)], model=model, usage=usage)


def _ai_studio(fields: Fields) -> Iterator[StoredChat]:
    model = fields.inner("runsettings").text("model")
    records: list[Record] = list(instructions(fields.raw))
    for chunk in fields.inner("chunkedprompt").objects("chunks"):
        role, count = chunk.text("role") or "user", chunk.count("tokencount")
        words = chunk.text("text")
        if chunk.flag("isthought", "thought"):
            records.append(_message("assistant", None, reasoning_content=words))
            continue
        usage: Json = {"completion_tokens": count} if role == "model" and count else None
        content: Json = words if words is not None else [chunk.rest()]
        records.append(_message(role, content, timestamp=chunk.take("createtime"), model=model, usage=usage))
    yield StoredChat(records, {})


# editors --------------------------------------------------------------------------------------------------------


def _vs_code(fields: Fields) -> Iterator[StoredChat]:
    """Requests of VS Code's chat, from its export or its session file."""
    records: list[Record] = []
    session = fields.text("sessionid")
    for request in fields.objects("requests"):
        metadata = request.inner("result").inner("metadata")
        session = session or metadata.text("sessionid")
        message = request.inner("message")
        words, moment = message.text("text"), request.take("timestamp")
        model = metadata.text("resolvedmodel") or request.text("modelid")
        usage: Json = {
            "prompt_tokens": metadata.count("prompttokens"), "completion_tokens": metadata.count("outputtokens")
        }  # fmt: skip
        answers = [*_vs_code_rounds(metadata)]
        shown = list(_vs_code_shown(request))
        if not any(one.get("content") for one in answers if one.get("role") == "assistant"):
            has_calls = any(one.get("tool_calls") for one in answers)
            answers += [one for one in shown if not (has_calls and one.get("tool_calls"))]
        records.append(_message("user", words, timestamp=moment))
        records += [{**one, "model": model} if one.get("role") == "assistant" else one for one in answers]
        if answers and answers[-1].get("role") == "assistant":
            records[-1] = {**records[-1], "usage": usage}
    yield StoredChat(records, {"id": session})


def _vs_code_rounds(metadata: Fields) -> Iterator[Record]:
    """What the model answered in each round, and what the tools that it called gave back."""
    results = {own: one.take("content", "value") for own, one in metadata.named("toolcallresults")}
    for turn in metadata.objects("toolcallrounds"):
        thinking = turn.take("thinking")
        thought = as_text(thinking.get("text", thinking) if isinstance(thinking, dict) else thinking)
        calls = [one.raw for one in turn.objects("toolcalls")]
        yield _message("assistant", turn.text("response"), tool_calls=[*calls] or None, reasoning_content=thought)
        for call in calls:
            own = as_text(call.get("id")) or ""
            if own in results:
                yield _result(own, _vs_code_words(results[own]))


def _vs_code_words(content: Json) -> Json:
    """The texts of a result, whose parts have a `value`; anything else as it stands."""
    parts = objects_in(content)
    texts = [text for one in parts if isinstance(text := one.get("value"), str)]
    return "\n".join(texts) if texts and len(texts) == len(parts) else content


def _vs_code_shown(request: Fields) -> Iterator[Record]:
    """What the page shows of an answer, where the file does not hold its rounds."""
    words: list[str] = []
    for part in request.objects("response"):
        kind, value = part.peek("kind"), part.peek("value")
        content = part.inner("content").text("value") if isinstance(part.peek("content"), dict) else None
        if kind == "thinking":
            yield _message("assistant", None, reasoning_content=part.text("value"))
        elif kind == "toolInvocationSerialized":
            yield _calling(part.text("toolid"), part.take("invocationmessage"), part.text("toolcallid"))
        elif isinstance(value, str) or content is not None:
            words.append(value if isinstance(value, str) else content or "")
    if words:
        yield _message("assistant", "".join(words))


def journal(lines: Sequence[Record]) -> Record | None:
    """The document that the lines of a VS Code session write step by step; None of any other lines.

    Kind 0 gives the document, 1 sets what stands at a path, 2 adds items to the list there (behind the first `i`, where
    that is told), 3 deletes it.
    """
    first = lines[0] if lines else {}
    start = first.get("v")
    if first.get("kind") != 0 or not isinstance(start, dict) or "requests" not in start:
        return None
    document: dict[str, Json] = {"": start}
    for line in lines[1:]:
        path = line.get("k")
        if isinstance(path, list) and path and all(isinstance(one, str | int) for one in path):
            _change(document, ["", *path], line)
    whole = document[""]
    return whole if isinstance(whole, dict) else None


def _change(document: Json, path: Sequence[Json], line: Record) -> None:
    for step in path[:-1]:
        document = _at(document, step)
    key, value, first = path[-1], line.get("v"), line.get("i")
    before = _at(document, key)
    if line.get("kind") == 2 and isinstance(before, list | None):
        kept = (before or [])[: first if isinstance(first, int) else None]
        value = [*kept, *(value if isinstance(value, list) else [value])]
    if isinstance(document, dict) and isinstance(key, str):
        document[key] = value
        if line.get("kind") == 3:
            del document[key]
    elif isinstance(document, list) and isinstance(key, int) and key < len(document):
        document[key] = value


def _at(value: Json, step: Json) -> Json:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
        return value[step]
    return None


def _continue(fields: Fields) -> Iterator[StoredChat]:
    """A session of Continue: the results of tools stand at the call where no message tells them."""
    records: list[Record] = []
    items = list(fields.objects("history"))
    told = {as_text(object_in(one.peek("message")).get("toolCallId")) for one in items}
    for item in items:
        message = item.nested("message")
        states = list(item.objects("toolcallstates"))
        calls = message.get("toolCalls") or [one.take("toolcall") for one in states]
        if message.get("role") == "thinking":
            records.append(_message("assistant", None, reasoning_content=message.get("content")))
            continue
        records.append({**message, "toolCalls": calls} if calls else message)
        for state, call in zip(states, objects_in(calls), strict=False):
            own = state.text("toolcallid") or as_text(call.get("id"))
            output = state.take("output")
            if own not in told and output is not None:
                records.append(_result(own, _texts(output, "content")))
    yield StoredChat(records, {"id": fields.text("sessionid")})


def _texts(value: Json, key: str) -> Json:
    """The texts under a key of each object of a list, a line each; anything else as it stands."""
    texts = [text for one in objects_in(value) if isinstance(text := one.get(key), str)]
    return "\n".join(texts) if texts and isinstance(value, list) and len(texts) == len(value) else value


def _is_kiro(value: Record) -> bool:
    history = value.get("history")
    first = history[0] if isinstance(history, list) and history else None
    user = first[0] if isinstance(first, list) and first else object_in(first).get("user")
    content = object_in(object_in(user).get("content"))
    return not content.keys().isdisjoint({"Prompt", "ToolUseResults", "CancelledToolUses"})


def _kiro(fields: Fields) -> Iterator[StoredChat]:
    """A saved chat of Amazon Q or Kiro: pairs of what the user and the assistant said."""
    records: list[Record] = []
    model = fields.inner("modelinfo").text("modelid")
    for number, turn in enumerate(fields.listed("history")):
        pair = dict(zip(("user", "assistant"), turn, strict=False)) if isinstance(turn, list) else turn
        both = Fields(pair, f"history[{number}]", fields.warnings)
        user, own = both.inner("user"), both.inner("requestmetadata").text("modelid") or model
        for _, content in user.named("content"):
            prompt = content.text("prompt", "value")
            records += [_message("user", prompt, timestamp=user.peek("timestamp"))] if prompt is not None else []
            records += [_kiro_result(one) for one in content.objects("tooluseresults")]
        for _, answer in both.named("assistant"):
            calls = [_kiro_call(one) for one in answer.objects("tooluses")]
            records.append(
                _message("assistant", answer.text("content", "value"), tool_calls=[*calls] or None, model=own)
            )
    yield StoredChat(records, {"id": fields.text("conversationid")})


def _kiro_call(fields: Fields) -> Json:
    return function_call(fields.text("id"), fields.text("name"), fields.take("args"))


def _kiro_result(fields: Fields) -> Record:
    parts = [_kiro_part(one) for one in fields.objects("content")]
    return _result(fields.text("tooluseid"), "\n".join(filter(None, parts)))


def _kiro_part(part: Fields) -> str | None:
    return part.text("text", "json") or as_text(part.rest() or None)


def _is_zed(value: Record) -> bool:
    first = next(iter(objects_in(value.get("messages"))), {})
    return len(first) == 1 and isinstance(first.get("User", first.get("Agent")), dict)


def _zed(fields: Fields) -> Iterator[StoredChat]:
    """A thread of Zed, whose messages and parts are named by what they are."""
    model = fields.inner("model").text("model")
    records: list[Record] = []
    for message in fields.objects("messages"):
        user, agent = message.inner("user"), message.inner("agent")
        parts = [_zed_part(one) for one in user.objects("content")]
        records += [_message("user", [*parts])] if parts else []
        answer = [_zed_part(one) for one in agent.objects("content")]
        records += [_message("assistant", [*answer], model=model)] if answer else []
        for own, result in agent.named("toolresults"):
            content = result.take("content", "value")
            records.append(_result(own, next(iter(content.values()), None) if isinstance(content, dict) else content))
    yield StoredChat(records, {})


def _zed_part(part: Fields) -> Json:
    """A part in the form of a provider, from `{"Text": ...}`, `{"Thinking": ...}`, `{"ToolUse": ...}`."""
    if (words := part.peek("text")) is not None:
        return {"type": "text", "text": words}
    if (thought := part.peek("thinking")) is not None:
        return {"type": "thinking", "thinking": object_in(thought).get("text", thought)}
    if isinstance(call := part.peek("tooluse"), dict):
        return {"type": "tool_use", **{key: call.get(key) for key in ("id", "name", "input")}}
    mention = part.inner("mention")
    return {"type": "text", "text": mention.text("content", "uri") or as_text(part.rest())}


# agents, stores, evaluation sets --------------------------------------------------------------------------------


def _trae(fields: Fields) -> Iterator[StoredChat]:
    """A trajectory of Trae: each request holds what is new to the model; results may stand with the steps alone."""
    steps = [result for step in fields.objects("agentsteps") for result in step.objects("toolresults")]
    results = {one.text("callid"): one.take("result", "error") for one in steps}
    records: list[Record] = []
    for turn in fields.objects("llminteractions"):
        asked = [one for message in turn.objects("inputmessages") for one in _trae_message(message)]
        records += [one for one in asked if one not in records and one.get("tool_call_id") not in results]
        response = turn.inner("response")
        calls = list(response.objects("toolcalls"))
        records.append(_message(
            "assistant", response.text("content"), tool_calls=[_trae_call(one) for one in calls] or None,
            model=response.text("model"), usage=response.take("usage"), timestamp=turn.take("timestamp"),
        ))  # fmt: skip
        records += [_result(own, results[own]) for one in calls if (own := one.text("callid")) in results]
    yield StoredChat(records, {})


def _trae_call(call: Fields) -> Json:
    return function_call(as_text(call.peek("callid")), call.text("name"), call.take("arguments"))


def _trae_message(message: Fields) -> Iterator[Record]:
    """A message of a request; results of tools as one each, with the id of their call."""
    result = message.inner("toolresult")
    if (own := result.text("callid")) is not None:
        yield _result(own, result.take("result", "error"))
        return
    parts = objects_in(message.peek("content"))
    answers = [one for one in parts if one.get("type") == "tool_result"]
    yield from (_result(one.get("tool_use_id"), one.get("content")) for one in answers)
    if not answers:
        yield message.values


def _llama_index(fields: Fields) -> Iterator[StoredChat]:
    """The chats of a store of LlamaIndex, each under its key."""
    holder = fields.inner("chatstore") if fields.peek("chatstore") is not None else fields
    for key, chat in holder.named("store"):
        yield StoredChat([_llama_message(one) for one in chat.objects("value")], {"id": key})


def _llama_message(message: Fields) -> Record:
    beside = message.inner("additionalkwargs")
    words = message.take("blocks", "content")
    known = ("tool_calls", "tool_call_id", "name")
    return _message(message.text("role") or "user", words, **{key: beside.take(key.replace("_", "")) for key in known})


def _is_llama_store(value: Record) -> bool:
    holder = object_in(value.get("chat_store")) or value
    return isinstance(holder.get("store"), dict) and holder.get("class_name") == "SimpleChatStore"


def _adk_cases(fields: Fields) -> Iterator[StoredChat]:
    """The cases of an evaluation set of ADK: what the user said, which tools were used, what was answered."""
    for case in fields.objects("evalcases"):
        records: list[Record] = []
        for turn in case.objects("conversation"):
            records.append(turn.nested("usercontent"))
            steps = turn.inner("intermediatedata")
            given = {one.text("id", "name"): one.take("response") for one in steps.objects("toolresponses")}
            for call in steps.objects("tooluses"):
                name, own = call.text("name"), call.text("id")
                records.append(_calling(name, call.take("args"), own or name))
                records += [_result(own or name, given[own or name])] if (own or name) in given else []
            records.append(turn.nested("finalresponse"))
        yield StoredChat([one for one in records if one], {"id": case.text("evalid")})


def _is_adk(value: Record) -> bool:
    return any(_holds(key, name)(value) for key in ("eval_cases", "evalCases") for name in ("conversation",))


def _assistants(fields: Fields) -> Iterator[StoredChat]:
    """The messages of a thread of OpenAI's assistants with the steps of its runs, in the order of time."""
    messages = [(one.peek("createdat"), one.values) for one in fields.objects("messages")]
    steps = [
        (step.peek("createdat"), record)
        for step in fields.objects("runsteps")
        for call in step.inner("stepdetails").objects("toolcalls")
        for record in _assistants_call(call, step.peek("createdat"))
    ]
    told = sorted((*messages, *steps), key=lambda one: one[0] if isinstance(one[0], int) else 0)
    thread = fields.inner("thread").text("id") or fields.text("threadid")
    yield StoredChat([record for _, record in told], {"id": thread})


def _assistants_call(call: Fields, moment: Json) -> Iterator[Record]:
    """The call of a tool and its output: of a function, or under the name of its type of a tool of OpenAI."""
    kind = call.text("type") or "function"
    inner = call.inner(plain_name(kind))
    output = inner.take("output", "outputs", "results")
    name = inner.text("name") or kind
    own = call.text("id")
    yield _calling(name, inner.take("arguments", "input") or inner.rest(), own, created_at=moment)
    if output is not None:
        yield _result(own, output, created_at=moment)


def _is_run_of_executor(value: Record) -> bool:
    steps = value.get("intermediate_steps")
    first = steps[0] if isinstance(steps, list) and steps else None
    return isinstance(first, list) and len(first) == 2 and "tool" in object_in(first[0])


def _run_of_executor(fields: Fields) -> Iterator[StoredChat]:
    """What LangChain's executor of an agent returns: pairs of an action and what came of it."""
    records: list[Record] = [_message("user", fields.take("input", "question", "query"))]
    for number, step in enumerate(fields.listed("intermediatesteps")):
        action, result = step if isinstance(step, list) and len(step) == 2 else (None, step)
        given, own = Fields(action, f"intermediate_steps[{number}]", fields.warnings), f"call-{number}"
        thought = (given.text("log") or "").strip() or None
        records.append(_calling(given.text("tool"), given.take("toolinput"), own, reasoning_content=thought))
        records.append(_result(own, as_text(result)))
    answer = fields.take("output", "answer")
    yield StoredChat([*records, *([_message("assistant", as_text(answer))] if answer is not None else [])], {})


def _is_ai_sdk(value: Record) -> bool:
    return any("messages" in object_in(step.get("response")) for step in objects_in(value.get("steps")))


def _ai_sdk(fields: Fields) -> Iterator[StoredChat]:
    """What `generateText` of the AI SDK returns: each step's response holds all that was said since the request."""
    steps = list(fields.objects("steps"))
    asked = Fields(opened(steps[0].inner("request").take("body")))
    records: list[dict[str, Json]] = []
    for step in steps:
        told = [dict(one) for one in objects_in(step.inner("response").take("messages"))]
        records = told if told[: len(records)] == records else [*records, *told]
    answers = [one for one in records if one.get("role") == "assistant"]
    if len(answers) == len(steps):
        for answer, step in zip(answers, steps, strict=True):
            answer["usage"] = step.take("usage")
    prompt = objects_in(asked.take("messages", "input", "contents"))
    yield StoredChat([*prompt, *records], {})


def _is_re_act(value: Record) -> bool:
    return {"thought_0", "tool_name_0"} <= object_in(value.get("trajectory")).keys()


def _re_act(fields: Fields) -> Iterator[StoredChat]:
    """The trajectory of DSPy's ReAct, whose fields are numbered, with what its signature asks and answers."""
    steps = fields.inner("trajectory")
    asked = fields.text("question", "query", "input", "task", "request")
    records: list[Record] = [_message("user", asked)] if asked else []
    for number in range(len(steps.raw)):
        if (name := steps.text(f"toolname{number}")) is None:
            break
        own, thought = f"call-{number}", steps.text(f"thought{number}")
        records.append(_calling(name, steps.take(f"toolargs{number}"), own, reasoning_content=thought))
        records.append(_result(own, steps.take(f"observation{number}")))
    answer, thought = fields.text("answer", "response", "output", "result"), fields.text("reasoning")
    yield StoredChat([*records, *([_message("assistant", answer, reasoning_content=thought)] if answer else [])], {})


# bots -----------------------------------------------------------------------------------------------------------


def _is_rasa(value: Record) -> bool:
    return "sender_id" in value and any("event" in one for one in objects_in(value.get("events"))[:1])


def _rasa(fields: Fields) -> Iterator[StoredChat]:
    """A tracker of Rasa: what was said is a message; what the bot did, and each slot that it filled, an event."""
    records: list[Record] = []
    for event in fields.objects("events"):
        kind = as_text(event.take("event")) or "event"
        if kind in ("user", "bot"):
            words, moment = event.text("text"), event.take("timestamp")
            rest = event.rest() if kind == "bot" else {}
            role = "user" if kind == "user" else "assistant"
            records.append(_message(role, words or as_text(rest or None), timestamp=moment, beside=words and rest))
        elif kind == "slot":
            records.append({"type": f"slot {event.text('name')}", "content": event.take("value"), **event.rest()})
        else:
            records.append({"type": kind, **event.rest()})
    yield StoredChat(records, {"id": fields.text("senderid")})


def _is_transcript(value: Record) -> bool:
    return any(map(_is_activity, objects_in(value.get("activities"))))


def _is_activity(value: Record) -> bool:
    return (
        value.get("type") == "message"
        and "from" in value
        and {"channelId", "conversation", "replyToId"} & {*value} != set()
    )


def _transcript(fields: Fields) -> Iterator[StoredChat]:
    """Activities of a bot (Copilot Studio, Bot Framework); the steps of its plan are calls of tools."""
    yield _activities(list(fields.objects("activities")), fields)


def _activities(activities: Sequence[Fields], about: Fields) -> StoredChat:
    steps: dict[str | None, Json] = {}
    for one in activities:
        if one.peek("name") == "DynamicPlanStepBindUpdate":
            value = Fields(object_in(one.peek("value")))
            steps[value.text("stepid")] = value.peek("arguments")
    records: list[Record] = []
    name: str | None = None
    for one in activities:
        name = name or one.inner("conversation").text("id")
        records += _activity(one, steps)
    return StoredChat(records, {"id": name or about.text("id", "conversationid", "conversationtranscriptid")})


def _activity(activity: Fields, arguments: Mapping[str | None, Json]) -> Iterator[Record]:
    who, moment = activity.inner("from"), activity.take("timestamp")
    value = activity.inner("value") if activity.peek("type") == "event" else Fields({})
    match activity.peek("name") if activity.peek("type") == "event" else activity.peek("type"):
        case "message":
            words = activity.text("text") or as_text(activity.take("attachments", "value") or None)
            if words:
                yield _message(_speaker(who), words, timestamp=moment)
        case "DynamicPlanStepTriggered":
            own, thought = value.text("stepid"), value.text("thought")
            about: dict[str, Json] = {"reasoning_content": thought, "timestamp": moment}
            yield _calling(value.text("taskdialogid"), arguments.get(own), own, **about)
        case "DynamicPlanStepFinished":
            output = _observation(value.take("observation", "executionerror", "state"))
            yield _result(value.text("stepid"), output, timestamp=moment)
        case "DynamicPlanStepBindUpdate" | "typing" | "conversationUpdate":
            return
        case kind:
            yield {"type": f"activity {as_text(activity.peek('valuetype')) or as_text(kind)}", **value.rest()}


def _speaker(who: Fields) -> str:
    """Copilot Studio writes 1 for a user and 0 for the bot, Bot Framework their names."""
    role = who.take("role") if who.peek("role") is not None else who.peek("name")
    return "user" if role == 1 or (isinstance(role, str) and role.lower() == "user") else "assistant"


def _observation(value: Json) -> Json:
    inner = object_in(value).get("content", value)
    return inner if isinstance(inner, str) else _texts(inner, "text")


_FORMS: tuple[tuple[Callable[[Record], bool], Callable[[Fields], Iterator[StoredChat]]], ...] = (
    (_is_open_webui, _open_webui),
    (_holds("messages", "isCreatedByUser"), _libre_chat),
    (_holds("messages", "versions", "currentlySelected"), _lm_studio),
    (lambda value: "chunks" in object_in(value.get("chunkedPrompt")), _ai_studio),
    (_holds("requests", "message", "response"), _vs_code),
    (_holds("history", "message", "contextItems"), _continue),
    (_is_kiro, _kiro),
    (_is_zed, _zed),
    (_holds("llm_interactions", "input_messages", "response"), _trae),
    (_is_llama_store, _llama_index),
    (_holds("run_steps", "step_details"), _assistants),
    (_is_adk, _adk_cases),
    (_is_run_of_executor, _run_of_executor),
    (_is_ai_sdk, _ai_sdk),
    (_is_re_act, _re_act),
    (_is_rasa, _rasa),
    (_is_transcript, _transcript),
)
"""What knows a document, and what reads its chats."""
