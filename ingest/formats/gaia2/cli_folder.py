"""A scenario folder of gaia2-cli: app events, model calls, the judge's word by turn, the result.

Written from the source of gaia2-cli (not on PyPI): its events hold successful calls only; those that the
daemon made carry an event id, those of the agent do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracejury.ingest.conventions.message_json import read_turn
from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.eventlog import completed_draft, note_asked
from tracejury.ingest.formats.gaia2.execution_outcome import status_of
from tracejury.ingest.formats.gaia2.export import Event
from tracejury.ingest.formats.gaia2.rows import Rows
from tracejury.ingest.formats.gaia2.values import kept, number, sequence, text, whole, without_empty, word
from tracejury.ingest.parse import inner_json, parse_documents
from tracejury.ingest.sniff import rejected
from tracejury.ingest.times import from_iso, from_seconds
from tracejury.ingest.trace import (
    ExpectedEvent,
    IngestError,
    Json,
    LogRecord,
    Outcome,
    Rejected,
    Source,
    SpanDraft,
    Trace,
)
from tracejury.ingest.tree import assemble

FILES = ("result.json", "events.jsonl", "trace.jsonl", "daemon_judgments.jsonl", "judgments.jsonl")
_EVENT_KEYS = frozenset({"t", "app", "fn", "args", "w", "ret", "event_id"})
_A_DAY_S = 86_400


@dataclass(slots=True)
class Folder:
    """What the files of one scenario hold; `place` names each line in messages."""

    result: dict[str, Json] = field(default_factory=dict)
    events: list[dict[str, Json]] = field(default_factory=list)
    calls: list[dict[str, Json]] = field(default_factory=list)
    judgments: list[dict[str, Json]] = field(default_factory=list)


def looks_like_result(value: Json) -> bool:
    return isinstance(value, dict) and {"scenario_id", "num_agent_events"} <= value.keys()


def looks_like_event(value: Json) -> bool:
    return isinstance(value, dict) and {"t", "app", "fn", "args"} <= value.keys()


def looks_like_call(value: Json) -> bool:
    return isinstance(value, dict) and value.get("type") == "llm_call" and "request" in value


def looks_like_judgment(value: Json) -> bool:
    return isinstance(value, dict) and {"agent_events", "oracle_events"} <= value.keys()


def is_cli(value: Json) -> bool:
    checks = (looks_like_result, looks_like_event, looks_like_call, looks_like_judgment)
    return any(check(value) for check in checks)


def read_cli(sources: Sequence[Source], source: Source, trace_id: str) -> Iterator[Trace | Rejected]:
    """The execution that the files of a folder tell of; a line that cannot be read is rejected by number."""
    folder = Folder()
    for part in sources:
        for document in parse_documents(part.data):
            try:
                if document.error is not None:
                    raise document.error
                _take(document.value, folder, document.place)
            except IngestError as error:
                yield rejected(part.file, error)
    try:
        yield _trace(folder, source, word(folder.result.get("scenario_id")) or trace_id)
    except IngestError as error:
        yield rejected(source.file, error)


def _take(value: Json, folder: Folder, place: str) -> None:
    if looks_like_result(value):
        folder.result = object_in(value)
    elif looks_like_event(value):
        folder.events.append(object_in(value))
    elif looks_like_call(value):
        folder.calls.append(object_in(value))
    elif looks_like_judgment(value):
        folder.judgments.append(object_in(value))
    else:
        raise IngestError("neither a result, an event, a model call nor a judgment", place=place, remedy="leave it out")


def _trace(folder: Folder, source: Source, trace_id: str) -> Trace:
    if not folder.events and not folder.calls:
        raise IngestError(
            f"scenario {trace_id} left neither events nor model calls: {_summary(folder.result)}",
            remedy="give the whole folder of the scenario (events.jsonl, trace.jsonl)",
        )
    rows = Rows(trace_id, "agent")
    warnings = _replay(folder, rows)
    rows.finish(None)
    result = _outcome(folder.result)
    rows.root.status, rows.root.status_message = status_of(result), result.exception_message
    answer = text(folder.result.get("agent_response"))
    shown = {"success", "failure_reasons", "error", "agent_response"}
    trace = assemble(
        rows.drafts,
        trace_id=trace_id,
        format="gaia2",
        source=source,
        messages=rows.messages,
        attributes=without_empty(
            {
                "form": "cli",
                "result": {key: kept(item) for key, item in folder.result.items() if key not in shown},
                "agent_response": answer if answer != rows.final_answer else None,
            }
        ),
        logs=[LogRecord(span_id=None, body=kept(judgment), holds_answer=True) for judgment in folder.judgments],
        expected_events=_expected(folder.judgments),
        outcome=result,
        warnings=warnings,
    )
    return replace(trace, goal=rows.goal, final_answer=rows.final_answer or answer)


def _replay(folder: Folder, rows: Rows) -> list[str]:
    """Events and model calls, by time where both have the same clock; else the calls first, below the execution."""
    events = [_event(raw) for raw in folder.events]
    calls = [_call(raw, number_, rows) for number_, raw in enumerate(folder.calls, start=1)]
    together = _same_clock(events, calls)
    if not together:
        for call in calls:
            rows.add(call, parent=rows.root)
    pending = calls if together else []
    for call in pending:
        call.clock = "sim"
    for number_, event in enumerate(events):
        moment = from_seconds(event.event_time)
        while pending and moment is not None and (pending[0].end_time or 0) <= moment:
            rows.add(pending.pop(0), parent=rows.open_turn())
        _add_event(event, rows, number_)
    for call in pending:
        rows.add(call, parent=rows.open_turn())
    if calls and events and not together:
        return ["clocks_apart: model calls and events use different clocks; which call caused which event is unknown"]
    return []


def _add_event(event: Event, rows: Rows, position: int) -> None:
    draft = completed_draft(event, agent=rows.main_agent, matched=frozenset(), number=position)
    if draft.kind == "EVENT":
        rows.add_event(draft, opens=note_asked(event, rows))
        return
    rows.add(draft, parent=rows.open_turn())
    if event.is_message_to_user:
        rows.end_turn(text(event.args.get("content")))


def _same_clock(events: Sequence[Event], calls: Sequence[SpanDraft]) -> bool:
    known = [event.event_time for event in events if event.event_time is not None]
    dated = [call.end_time / 1e6 for call in calls if call.end_time is not None]
    if not known or not dated:
        return False
    return min(known) - _A_DAY_S <= min(dated) and max(dated) <= max(known) + _A_DAY_S


def _event(raw: Mapping[str, Json]) -> Event:
    event_id, function = word(raw.get("event_id")), word(raw.get("fn"))
    kind = "USER" if function == "send_message_to_agent" else "AGENT" if event_id is None else "ENV"
    arguments = raw.get("args")
    return Event(
        event_id=event_id,
        event_type=kind,
        class_name=None,
        event_time=number(raw.get("t")),
        relative_time=None,
        comparator=None,
        depends_on=(),
        app=word(raw.get("app")),
        function=function,
        operation_type="WRITE" if raw.get("w") is True else "READ",
        action_id=None,
        args=arguments if isinstance(arguments, dict) else {"args": arguments},
        arg_types={},
        return_value=text(raw.get("ret")),
        return_value_type=None,
        exception=None,
        stack_trace=None,
        raw={key: item for key, item in raw.items() if key not in _EVENT_KEYS},
    )


def _call(raw: Mapping[str, Json], position: int, rows: Rows) -> SpanDraft:
    """A model call; `timestamp` is when it was logged, after the answer."""
    end, latency = from_iso(raw.get("timestamp")), number(raw.get("latency_ms"))
    request = object_in(raw.get("request"))
    status = whole(raw.get("http_status"))
    response = raw.get("response") if raw.get("response") is not None else raw.get("raw_response")
    answer = object_in(inner_json(response) if isinstance(response, str) else response)
    failed = response is None or (status is not None and status >= 400)
    shown = {"seq", "timestamp", "type", "request", "response", "raw_response"}
    draft = SpanDraft(
        span_id=f"llm-{text(raw.get('seq')) or position}",
        name="llm",
        kind="LLM",
        agent=rows.main_agent,
        start_time=None if end is None or latency is None else end - round(latency * 1e3),
        end_time=end,
        clock="wall",
        status="ERROR" if failed else "OK",
        status_message=f"HTTP status {status}" if failed and status is not None else None,
        model=word(request.get("model")) or word(answer.get("model")),
        input_messages=_sent(request, rows),
        attributes=without_empty({key: kept(item) for key, item in raw.items() if key not in shown}),
    )
    rest = {key: kept(item) for key, item in request.items() if key not in {"messages", "system", "model"}}
    draft.attributes |= without_empty({"request": rest})
    _answer(draft, answer, response, rows)
    return draft


def _sent(request: Mapping[str, Json], rows: Rows) -> list[int]:
    system = request.get("system")
    places = [] if system is None else [rows.messages.add("system", text(system))]
    return [*places, *(place for item in sequence(request.get("messages")) for place in _messages(item, rows))]


def _messages(item: Json, rows: Rows) -> Iterator[int]:
    turn = read_turn(item)
    if turn is None:
        yield rows.messages.add(None, text(item))
    for message in turn or ():
        place = rows.messages.place(message.message)
        if message.rest is not None:
            rows.note_message(place, {"rest": message.rest})
        yield place


def _answer(draft: SpanDraft, answer: Mapping[str, Json], response: Json, rows: Rows) -> None:
    """What came back: OpenAI's choices, Anthropic's content, gaia2-cli's own form; anything else as it is."""
    choice = object_in(next(iter(sequence(answer.get("choices"))), None))
    message: Json = choice.get("message") if choice else dict(answer) if "content" in answer else None
    rest = {key: item for key, item in answer.items() if key not in {"choices", "content", "tool_calls", "usage"}}
    if message is None:
        draft.output = text(response)
        if draft.status == "OK":
            draft.warnings.append("unparsed_response: the answer has an unknown form; kept as text")
    else:
        body = {"role": "assistant", **object_in(message)}
        message = {key: body[key] for key in body if key in {"role", "content", "tool_calls"}}
        draft.output_messages = list(_messages(message, rows))
        draft.attributes |= without_empty({"response": {**rest, **{k: v for k, v in choice.items() if k != "message"}}})
        beside = {
            k: v for k, v in object_in(choice.get("message")).items() if k not in {"role", "content", "tool_calls"}
        }
        draft.attributes |= without_empty({"response_message": beside})
    usage = object_in(answer.get("usage"))
    draft.prompt_tokens = whole(usage.get("prompt_tokens", usage.get("input_tokens")))
    draft.completion_tokens = whole(usage.get("completion_tokens", usage.get("output_tokens")))
    draft.total_tokens = whole(usage.get("total_tokens"))
    if usage and message is not None:
        draft.attributes["usage"] = kept(dict(usage))


