"""Codex: the rollout of a session (`~/.codex/sessions/**/rollout-*.jsonl`) or what `codex exec --json` prints.

A record a line: `session_meta`, `turn_context`, `response_item` (items of the Responses API), `event_msg`,
`compacted`; before September 2025 the items stood bare. Items between a message to the model and what it is given next
are one call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tracejury.ingest.conventions.message_json import content_text, message_of, read_message
from tracejury.ingest.conventions.parts import arguments_text
from tracejury.ingest.formats.codex_exec import is_event, read_events
from tracejury.ingest.formats.codex_protocol import is_protocol, modern
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import take_documents
from tracejury.ingest.formats.spans import brief, kept
from tracejury.ingest.formats.trajectory import Session, Usage, one_answer, session_trace
from tracejury.ingest.parse import inner_json
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.times import integer
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, SpanDraft, ToolCall, Trace

NAME = "codex"

_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"})
_RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)
_REPEATED = {"user_message": "message", "agent_message": "message", "agent_reasoning": "text"}
"""Events that say again, for the screen, what an item says."""
_NOT_SAID = ("<", "# AGENTS.md")
_THREAD_STARTED = re.compile(rb'"type"\s*:\s*"thread\.started"')
_PROTOCOL = re.compile(
    rb'"msg"\s*:\s*\{\s*"type"\s*:\s*"(?:task_started|session_configured|agent_message|agent_reasoning|exec_command_begin)"'
)
_FIRST = 5
"""The lines among which the first event of the older form stands, after settings and the prompt."""

Record = dict[str, Json]


@dataclass(slots=True)
class _Rollout:
    """The state of one session while its records are read in order."""

    session: Session
    meta: Record = field(default_factory=dict)
    model: str | None = None
    goal: str | None = None
    said: set[str] = field(default_factory=set)
    items: list[Record] = field(default_factory=list)  # of the answer that is being collected
    times: list[int | None] = field(default_factory=list)
    last_call: SpanDraft | None = None
    since: int | None = None
    turn: Record = field(default_factory=dict)


def sniff(sample: FileSample) -> bool:
    """`session_meta` with its payload, a bare session line before bare items, or the first event of `codex exec`."""
    keys, data = sample.keys, sample.data
    wrapped = {"timestamp", "type", "payload"} <= keys and (
        b'"session_meta"' in data or b'"response_item"' in data or b'"turn_context"' in data
    )
    is_exec = "thread_id" in keys and _THREAD_STARTED.search(data) is not None
    is_exec = is_exec or ({"msg", "type"} <= keys and _PROTOCOL.search(data) is not None)
    return wrapped or is_exec or (b'"record_type"' in data and {"id", "instructions"} <= keys)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """The session of the file; of events of `codex exec` each thread."""
    rollout = _Rollout(session=Session(span_id="", agent="codex"))
    records: list[tuple[Record, int | None]] = []
    warnings: list[str] = []

    def take(value: Json, place: str) -> None:
        if not isinstance(value, dict):
            raise IngestError(f"{brief(value)} is not a record of a session", place=place, remedy="export it again")
        records.append((value, Fields(value, place, warnings).time("timestamp")))

    bad = yield from take_documents((source,), take, warnings)
    if not records:
        if not bad:
            raise IngestError("holds no record of a session", remedy="leave it out")
        return
    if is_event(records[0][0]):
        yield from read_events([record for record, _ in records], source, warnings)
        return
    if any(is_protocol(record) for record, _ in records[:_FIRST]):
        yield from read_events(modern([record for record, _ in records], source.stem), source, warnings)
        return
    rollout.session.span_id = rollout.session.root.span_id = _session_id(records) or "unnamed"
    for record, time in records:
        _tell(rollout, record, time)
    _close(rollout)
    attributes = {f"session.{key}": item for key, item in rollout.meta.items() if key != "id"}
    yield session_trace(
        [rollout.session], trace_id=rollout.session.span_id, format=NAME, source=source, attributes=attributes,
        goal=rollout.goal, warnings=warnings,
    )  # fmt: skip


def _session_id(records: list[tuple[Record, int | None]]) -> str | None:
    for record, _ in records:
        payload = record.get("payload")
        if record.get("type") == "session_meta" and isinstance(payload, dict):
            return as_text(payload.get("id"))
    first = records[0][0]
    return as_text(first.get("id")) if "instructions" in first else None


def _tell(rollout: _Rollout, record: Record, time: int | None) -> None:
    payload, kind = record.get("payload"), record.get("type")
    if not isinstance(payload, dict):
        if "instructions" in record and "id" in record:
            rollout.meta.update(record)
        elif isinstance(kind, str) and "record_type" not in record:
            _item(rollout, record, time)
        else:
            rollout.session.event(as_text(record.get("record_type")) or "record", record, time)
        return
    match kind:
        case "session_meta":
            _meta(rollout, payload, time)
        case "turn_context":
            rollout.model = as_text(payload.get("model")) or rollout.model
            if {**payload, "turn_id": None} != {**rollout.turn, "turn_id": None}:
                rollout.session.event("turn_context", payload, time)
            rollout.turn = payload
        case "response_item":
            _item(rollout, payload, time)
        case "event_msg":
            _event(rollout, payload, time)
        case "compacted":
            _compacted(rollout, payload, time)
        case "token_usage_record":
            _count(rollout, payload.get("usage"))
            rollout.session.event("token_usage_record", payload, time)
        case _:
            rollout.session.event(as_text(kind) or "record", payload, time)


def _meta(rollout: _Rollout, payload: Record, time: int | None) -> None:
    if rollout.meta:  # a forked session repeats the line of the one that it comes from
        rollout.session.event("session_meta", payload, time)
        return
    rollout.meta = payload
    instructions = payload.get("base_instructions", payload.get("instructions"))
    text = instructions.get("text") if isinstance(instructions, dict) else instructions
    if isinstance(text, str) and text:
        rollout.session.say(Message("system", text), time=time)


def _item(rollout: _Rollout, item: Record, time: int | None) -> None:
    kind = as_text(item.get("type"))
    is_answer = kind in _CALLS or kind == "reasoning" or (kind == "message" and item.get("role") == "assistant")
    if is_answer:
        rollout.items.append(item)
        rollout.times.append(time)
        return
    if kind in _RESULTS:
        if rollout.items:
            _close(rollout)
        _result(rollout, item, time)
    elif kind == "message":
        _close(rollout)
        _say(rollout, item, time)
    else:
        rollout.session.event(as_text(kind) or "item", item, time)
    rollout.since = time


def _say(rollout: _Rollout, item: Record, time: int | None) -> None:
    message = message_of(item).message
    text = message.content or ""
    rollout.said.add(text)
    rollout.session.say(message, time=time, is_goal=not text.lstrip().startswith(_NOT_SAID))


def _result(rollout: _Rollout, item: Record, time: int | None) -> None:
    output = item.get("output")
    content = inner_json(output) if isinstance(output, str) else output
    attributes: Record = {}
    text = content_text(output)
    if isinstance(content, dict) and isinstance(content.get("output", content.get("content")), str):
        text = as_text(content.get("output", content.get("content")))
        attributes = {f"result.{key}": kept(one) for key, one in content.items() if key not in ("output", "content")}
    metadata = content.get("metadata") if isinstance(content, dict) else None
    code = integer(metadata.get("exit_code")) if isinstance(metadata, dict) else None
    failed = (isinstance(content, dict) and content.get("success") is False) or bool(code)
    status = f"exit code {code}" if code else text
    call = as_text(item.get("call_id") or item.get("id"))
    rollout.session.result(call, text, time=time, failed=failed, status_message=status, attributes=attributes)


def _close(rollout: _Rollout) -> None:
    """Make one call of the model of the items that it answered with."""
    if not rollout.items:
        return
    answers: list[Message] = []
    calls: list[ToolCall] = []
    rest: list[Json] = []
    for item in rollout.items:
        kind, left = as_text(item.get("type")), dict(item)
        if kind in _CALLS:
            name = as_text(left.pop("name", None)) or str(kind).removesuffix("_call")
            arguments = next((left.pop(key) for key in ("arguments", "input", "action") if key in left), None)
            calls.append(ToolCall(name, arguments_text(arguments), as_text(left.pop("call_id", left.get("id")))))
        else:
            turn = read_message(item)
            answers += [turn.message] if turn is not None else []
            left = left if turn is None else turn.rest if isinstance(turn.rest, dict) else {}
        left.pop("type", None)
        if left:
            rest.append(kept(left))
    rollout.said.update(text for one in answers for text in _texts(one))
    end = next((time for time in reversed(rollout.times) if time is not None), None)
    attributes: Record = {"items": rest} if rest else {}
    rollout.last_call = rollout.session.answer(
        one_answer(answers, calls), start=rollout.since, time=end, model=rollout.model, attributes=attributes
    )
    rollout.items, rollout.times, rollout.since = [], [], end


def _event(rollout: _Rollout, payload: Record, time: int | None) -> None:
    kind = as_text(payload.get("type")) or "event"
    if kind == "user_message":
        rollout.goal = rollout.goal or as_text(payload.get("message"))
    if kind == "token_count":
        info = payload.get("info")
        _close(rollout)
        _count(rollout, info.get("last_token_usage") if isinstance(info, dict) else None)
    text = payload.get(_REPEATED[kind]) if kind in _REPEATED else None
    waiting = [turn.message for item in rollout.items if (turn := read_message(item)) is not None]
    texts = {text for one in waiting for text in _texts(one)} | rollout.said
    if isinstance(text, str) and any(text in one for one in texts):
        return
    rollout.session.event(kind, payload, time)


def _texts(message: Message) -> list[str]:
    return [text for text in (message.content, message.reasoning) if text]


def _count(rollout: _Rollout, usage: Json) -> None:
    """The tokens of the last call, once: what comes again says the same."""
    if not isinstance(usage, dict) or rollout.last_call is None or rollout.last_call.prompt_tokens is not None:
        return
    counts = Fields(usage, "usage", rollout.last_call.warnings)
    prompt, completion, total, reasoning = (
        counts.count(name) for name in ("inputtokens", "outputtokens", "totaltokens", "reasoningoutputtokens")
    )
    used = Usage(prompt=prompt, completion=completion, total=total, reasoning=reasoning)
    Session.count(rollout.last_call, used)
    rollout.last_call.attributes["usage"] = kept(usage)


def _compacted(rollout: _Rollout, payload: Record, time: int | None) -> None:
    """Compaction: the context is what replaces it."""
    _close(rollout)
    rollout.session.forget()
    rollout.session.event("compacted", {k: v for k, v in payload.items() if k != "replacement_history"}, time)
    history = payload.get("replacement_history")
    for item in history if isinstance(history, list) else []:
        if (turn := read_message(item)) is not None:
            rollout.session.say(turn.message, time=time)
    if not isinstance(history, list) and isinstance(payload.get("message"), str):
        rollout.session.say(Message("user", as_text(payload["message"])), time=time)
