"""OpenHands: a trajectory as it saves and downloads it, its conversations' events, and rows of its evaluations.

Two generations of events: actions and observations (`action`, `observation`, `cause`) and those of its agent SDK
(`kind`: `MessageEvent`, `ActionEvent`, `ObservationEvent`). A row of an evaluation holds them under `history`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

from tracejury.ingest.conventions.message_json import content_text, message_of, read_message, unread_of
from tracejury.ingest.conventions.parts import arguments_text
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import take_documents, together
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.spans import kept
from tracejury.ingest.formats.trajectory import Session, Usage, session_trace
from tracejury.ingest.parse import Document, parse_documents
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.times import integer
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, ToolCall, Trace

NAME = "openhands"

_SDK_KINDS = (b'"MessageEvent"', b'"ActionEvent"', b'"SystemPromptEvent"', b'"ObservationEvent"')
_EVENT_FILE = re.compile(r"[\\/]events[\\/](\d+)\.json$")
_LISTS = ("history", "trajectory", "events", "items")
_IDLE = frozenset({"change_agent_state", "agent_state_changed", "null", "recall"})
"""Actions and observations that tell of the state of the program alone."""

Record = dict[str, Json]


def sniff(sample: FileSample) -> bool:
    """`source` with `action` and `args` or an `observation` with its `cause`, or events of the SDK."""
    keys = sample.keys
    old = {"source", "action", "args"} <= keys and not keys.isdisjoint({"observation", "timestamp", "cause"})
    old = old or {"source", "observation", "cause", "content"} <= keys
    return old or ({"kind", "source"} <= keys and any(kind in sample.data for kind in _SDK_KINDS))


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trajectory of the file: a list of events, an event a line, or a row of an evaluation each."""
    loose: list[Json] = []
    for document in parse_documents(source.data):
        try:
            yield from _taken(document, loose, source)
        except IngestError as error:
            yield rejected(source.file, error)
    if loose:
        yield _trace(loose, {}, source)