def _expected(judgments: Sequence[Mapping[str, Json]]) -> list[ExpectedEvent]:
    """The oracle events that the judge compared; here it says itself which it matched."""
    events: dict[str, ExpectedEvent] = {}
    for judgment in judgments:
        matched = {text(item) for item in object_in(judgment.get("id_mapping")).values()}
        matched_by_id = {text(object_in(d).get("oracle_id")): object_in(d).get("matched") for d in _details(judgment)}
        for raw in sequence(judgment.get("oracle_events")):
            event = object_in(raw)
            event_id = text(event.get("id")) or f"oracle-{len(events)}"
            app, _, function = (text(event.get("tool")) or "").rpartition("__")
            verdict = matched_by_id.get(event_id)
            known = verdict if isinstance(verdict, bool) else None
            events[event_id] = ExpectedEvent(
                event_id=event_id,
                app=app or None,
                function=function or None,
                args=event.get("args", event.get("args_summary")),
                relative_time=None,
                event_time=None,
                comparator=None,
                depends_on=(),
                turn=whole(judgment.get("turn")),
                matched=True if event_id in matched else known,
            )
    return list(events.values())


def _details(judgment: Mapping[str, Json]) -> list[Json]:
    details = judgment.get("match_details")
    return list(details.values()) if isinstance(details, dict) else sequence(details)


def _outcome(result: Mapping[str, Json]) -> Outcome:
    success = result.get("success")
    reasons = [reason for item in sequence(result.get("failure_reasons")) if (reason := text(item))]
    error = text(result.get("error"))
    score = float(success) if isinstance(success, bool) else None
    timed_out = result.get("timed_out") is True
    reason = "the execution timed out" if timed_out else (error or "result.json says neither success nor failure")
    return Outcome(
        decision=None,
        score=score,
        reason=reason if score is None or timed_out else None,
        rationale="\n".join(reasons) or None,
        source="gaia2-cli",
        has_exception=error is not None,
        exception_message=error,
    )


def _summary(result: Mapping[str, Json]) -> str:
    if not result:
        return "no result.json either"
    return f"success {text(result.get('success'))}, error {text(result.get('error'))}"


def folder_name(file: str) -> str:
    """The scenario's folder, which gaia2-cli names after the scenario."""
    parts = re.split(r"[\\/]", file)
    return parts[-2] if len(parts) > 1 and parts[-2] else "scenario"
