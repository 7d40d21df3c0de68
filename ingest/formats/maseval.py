"""MASEval task reports: a list (or JSON lines) of executions with messages, model calls, tool invocations and verdicts.

Rows are the execution, its model calls and its tool invocations, all on the wall clock. MASEval logs only the length of
an answer: its text is found among the agent's messages, by how many messages the call was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracejury.ingest.conventions.message_json import ParsedMessage, read_turn
from tracejury.ingest.formats.fields import Fields, object_in
from tracejury.ingest.formats.gaia2.execution_outcome import JUDGE_RAISED, outcome_warnings, status_of
from tracejury.ingest.formats.gaia2.lite import unwrapped
from tracejury.ingest.formats.gaia2.setting import SETTING, maseval_setting
from tracejury.ingest.formats.gaia2.values import (
    kept,
    name_part,
    number,
    sequence,
    text,
    tokens,
    whole,
    without_empty,
    word,
)
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.parse import json_text, parse_documents
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.times import from_iso
from tracejury.ingest.trace import IngestError, Json, Message, Outcome, Rejected, Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble
from tracejury.ingest.words import counted

NAME = "maseval"
SCORED_STATUSES = frozenset({"success", "agent_error", "task_timeout"})
"""Report statuses that count in a score; in the others the infrastructure failed (MASEval 0.5.1, gaia2 evaluator)."""
_REJECTED = re.compile(r"(?s)ERROR:\n\*\*\*\n(.*?)\n\*\*\*")
_MESSAGE_TO_USER = "__send_message_to_user"
_COVERED = frozenset({"task_id", "repeat_idx", "status", "traces", "eval", "error"})


def sniff(sample: FileSample) -> bool:
    return {"task_id", "repeat_idx", "status"} <= sample.keys


def read(source: Source) -> Iterator[Trace | Rejected]:
    """The trace of each report: of an execution that never began its root alone, with status and reason."""
    for place, value, error in reports_in(source.data):
        try:
            if error is not None:
                raise error
            yield _trace(value, replace(source, place=place))
        except IngestError as failed:
            where = ", ".join(part for part in (place, failed.place) if part and part != place) or place
            yield rejected(source.file, IngestError(failed.reason, place=where, remedy=failed.remedy))


def reports_in(data: bytes) -> Iterator[tuple[str, Json, IngestError | None]]:
    """Every report of a file with its place: of one list, one object, or one per line."""
    for document in parse_documents(data):
        items = document.value if isinstance(document.value, list) else [document.value]
        for number_, item in enumerate(items):
            inside = f"[{number_}]" if isinstance(document.value, list) else ""
            yield f"{document.place}{inside}", item, document.error


def looks_like_report(value: Json) -> bool:
    return isinstance(value, dict) and {"task_id", "status"} <= value.keys()


@dataclass(slots=True)
class _Speaker:
    """The messages of one agent. `answers` are the places of what its model said, `system` of its system prompts,
    `starts` of each item of the report, which may hold several messages."""

    agent: str
    positions: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    system: list[int] = field(default_factory=list)
    rest: list[Json] = field(default_factory=list)

    def place_after(self, count: Json) -> int | None:
        """The place of what came after a call that was sent `count` messages: the system prompt, if kept apart, counts.

        None where the source does not count, or counts more messages than there are.
        """
        sent = whole(count)
        if sent is None:
            return None
        place = sent if self.system else sent - 1
        return self.starts[place] if 0 <= place < len(self.starts) else None


def _trace(value: Json, source: Source) -> Trace:
    if not looks_like_report(value):
        raise IngestError("not a MASEval report: it lacks task_id and status", remedy="leave it out")
    report = object_in(value)
    trace_id = report_id(report)
    outcome = report_outcome(report)
    fields = Fields(report, warnings=outcome_warnings(outcome))
    traces = fields.inner("traces")
    table = MessageTable()
    speakers = [_said(name, agent, table) for name, agent in traces.named("agents")]
    root = SpanDraft(span_id="execution", name=trace_id, kind="CHAIN", status=status_of(outcome))
    drafts = [*_calls(traces, speakers, table), *_tools(traces, speakers)]
    if not drafts and not any(one.positions for one in speakers):
        fields.warnings.append("no_trace: the execution left no trace; its status and score count")
    answers = _messages_to_user(drafts)
    goal = _goal(report, speakers, table.messages)
    root.input, root.output = goal, _final_answer(answers, drafts, speakers, table.messages)
    root.status_message = outcome.exception_message
    root.prompt_tokens, root.completion_tokens, root.total_tokens = _usage(report)
    _span(root, drafts, traces)
    trace = assemble(
        [root, *drafts],
        trace_id=trace_id,
        format=NAME,
        source=source,
        messages=table,
        attributes={SETTING: maseval_setting(report).to_json(), **_attributes(fields, traces, speakers)},
        outcome=outcome,
        warnings=fields.warnings,
    )
    return replace(trace, goal=goal, final_answer=root.output)


def report_id(report: Mapping[str, Json]) -> str:
    """The task's id with the repeat and the agent's model, where the report names them."""
    repeat, model = whole(report.get("repeat_idx")), name_part(maseval_setting(report).agent_model)
    parts = [text(report.get("task_id")) or "task", None if repeat is None else str(repeat), model]
    return "_".join(part for part in parts if part is not None)


def _usage(report: Mapping[str, Json]) -> list[int | None]:
    """The tokens of all its models' calls: MASEval counts them for the execution alone."""
    models = [object_in(model) for model in object_in(object_in(report.get("usage")).get("models")).values()]
    names = ("input_tokens", "output_tokens", "total_tokens")
    return tokens([sum(whole(model.get(name)) or 0 for model in models) for name in names])