def bundles(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The events of a conversation as the file store keeps them, one a file: `<conversation>/events/<number>.json`."""
    folders: dict[str, list[str]] = {}
    for name in names:
        if match := _EVENT_FILE.search(name):
            folders.setdefault(name[: match.start()], []).append(name)
    return [tuple(sorted(events, key=_event_number)) for events in folders.values() if len(events) > 1]


def _event_number(name: str) -> int:
    match = _EVENT_FILE.search(name)
    return int(match[1]) if match else 0


def read_bundle(sources: tuple[Source, ...], beside: Sequence[str] = ()) -> Iterator[Trace | Rejected]:
    """The conversation of a folder of events, under the folder's name."""
    events: list[Json] = []
    bad = yield from take_documents(sources, lambda value, _: events.append(value), [])
    folder = _EVENT_FILE.sub("", sources[0].file).replace("\\", "/").rsplit("/", 1)[-1]
    if events or not bad:
        yield _trace(events, {"conversation_id": folder} if folder else {}, together(sources))


def _taken(document: Document, loose: list[Json], source: Source) -> Iterator[Trace]:
    if document.error is not None:
        raise document.error
    value = document.value
    if isinstance(value, list):
        rows = [item for item in value if isinstance(item, dict) and _events_of(item) is not None]
        if rows and len(rows) == len(value):
            yield from (_trace(_events_of(row) or [], row, source) for row in rows)
        else:
            yield _trace(value, {}, source)
    elif isinstance(value, dict) and (events := _events_of(value)) is not None:
        yield _trace(events, value, source)
    else:
        loose.append(value)


def _events_of(row: Record) -> list[Json] | None:
    for name in _LISTS:
        content = opened(row.get(name))
        if isinstance(content, list) and "action" not in row and "observation" not in row:
            return [one for item in content for one in (item if isinstance(item, list) else [item])]
    return None


def _trace(events: Sequence[Json], row: Record, source: Source) -> Trace:
    session = Session(span_id=_stem(source.file), agent="openhands")
    named = Fields(row, warnings=session.warnings)
    identity = named.text("instanceid", "conversationid", "trajectoryid", "sid", "id")
    warnings = [] if identity else [f"no_trace_id: the file names no conversation; called {session.span_id}"]
    session.span_id = session.root.span_id = identity or session.span_id
    named.drop(*_LISTS)
    for fields in Fields({"history": [*events]}, warnings=session.warnings).objects("history", code="unreadable_span"):
        if fields.peek("kind") is not None:
            _sdk_event(session, fields)
        else:
            _event(session, fields)
    return session_trace(
        [session], trace_id=session.span_id, format=NAME, source=source, attributes=named.rest(), warnings=warnings
    )


def _stem(file: str) -> str:
    """A name for a trajectory that has none: the file's, without its folders."""
    return file.replace("\\", "/").rsplit("/", 1)[-1].split(".")[0] or "unnamed"


# ---- actions and observations ----------------------------------------------------------------------------------


def _event(session: Session, fields: Fields) -> None:
    event = fields.raw
    time, source = fields.time("timestamp"), fields.word("source")
    action, observation = fields.text("action"), fields.text("observation")
    name = action or observation or "event"
    if name in _IDLE or (action is None and observation is None):
        session.event(name, event, time)
    elif observation is not None:
        _observation(session, fields, observation, time)
    elif action == "message" or (action == "system" and source != "user"):
        _said(session, fields, source, action, time)
    elif source == "agent":
        _action(session, fields, str(action), time)
    else:
        session.event(name, event, time)


def _said(session: Session, fields: Fields, source: str | None, action: str, time: int | None) -> None:
    args = fields.inner("args")
    text = args.text("content") or fields.text("message")
    if source == "agent" and action == "message":
        usage, model, rest = _usage(fields)
        own_id = _event_id(session, fields)
        rest = {**rest, **fields.rest(), **args.rest("args.")}
        message = Message("assistant", text)
        session.answer(message, time=time, model=model, usage=usage, span_id=own_id, attributes=rest)
        return
    role = "system" if action == "system" else "user"
    session.say(Message(role, text), time=time, is_goal=role == "user")
    if rest := args.rest("args."):
        session.event(action, rest, time)


def _event_id(session: Session, fields: Fields) -> str | None:
    number = fields.text("id")
    return None if number is None else f"{session.span_id}-{number}"


def _action(session: Session, fields: Fields, action: str, time: int | None) -> None:
    """What the agent did: the call of its model that chose it, and the call of the tool."""
    metadata = fields.inner("toolcallmetadata")
    response = metadata.inner("modelresponse")
    args = fields.nested("args")
    thought = args.pop("thought", None)
    call_id, name = metadata.text("toolcallid"), metadata.text("functionname") or action
    choice = next(response.objects("choices"), Fields({}))
    turn = message_of(choice.nested("message"))
    arguments = next((call.arguments for call in turn.message.tool_calls if call.id == call_id), None)
    own_id = _event_id(session, fields)
    call = ToolCall(name, arguments or arguments_text(args), call_id or (f"{own_id}-tool" if own_id else None))
    text = turn.message.content or as_text(thought) or None
    if text is None and action == "finish":
        text = as_text(args.get("final_thought")) or fields.text("message")
    usage, model, rest = _usage(fields, response)
    if unread := unread_of(turn):
        rest["response.message"] = kept(unread)
    session.answer(
        Message("assistant", text, (call,), reasoning=turn.message.reasoning),
        time=time, model=model, usage=usage, span_id=own_id,
        attributes={**rest, "action": action, "args": kept(args), **fields.rest()},
    )  # fmt: skip
    if action in ("finish", "think") and call.id is not None:  # tools that the agent answers itself
        session.result(call.id, None, time=time)


def _usage(fields: Fields, response: Fields | None = None) -> tuple[Usage | None, str | None, Record]:
    """Tokens and model of a call, and the metrics of the trace so far, which are sums."""
    metrics = fields.nested("llmmetrics")
    rest: Record = {"llm_metrics": kept(metrics)} if metrics else {}
    if response is None:
        return None, None, rest
    counts = response.inner("usage")
    used = Usage(
        prompt=counts.count("prompttokens"), completion=counts.count("completiontokens"),
        total=counts.count("totaltokens"),
    )  # fmt: skip
    return used, response.text("model"), {**rest, **response.rest("response.")}


def _observation(session: Session, fields: Fields, observation: str, time: int | None) -> None:
    metadata, cause = fields.inner("toolcallmetadata"), fields.text("cause")
    content, extras = fields.take("content"), fields.nested("extras")
    call_id = metadata.text("toolcallid") or (f"{session.span_id}-{cause}-tool" if cause is not None else None)
    tool = session.tool_span(call_id) if call_id is not None else None
    text = content_text(content) or fields.text("message")
    if tool is None or tool.output is not None:
        session.say(Message("user", text), time=time)
        session.event(observation, {**fields.rest(), "extras": kept(extras)}, time)
        return
    inner = extras.get("metadata")
    code = integer(inner.get("exit_code")) if isinstance(inner, dict) else integer(extras.get("exit_code"))
    failed = observation == "error" or bool(code and code > 0) or fields.take("success") is False
    session.result(call_id, text, time=time, failed=failed, status_message=f"exit code {code}" if code else text,
                   attributes={**fields.rest(), "observation": observation, "extras": kept(extras)})  # fmt: skip


# ---- events of the SDK -----------------------------------------------------------------------------------------


def _sdk_event(session: Session, fields: Fields) -> None:
    event = fields.raw
    kind, time = fields.text("kind") or "event", fields.time("timestamp")
    match kind:
        case "SystemPromptEvent":
            prompt = fields.take("systemprompt")
            text = prompt.get("text") if isinstance(prompt, dict) else prompt
            session.say(Message("system", content_text(text)), time=time)
            session.event(kind, fields.rest(), time)
        case "MessageEvent":
            _sdk_message(session, fields, time)
        case "ActionEvent":
            _sdk_action(session, fields, time)
        case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
            _sdk_observation(session, fields, kind, time)
        case _:
            session.event(kind, event, time)


def _sdk_message(session: Session, fields: Fields, time: int | None) -> None:
    source, llm_message = fields.text("source"), fields.nested("llmmessage")
    role = as_text(llm_message.get("role")) or ("assistant" if source == "agent" else "user")
    message = message_of({**llm_message, "role": role}).message
    if role == "assistant":
        session.answer(message, time=time, span_id=fields.text("id"), attributes=fields.rest())
    else:
        session.say(message, time=time, is_goal=source == "user")


def _sdk_action(session: Session, fields: Fields, time: int | None) -> None:
    """A call of a tool; calls of one answer of the model each have an event, the later ones without a thought."""
    thoughts, reasoning = list(fields.listed("thought")), fields.text("reasoningcontent")
    raw = fields.inner("toolcall")
    function = raw.inner("function")
    action = fields.nested("action")
    name = fields.text("toolname") or raw.text("name") or function.text("name")
    arguments = raw.take("arguments") or function.take("arguments")
    if arguments is None:
        arguments = {key: item for key, item in action.items() if key != "kind"}
    call_id, own_id = fields.text("toolcallid") or raw.text("id"), fields.text("id")
    parts = [*([{"type": "thinking", "thinking": reasoning}] if reasoning else []), *thoughts]
    turn = read_message({"role": "assistant", "content": cast("Json", parts)}) if parts else None
    text = turn.message.content if turn is not None else None
    call = ToolCall(name, arguments_text(arguments), call_id or (f"{own_id}-tool" if own_id else None))
    session.answer(
        Message("assistant", text, (call,), reasoning=turn.message.reasoning if turn is not None else None),
        time=time, span_id=own_id,
        attributes=fields.rest(),
    )  # fmt: skip
    if name in ("finish", "think") and text is None and isinstance(action.get("message"), str):
        session.root.output = as_text(action["message"])


def _sdk_observation(session: Session, fields: Fields, kind: str, time: int | None) -> None:
    observation = fields.take("observation", "error", "rejectionreason")
    content = observation.get("content", observation.get("output")) if isinstance(observation, dict) else observation
    others = observation if isinstance(observation, dict) else {}
    rest = {f"observation.{key}": kept(item) for key, item in others.items() if key not in ("content", "output")}
    code = integer(observation.get("exit_code")) if isinstance(observation, dict) else None
    failed = (
        kind != "ObservationEvent"
        or (isinstance(observation, dict) and observation.get("is_error") is True)
        or bool(code)
    )
    text = message_of({"role": "tool", "content": content}).message.content
    session.result(
        fields.text("toolcallid"), text, time=time, name=fields.text("toolname"), failed=failed, status_message=text,
        attributes={**rest, **fields.rest()},
    )  # fmt: skip
