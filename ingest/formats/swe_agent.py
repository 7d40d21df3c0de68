"""SWE-agent (`.traj`) and mini-swe-agent (`.traj.json`): the messages of one trace, with its outcome.

SWE-agent keeps `history` and `trajectory` (a step each), mini-swe-agent `messages`. Neither says when a step was made
unless its messages hold a `timestamp`; the submission is the final answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tracejury.ingest.conventions.message_json import content_text, message_of, unread_of
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.spans import kept
from tracejury.ingest.formats.trajectory import Session, Usage, one_answer, session_trace
from tracejury.ingest.parse import parse_documents
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.times import integer
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, ToolCall, Trace

NAME = "swe_agent"

_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n?```", re.DOTALL)
_FAILED = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")


def sniff(sample: FileSample) -> bool:
    """`trajectory` with `history` or steps of an action and an observation, or mini-swe-agent's own mark."""
    keys = sample.keys
    steps = "trajectory" in keys and {"action", "observation", "response"} <= keys
    mini = (
        "trajectory_format" in keys or {"mini_version", "exit_status"} <= keys or {"model_stats", "exit_status"} <= keys
    )
    return steps or (mini and "messages" in keys) or ({"trajectory", "history", "info"} <= keys)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trace of the file."""
    for document in parse_documents(source.data):
        try:
            if document.error is not None:
                raise document.error
            yield _trace(document.value, document.place, source)
        except IngestError as error:
            yield rejected(source.file, error)


def _trace(value: Json, place: str, source: Source) -> Trace:
    fields = Fields(value)
    history = list(fields.objects("messages", "history", code="unreadable_span"))
    steps = list(fields.objects("trajectory", code="unreadable_span"))
    if not history and not steps:
        raise IngestError("a trace without messages", place=place, remedy="give the whole trajectory file")
    info_fields = fields.nested("info")
    info = Fields(info_fields, "info", fields.warnings)
    trace_id = fields.text("instanceid") or as_text(info.peek("instanceid")) or _stem(source.file)
    is_mini = info.peek("miniversion") is not None or fields.peek("trajectoryformat") is not None
    session = Session(span_id=trace_id, agent="mini-swe-agent" if is_mini else "swe-agent")
    if history:
        _tell(session, history, _model(info))
        _add_steps(session, steps)
    else:
        _tell_steps(session, steps)
    session.root.attributes.update(Fields(info.peek("modelstats") or {}).rest("model_stats."))
    attributes = {**fields.rest(), **{f"info.{key}": kept(item) for key, item in info_fields.items()}}
    return session_trace(
        [session], trace_id=trace_id, format=NAME, source=source, attributes=attributes,
        final_answer=as_text(info.peek("submission")) or None, warnings=fields.warnings,
    )  # fmt: skip


def _model(info: Fields) -> str | None:
    config = Fields(info.peek("config") or {})
    return Fields(config.peek("model") or {}).text("modelname")


def _stem(file: str) -> str:
    """The trace's name, which is the file's: `<instance>.traj.json`."""
    return file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".json").removesuffix(".traj") or "unnamed"


def _tell(session: Session, history: Sequence[Fields], model: str | None) -> None:
    """Each message in order: what a model said, what its tools gave back, and everything else that it got."""
    for item in history:
        extra = item.inner("extra")
        times = (one.time("timestamp", "createdat") for one in (extra, item))
        time = next((time for time in times if time is not None), None)
        if item.peek("object") == "response":
            _response(session, item, extra, time, model)
        elif item.peek("role") == "assistant":
            _answer(session, item, extra, time, model)
        else:
            _given(session, item, extra, time)


def _given(session: Session, item: Fields, extra: Fields, time: int | None) -> None:
    role, text = item.text("role"), content_text(item.take("content", "output"))
    calls = item.listed("toolcallids")
    call_id = item.text("toolcallid", "callid") or (as_text(calls[0]) if calls else None)
    is_result = role == "tool" or item.peek("type") == "function_call_output"
    code = extra.count("returncode")
    match = _FAILED.search(text or "")
    code = integer(match[1]) if code is None and match is not None else code
    kept_fields = ("agent", "is_demo", "cache_control")
    rest = {**{key: value for key, value in item.rest().items() if key in kept_fields and value}, **extra.rest()}
    if is_result or (role in ("user", "exit") and _waits(session)):
        session.result(call_id, text, time=time, failed=bool(code), status_message=f"exit code {code}", attributes=rest,
                       role="tool" if role == "tool" or role is None else role)  # fmt: skip
        return
    session.say(Message(role, text), time=time, is_goal=not item.flag("isdemo"))
    if role == "exit" or rest:
        session.event(item.text("messagetype") or role or "message", rest, time)


def _waits(session: Session) -> bool:
    """Whether the last tool call has no result yet."""
    last = session.spans[-1].draft
    return last.kind == "TOOL" and last.output is None


def _answer(session: Session, item: Fields, extra: Fields, time: int | None, model: str | None) -> None:
    names = {"role": "role", "content": "content", "tool_calls": "toolcalls"}
    turn = message_of({key: value for key, name in names.items() if (value := item.take(name)) is not None})
    message = turn.message
    calls = message.tool_calls or _actions(item, extra, message.content)
    response = extra.inner("response")
    usage, own_model = _usage(response), response.text("model")
    rest = {
        **{key: value for key, value in {**item.rest(), **unread_of(turn)}.items() if value},
        **extra.rest("extra."),
    }
    response.listed("choices")  # the message again
    rest.update(response.rest("response."))
    answer = Message("assistant", message.content, tuple(calls), reasoning=message.reasoning)
    session.answer(answer, time=time, model=own_model or model, usage=usage, attributes=rest)


def _response(session: Session, item: Fields, extra: Fields, time: int | None, model: str | None) -> None:
    """An answer of the Responses API as it came: its items are one call of the model."""
    item.drop("object")
    message = one_answer([message_of(one.raw).message for one in item.objects("output")])
    session.answer(message, time=time, model=item.text("model") or model, usage=_usage(item),
                   attributes={**item.rest("response."), **extra.rest("extra.")})  # fmt: skip


def _usage(response: Fields) -> Usage:
    counts = response.inner("usage")
    prompt, completion = counts.count("prompttokens", "inputtokens"), counts.count("completiontokens", "outputtokens")
    return Usage(prompt=prompt, completion=completion, total=counts.count("totaltokens"))


def _actions(item: Fields, extra: Fields, text: str | None) -> list[ToolCall]:
    """The commands of an answer without tool calls: as the file lists them, or the one block of bash in its text."""
    listed = [one.get("command") if isinstance(one, dict) else one for one in extra.listed("actions")]
    commands = listed or [item.peek("action")]
    blocks = _BLOCK.findall(text or "")
    if not any(commands) and len(blocks) == 1:
        commands = blocks
    return [ToolCall("bash", command, None) for command in commands if isinstance(command, str) and command.strip()]


def _tell_steps(session: Session, steps: Sequence[Fields]) -> None:
    """A trace without history: each step is an answer, its action and what came of it."""
    for number, step in enumerate(steps):
        query = [message_of(one.raw).message for one in step.objects("query", "messages")]
        if query:
            session.forget()
            session.say(*query, is_goal=True)
        action, text = step.text("action"), step.text("response", "thought")
        calls = (ToolCall("bash", action, None),) if action else ()
        observation = step.text("observation")
        session.answer(Message("assistant", text, calls), attributes=step.rest(), step=number)
        if calls:
            session.result(None, observation, role="user")


def _add_steps(session: Session, steps: Sequence[Fields]) -> None:
    """What the steps say beyond the history (times of execution, states), at the calls that they belong to."""
    calls = [item.draft for item in session.spans if item.draft.kind == "LLM"]
    own = [draft for draft in calls if not draft.attributes.get("is_demo")]
    if steps and _waits(session) and (observation := steps[-1].word("observation")):
        session.result(None, observation, role="user")  # the history ends before it
    for draft, step in zip(own[-len(steps) :] if steps else [], steps, strict=False):
        for name in ("response", "thought", "action", "observation"):
            step.word(name)  # each of them says again what the history says
        step.listed("query", "messages")
        draft.attributes.update(step.rest("step."))