def report_outcome(report: Mapping[str, Json]) -> Outcome:
    """The verdict of a report: score 1, 0, or None with its reason.

    Where the judge raised in the last turn MASEval itself counts 0 (rationale "Exception"): here there is no score.
    """
    status, error = text(report.get("status")), object_in(report.get("error"))
    entry = next((object_in(item) for item in sequence(report.get("eval")) if "gsr" in object_in(item)), None)
    rationale = None if entry is None else text(entry.get("rationale"))
    scored = entry is not None and status in SCORED_STATUSES and rationale != "Exception"
    score = number(entry.get("gsr")) if entry is not None and scored else None
    return Outcome(
        decision=None if entry is None else text(entry.get("status")),
        score=score,
        reason=None if score is not None else _why_unscored(status, entry),
        rationale=None if rationale == "None" else rationale,
        source="maseval",
        row_status=status,
        has_exception=report.get("error") is not None,
        exception_type=text(error.get("error_type")),
        exception_message=text(error.get("error_message")),
    )


def _why_unscored(status: str | None, entry: Mapping[str, Json] | None) -> str:
    if entry is None and status == "task_timeout":
        return "the task was ended at its time limit, so there is no verdict"
    if status not in SCORED_STATUSES or (entry is None and status != "success"):
        return f"status {status}: the task did not get as far as a verdict"
    if entry is None:
        return "the report holds no GAIA2 verdict"
    if text(entry.get("rationale")) == "Exception":
        return JUDGE_RAISED
    error = text(entry.get("error"))
    return f"verdict {text(entry.get('status'))}" + (f": {error}" if error else "")


def _said(name: str, agent: Fields, table: MessageTable) -> _Speaker:
    speaker = _Speaker(name)
    for item in agent.listed("messages"):
        speaker.starts.append(len(speaker.positions))
        for parsed in read_turn(item) or [ParsedMessage(Message(None, text(item)), None)]:
            position = table.place(parsed.message)
            if parsed.rest is not None:
                speaker.rest.append({"message": position, "rest": parsed.rest})
            if parsed.message.role == "assistant":
                speaker.answers.append(len(speaker.positions))
            elif parsed.message.role == "system":
                speaker.system.append(len(speaker.positions))
            speaker.positions.append(position)
    return speaker


def _calls(traces: Fields, speakers: Sequence[_Speaker], table: MessageTable) -> list[SpanDraft]:
    models = list(traces.named("models"))
    drafts = []
    for name, model in models:
        logs, model_id = list(model.objects("logs")), model.text("modelid")
        speaker = _speaker(name, logs, speakers, len(models), table)
        places = _places(name, logs, speaker, traces.warnings)
        for number_, log in enumerate(logs):
            draft = _call(f"{name}-{number_}", log, model_id)
            if speaker is not None:
                draft.agent = speaker.agent
                _give_messages(draft, places[number_], speaker, table)
            drafts.append(draft)
    return drafts


