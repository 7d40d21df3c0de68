"""ATIF, Harbor's trajectory format (terminal-bench and others): one JSON object with `schema_version` and `steps`."""

from __future__ import annotations

from collections.abc import Iterator

from tracejury.ingest.conventions.message_json import read_message
from tracejury.ingest.conventions.parts import arguments_text
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.spans import kept
from tracejury.ingest.formats.trajectory import Session, Usage, session_trace
from tracejury.ingest.parse import parse_documents
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, ToolCall, Trace

NAME = "atif"

_ROLES = {"user": "user", "system": "system"}


def sniff(sample: FileSample) -> bool:
    """`schema_version` of ATIF."""
    return "schema_version" in sample.keys and b"ATIF-v" in sample.data


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every trajectory of the file."""
    for document in parse_documents(source.data):
        try:
            if document.error is not None:
                raise document.error
            for value in document.value if isinstance(document.value, list) else [document.value]:
                yield _trace(value, document.place, source)
        except IngestError as error:
            yield rejected(source.file, error)


def _trace(value: Json, place: str, source: Source) -> Trace:
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        raise IngestError("an ATIF trajectory without a list `steps`", place=place, remedy="export it again")
    fields = Fields(value)
    trace_id = fields.text("sessionid") or fields.text("trajectoryid") or "unnamed"
    sessions = _sessions(fields, trace_id, None)
    attributes = {"schema_version": fields.take("schemaversion"), **fields.rest()}
    if trace_id == "unnamed":
        fields.warnings.append("no_trace_id: the trajectory has no session_id; called unnamed")
    return session_trace(
        sessions, trace_id=trace_id, format=NAME, source=source, attributes=attributes, warnings=fields.warnings
    )


def _sessions(fields: Fields, span_id: str, parent: str | None) -> list[Session]:
    """The agent of a trajectory, and those of the trajectories that stand in it."""
    named = fields.inner("agent")
    session = Session(span_id=span_id, agent=named.text("name") or "agent", parent=parent)
    model = named.text("modelname")
    session.root.attributes.update({f"agent.{key}": item for key, item in named.rest().items()})
    references: dict[str, str] = {}
    for step in fields.objects("steps", code="unreadable_span"):
        _step(session, step, model, references)
    sessions = [session]
    for number, sub_agent in enumerate(fields.objects("subagenttrajectories", code="unreadable_span")):
        own = sub_agent.text("trajectoryid") or sub_agent.text("sessionid") or f"{span_id}-{number + 1}"
        sessions += _sessions(sub_agent, f"{span_id}-{own}", references.get(own, span_id))
    return sessions


def _step(session: Session, fields: Fields, model: str | None, references: dict[str, str]) -> None:
    role, time = _ROLES.get(str(fields.peek("source"))), fields.time("timestamp")
    if fields.peek("source") in ("agent", *_ROLES):
        fields.drop("source")
    observation = fields.inner("observation")
    if role is not None:
        message = _message(role, fields.take("message"), None)
        number = fields.count("stepid")
        session.say(message, time=time, is_goal=role == "user")
        if rest := fields.rest():
            session.event(f"step {number}", rest, time)
    else:
        _answer(session, fields, time, model)
    for result in observation.listed("results"):
        _result(session, result, time, references)
    if rest := observation.rest():
        session.event("observation", rest, time)


def _message(role: str, content: Json, reasoning: str | None) -> Message:
    """A message with its parts; what the model thought stands before what it said."""
    parts: Json = content
    if reasoning:
        listed = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        parts = [{"type": "thinking", "thinking": reasoning}, *listed]
    turn = read_message({"role": role, "content": parts})
    return turn.message if turn is not None else Message(role, as_text(content))


def _answer(session: Session, fields: Fields, time: int | None, model: str | None) -> None:
    message = _message("assistant", fields.take("message"), fields.text("reasoningcontent"))
    calls = [
        ToolCall(call.text("functionname"), arguments_text(call.take("arguments")), call.text("toolcallid"))
        for call in fields.objects("toolcalls")
    ]
    metrics = fields.inner("metrics")
    usage = Usage(prompt=metrics.count("prompttokens"), completion=metrics.count("completiontokens"))
    own_model, step = fields.text("modelname") or model, fields.count("stepid")
    session.answer(
        Message("assistant", message.content, (*message.tool_calls, *calls), reasoning=message.reasoning),
        time=time, model=own_model, usage=usage,
        attributes={**metrics.rest("metrics."), **fields.rest()}, step=step,
        span_id=None if step is None else f"{session.span_id}-step-{step}",
    )  # fmt: skip


def _result(session: Session, result: Json, time: int | None, references: dict[str, str]) -> None:
    fields = Fields(result if isinstance(result, dict) else {"content": result})
    call, refs = fields.text("sourcecallid"), fields.listed("subagenttrajectoryref")
    content = _message("tool", fields.take("content"), None).content
    extra = {**fields.rest(), **({"subagent_trajectory_ref": kept(list(refs))} if refs else {})}
    if call is None and session.spans[-1].draft.kind != "TOOL":  # an observation that no tool call made
        session.say(Message("user", content), time=time)
        session.event("observation", extra, time) if extra else None
        return
    tool = session.result(call, content, time=time, attributes=extra)
    for ref in refs:
        ref_fields = Fields(ref)
        for name in (ref_fields.text("trajectoryid"), ref_fields.text("sessionid")):
            if name is not None:
                references[name] = tool.span_id
