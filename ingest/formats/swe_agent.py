"""SWE-agent (`.traj`) and mini-swe-agent (`.traj.json`): the history of messages of one run, with its outcome.

SWE-agent keeps `history` and `trajectory` (a step each), mini-swe-agent `messages`. Neither says when a step was made
unless its messages hold a `timestamp`; the submission is the run's final answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tracejury.ingest.conventions.message_json import content_text, read_message
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields, time_of_any
from tracejury.ingest.formats.spans import brief, kept
from tracejury.ingest.formats.trajectory import Session, Usage, one_answer, session_trace
from tracejury.ingest.parse import parse_documents
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.times import integer
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, SpanDraft, ToolCall, Trace

NAME = "swe_agent"

_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n?```", re.DOTALL)
_FAILED = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")

Record = dict[str, Json]


def sniff(sample: FileSample) -> bool:
    """`trajectory` with `history` or steps of an action and an observation, or mini-swe-agent's own mark."""
    keys = sample.keys
    steps = "trajectory" in keys and {"action", "observation", "response"} <= keys
    mini = (
        "trajectory_format" in keys or {"mini_version", "exit_status"} <= keys or {"model_stats", "exit_status"} <= keys
    )
    return steps or (mini and "messages" in keys) or ({"trajectory", "history", "info"} <= keys)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every run of the file."""
    for document in parse_documents(source.data):
        try:
            if document.error is not None:
                raise document.error
            yield _trace(document.value, document.place, source)
        except IngestError as error:
            yield rejected(source.file, error)


def _trace(value: Json, place: str, source: Source) -> Trace:
    fields = Fields(value if isinstance(value, dict) else {})
    history, steps = fields.listed("messages", "history"), fields.listed("trajectory")
    if not history and not steps:
        raise IngestError("a run without messages", place=place, remedy="give the whole trajectory file")
    info = fields.nested("info")
    trace_id = fields.text("instanceid") or as_text(info.get("instance_id")) or _stem(source.file)
    is_mini = "mini_version" in info or "trajectory_format" in (value if isinstance(value, dict) else {})
    session = Session(span_id=trace_id, agent="mini-swe-agent" if is_mini else "swe-agent")
    if history:
        _tell(session, history, _model(info))
        _add_steps(session, steps)
    else:
        _tell_steps(session, steps)
    stats = info.get("model_stats")
    attributes = {**fields.rest(), **{f"info.{key}": kept(item) for key, item in info.items()}}
    if isinstance(stats, dict):
        session.root.attributes.update({f"model_stats.{key}": kept(item) for key, item in stats.items()})
    return session_trace(
        [session], trace_id=trace_id, format=NAME, source=source, attributes=attributes,
        final_answer=as_text(info.get("submission")) or None,
    )  # fmt: skip


def _stem(file: str) -> str:
    """The run's name, which is the file's: `<instance>.traj.json`."""
    return file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".json").removesuffix(".traj") or "unnamed"


def _model(info: Record) -> str | None:
    config = Fields(Fields(info).nested("config"))
    return Fields(config.nested("model")).text("modelname")


def _tell(session: Session, history: Sequence[Json], model: str | None) -> None:
    """Each message in order: what a model said, what its tools gave back, and everything else that it got."""
    for number, item in enumerate(history):
        if not isinstance(item, dict):
            session.warnings.append(f"unreadable_span: message {number} is {brief(item)}, not an object")
            continue
        extra = item.get("extra")
        fields = Fields(extra if isinstance(extra, dict) else {})
        time = time_of_any(fields.take("timestamp", "createdat") or item.get("timestamp") or item.get("created_at"))
        if item.get("object") == "response":
            _response(session, item, fields, time, model)
        elif item.get("role") == "assistant":
            _answer(session, item, fields, time, model)
        else:
            _given(session, item, fields, time)


def _given(session: Session, item: Record, fields: Fields, time: int | None) -> None:
    role, text = as_text(item.get("role")), content_text(item.get("content", item.get("output")))
    calls = item.get("tool_call_ids")
    call_id = as_text(item.get("tool_call_id", item.get("call_id"))) or (
        as_text(calls[0]) if isinstance(calls, list) and calls else None
    )
    is_result = role == "tool" or item.get("type") == "function_call_output"
    code = integer(fields.take("returncode"))
    match = _FAILED.search(text or "")
    code = integer(match[1]) if code is None and match is not None else code
    rest = {
        **{k: kept(v) for k, v in item.items() if k in ("agent", "is_demo", "cache_control") and v},
        **fields.rest(),
    }
    if is_result or (role in ("user", "exit") and _waits(session)):
        session.result(call_id, text, time=time, failed=bool(code), status_message=f"exit code {code}", attributes=rest,
                       role="tool" if role == "tool" or role is None else role)  # fmt: skip
        return
    session.say(Message(role, text), time=time, is_goal=not item.get("is_demo"))
    if role == "exit" or rest:
        session.event(as_text(item.get("message_type")) or role or "message", rest, time)


def _waits(session: Session) -> bool:
    """Whether the last tool call has no result yet."""
    last = session.spans[-1].draft
    return last.kind == "TOOL" and last.output is None


def _answer(session: Session, item: Record, fields: Fields, time: int | None, model: str | None) -> None:
    turn = read_message({k: v for k, v in item.items() if k in ("role", "content", "tool_calls")})
    message = turn.message if turn is not None else Message("assistant", content_text(item.get("content")))
    calls = message.tool_calls or _actions(item, fields, message.content)
    response = Fields(fields.nested("response"))
    usage, own_model = _usage(response), response.text("model")
    skipped = {"role", "content", "tool_calls", "extra"}
    rest = {**{k: kept(v) for k, v in item.items() if k not in skipped and v}, **fields.rest("extra.")}
    response.take("choices")  # the message again
    rest.update(response.rest("response."))
    answer = Message("assistant", message.content, tuple(calls), reasoning=message.reasoning)
    session.answer(answer, time=time, model=own_model or model, usage=usage, attributes=rest)


def _response(session: Session, item: Record, fields: Fields, time: int | None, model: str | None) -> None:
    """An answer of the Responses API as it came: its items are one call of the model."""
    output = item.get("output")
    read = [read_message(one) for one in output] if isinstance(output, list) else []
    held = Fields({k: v for k, v in item.items() if k not in ("output", "object", "extra")})
    message = one_answer([one.message for one in read if one is not None])
    session.answer(message, time=time, model=held.text("model") or model, usage=_usage(held),
                   attributes={**held.rest("response."), **fields.rest("extra.")})  # fmt: skip


def _usage(response: Fields) -> Usage:
    counts = Fields(response.nested("usage"))
    prompt, completion = (
        integer(counts.take(*names))
        for names in (("prompttokens", "inputtokens"), ("completiontokens", "outputtokens"))
    )
    return Usage(prompt=prompt, completion=completion, total=integer(counts.take("totaltokens")))


def _actions(item: Record, fields: Fields, text: str | None) -> list[ToolCall]:
    """The commands of an answer without tool calls: as the file lists them, or the one block of bash in its text."""
    listed = [one.get("command") if isinstance(one, dict) else one for one in fields.listed("actions")]
    commands = listed or [item.get("action")]
    blocks = _BLOCK.findall(text or "")
    if not any(commands) and len(blocks) == 1:
        commands = blocks
    return [ToolCall("bash", command, None) for command in commands if isinstance(command, str) and command.strip()]


def _tell_steps(session: Session, steps: Sequence[Json]) -> None:
    """A run without history: each step is an answer, its action and what came of it."""
    for number, step in enumerate(steps):
        if not isinstance(step, dict):
            session.warnings.append(f"unreadable_span: trajectory[{number}] is {brief(step)}, not an object")
            continue
        fields = Fields(step)
        query = [turn for one in fields.listed("query", "messages") if (turn := read_message(one)) is not None]
        if query:
            session.forget()
            session.say(*(item.message for item in query), is_goal=True)
        action, text = fields.text("action"), fields.text("response", "thought")
        calls = (ToolCall("bash", action, None),) if action else ()
        observation = fields.text("observation")
        session.answer(Message("assistant", text, calls), attributes=fields.rest(), step=number)
        if calls:
            session.result(None, observation, role="user")


def _add_steps(session: Session, steps: Sequence[Json]) -> None:
    """What the steps say beyond the history (times of execution, states), at the calls that they belong to."""
    calls = [item.draft for item in session.spans if item.draft.kind == "LLM"]
    own = [draft for draft in calls if not draft.attributes.get("is_demo")]
    for draft, step in zip(own[-len(steps) :] if steps else [], steps, strict=False):
        if isinstance(step, dict):
            _add_step(draft, Fields(step))
    last = steps[-1] if steps else None
    if isinstance(last, dict) and isinstance(last.get("observation"), str) and _waits(session):
        session.result(None, as_text(last["observation"]), role="user")  # the history ends before it


def _add_step(draft: SpanDraft, fields: Fields) -> None:
    for name in ("query", "messages", "response", "thought", "action", "observation"):
        fields.take(name)
    draft.attributes.update(fields.rest("step."))