def _places(name: str, logs: Sequence[Fields], speaker: _Speaker | None, warnings: list[str]) -> list[int | None]:
    """Where among its agent's messages each call's answer stands: by the count of messages sent, else in order."""
    if speaker is None:
        return [None for _ in logs]
    if all(speaker.place_after(log.peek("messagecount")) is not None for log in logs if _succeeded(log)):
        return [speaker.place_after(log.peek("messagecount")) if _succeeded(log) else None for log in logs]
    succeeded = sum(_succeeded(log) for log in logs)
    if len(speaker.answers) != succeeded:
        warnings.append(
            f"answers_mismatch: {speaker.agent} has {counted(len(speaker.answers), 'answer')}, "
            f"{name} {counted(succeeded, 'call')} that succeeded; paired in order"
        )
    answers = iter(speaker.answers)
    return [next(answers, None) if _succeeded(log) else None for log in logs]


def _give_messages(draft: SpanDraft, place: int | None, speaker: _Speaker, table: MessageTable) -> None:
    """Give a call what it was sent and what came of it: an answer, or the error message that rejected the answer."""
    if place is None:
        return
    draft.input_messages = speaker.positions[:place]
    message = table.messages[speaker.positions[place]]
    if place in speaker.answers:
        draft.output_messages = [speaker.positions[place]]
    elif message.content and (rejection := _REJECTED.search(message.content)):
        length = whole(draft.attributes.get("response_length"))
        draft.output = rejection[1][-length:] if length else rejection[1]
        draft.warnings.append("answer_rejected: the agent could not read this answer; its error message holds the text")
    else:
        draft.warnings.append("no_answer: the message after this call is not the model's")


def _speaker(
    name: str, logs: Sequence[Fields], speakers: Sequence[_Speaker], models: int, table: MessageTable
) -> _Speaker | None:
    """Whose model this is: the only agent's, else the agent whose answers have the lengths that the calls logged."""
    if len(speakers) == 1 and models == 1:
        return speakers[0]
    lengths = [log.peek("responselength") for log in logs if _succeeded(log)]
    for one in speakers:
        if lengths == [len(table.messages[one.positions[place]].content or "") for place in one.answers]:
            return one
    return speakers[0] if len(speakers) == 1 and name == "agent_model" else None


def _succeeded(log: Fields) -> bool:
    return log.peek("status") == "success"


def _call(span_id: str, log: Fields, model: str | None) -> SpanDraft:
    """A model call. `timestamp` is when it began; times are local without a zone and read as UTC."""
    start, seconds = log.time("timestamp"), number(log.peek("durationseconds"))
    failed = not _succeeded(log)
    status = log.text("status")
    message = ": ".join(part for part in (log.text("errortype"), log.text("error")) if part)
    return SpanDraft(
        span_id=span_id,
        parent_span_id="execution",
        name="llm",
        kind="LLM",
        start_time=start,
        end_time=None if start is None or seconds is None else start + max(0, round(seconds * 1e6)),
        status="ERROR" if failed else "OK",
        status_message=(message or status) if failed else None,
        model=model,
        attributes=log.rest(),
    )


def _tools(traces: Fields, speakers: Sequence[_Speaker]) -> list[SpanDraft]:
    """Every invocation, in order of time; the source knows only one moment of each."""
    agent = speakers[0].agent if len(speakers) == 1 else None
    drafts = [
        _tool(name, position, item, agent)
        for group in (traces.inner("environment"), traces)
        for name, tool in group.named("tools")
        for position, item in enumerate(tool.objects("invocations"))
    ]
    return sorted(drafts, key=lambda draft: (draft.start_time is None, draft.start_time or 0))


def _tool(name: str, position: int, call: Fields, agent: str | None) -> SpanDraft:
    moment = call.time("timestamp")
    failed = call.word("status") != "success"
    outputs = text(call.take("outputs"))
    meta = without_empty(call.nested("meta"))
    if meta.get("wall_time") == call.raw.get("timestamp"):
        meta.pop("wall_time", None)
    return SpanDraft(
        span_id=call.text("id") or f"{name}-{position}",
        parent_span_id="execution",
        name=name,
        kind="TOOL",
        agent=agent,
        start_time=moment,
        end_time=moment,
        status="ERROR" if failed else "OK",
        status_message=outputs if failed else None,
        output=None if failed else outputs,
        tool_name=name,
        tool_arguments=json_text(call.take("inputs")),
        attributes={**call.rest(), **({"meta": kept(meta)} if meta else {})},
    )


def _messages_to_user(drafts: Sequence[SpanDraft]) -> list[SpanDraft]:
    return [d for d in drafts if d.status == "OK" and (d.tool_name or "").endswith(_MESSAGE_TO_USER)]


def _final_answer(
    answers: Sequence[SpanDraft], drafts: Sequence[SpanDraft], speakers: Sequence[_Speaker], messages: Sequence[Message]
) -> str | None:
    """The last message to the user; where the task has no such tool, the last thing the only agent said."""
    if answers:
        for document in parse_documents((answers[-1].tool_arguments or "").encode()):
            return text(object_in(document.value).get("content"))
    if any((draft.tool_name or "").endswith(_MESSAGE_TO_USER) for draft in drafts) or len(speakers) != 1:
        return None
    last = [messages[speakers[0].positions[place]].content for place in speakers[0].answers]
    return last[-1] if last else None


def _goal(report: Mapping[str, Json], speakers: Sequence[_Speaker], messages: Sequence[Message]) -> str | None:
    """The task as the agent got it, else the query of the task."""
    for one in speakers:
        for position in one.positions:
            message = messages[position]
            if message.role == "user" and message.content:
                kind, body = unwrapped("user", message.content)
                return body if kind == "task" else message.content
    return word(object_in(report.get("task")).get("query"))


def _span(root: SpanDraft, drafts: Sequence[SpanDraft], traces: Fields) -> None:
    times = [time for draft in drafts for time in (draft.start_time, draft.end_time) if time is not None]
    gathered = from_iso(object_in(traces.peek("metadata")).get("timestamp"))
    times += [] if times or gathered is None else [gathered]
    if times:
        root.start_time, root.end_time = min(times), max(times)


def _attributes(fields: Fields, traces: Fields, speakers: Sequence[_Speaker]) -> dict[str, Json]:
    """All of a report that is no row, no message and no outcome."""
    report = fields.raw
    task = object_in(object_in(report.get("task")).get("metadata"))
    environment = object_in(traces.raw.get("environment"))
    capability = word(environment.get("capability")) or word(task.get("capability"))
    rest = {key: item for key, item in report.items() if key not in _COVERED}
    error = fields.nested("error")
    return without_empty(
        {
            "capability": capability,
            "repeat_idx": report.get("repeat_idx"),
            "task_id": report.get("task_id"),
            **rest,
            "error": without_empty({k: v for k, v in error.items() if k not in {"error_type", "error_message"}}),
            "eval": [kept(item) for item in fields.listed("eval")],
            "traces": _rest_of_traces(traces.raw),
            "message_rest": [item for one in speakers for item in one.rest],
        }
    )


def _rest_of_traces(traces: Mapping[str, Json]) -> dict[str, Json]:
    rest = {key: kept(item) for key, item in traces.items() if key not in {"agents", "models", "tools", "environment"}}
    environment = object_in(traces.get("environment"))
    rest["agents"] = _without(object_in(traces.get("agents")), "messages")
    rest["models"] = _without(object_in(traces.get("models")), "logs")
    rest["tools"] = _without(object_in(traces.get("tools")), "invocations")
    if environment:
        tools = _without(object_in(environment.get("tools")), "invocations")
        rest["environment"] = without_empty({**environment, "tools": tools})
    return without_empty(rest)


def _without(components: Mapping[str, Json], key: str) -> dict[str, Json]:
    return {
        name: without_empty({k: v for k, v in item.items() if k != key or not isinstance(v, list)})
        if isinstance(item, dict)
        else kept(item)
        for name, item in components.items()
    }
