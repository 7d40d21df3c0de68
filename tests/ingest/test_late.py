"""One trace in several files: read together, or one after another into a workspace, in any order."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from tests.build import error_label, workspace
from tests.ingest import envelope_files as made

from tracejury.ingest import batch, check, inbox
from tracejury.ingest.batch import Report
from tracejury.ingest.readers import read_bytes, read_together
from tracejury.ingest.store import load, read_transaction, write_transaction
from tracejury.ingest.trace import LooseLogs, Trace
from tracejury.judging.integrity import check_opinions
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.records import Evidence
from tracejury.judging.store import Workspace

BARE = ("gen_ai.input.messages", "gen_ai.output.messages")
MESSAGES = {"gen_ai.user.message": {"content": made.GOAL}, "gen_ai.choice": {"message": {"content": made.ANSWER}}}


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    return workspace(tmp_path)


def request(spans: list[dict[str, Any]]) -> bytes:
    return made.dumped({"resourceSpans": [{"resource": made.RESOURCE, "scopeSpans": [{"spans": spans}]}]})


def some(*span_ids: str, **changed: Any) -> bytes:
    return request([{**span, **changed} for span in made.otlp_spans() if span["spanId"] in span_ids])


def without_messages() -> bytes:
    spans = made.otlp_spans()
    for span in spans:
        span["attributes"] = [item for item in span["attributes"] if item["key"] not in BARE]
    return request(spans)


def logs() -> bytes:
    start = made.us(made.ANSWER_CALL, 0) * 1000
    records = [
        {"traceId": made.TRACE, "spanId": made.ANSWER_CALL, "timeUnixNano": str(start + n),
         "eventName": name, "body": {"kvlistValue": {"values": [
             {"key": key, "value": {"stringValue": item} if isinstance(item, str) else
              {"kvlistValue": {"values": [{"key": k, "value": {"stringValue": v}} for k, v in item.items()]}}}
             for key, item in body.items()]}}}
        for n, (name, body) in enumerate(MESSAGES.items())
    ]  # fmt: skip
    return made.dumped({"resourceLogs": [{"resource": made.RESOURCE, "scopeLogs": [{"logRecords": records}]}]})


def sdk_logs() -> bytes:
    return made.lines([
        {"trace_id": "0x" + made.TRACE, "span_id": "0x" + made.ANSWER_CALL, "event_name": name, "body": body,
         "timestamp": made.iso(made.ANSWER_CALL), "severity_number": 9, "observed_timestamp": ""}
        for name, body in MESSAGES.items()
    ])  # fmt: skip


def written(folder: Path, **files: bytes) -> list[Path]:
    for name, data in files.items():
        (folder / f"{name}.json").write_bytes(data)
    return [folder / f"{name}.json" for name in files]


def ingest(opened: Workspace, *paths: Path, **options: Any) -> Report:
    return batch.ingest(opened.engine, paths, **options)


def stored(opened: Workspace, trace_id: str = made.TRACE) -> Trace:
    with read_transaction(opened.engine) as connection:
        return load(connection, trace_id)


def faults(opened: Workspace) -> list[str]:
    """What a check of the workspace finds of this trace: its bytes, read again, must give it."""
    return [one.problem for one in check.check_store(opened.engine) if made.TRACE in one.subject]


def said(trace: Trace) -> list[str | None]:
    return [message.content for message in trace.messages]


def begun_and_ended() -> tuple[bytes, bytes]:
    begun = some(made.AGENT, endTimeUnixNano=str(made.us(made.AGENT, 0) * 1000), attributes=[
        {"key": "logfire.span_type", "value": {"stringValue": "pending_span"}},
        {"key": "gen_ai.agent.name", "value": {"stringValue": "pilot"}},
        {"key": "step", "value": {"stringValue": "first"}},
    ])  # fmt: skip
    ended = some(made.AGENT, made.CALL, status={"code": 2, "message": "gave up"})
    return begun, ended


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_start_and_the_end_of_a_span_become_one_with_merge(order: tuple[int, int], tmp_path: Path) -> None:
    parts = begun_and_ended()
    paths = written(tmp_path, a=parts[order[0]], b=parts[order[1]])
    (trace,) = read_together(paths)
    assert isinstance(trace, Trace)
    assert [(span.span_id, span.depth, span.status) for span in trace.spans] == [
        (made.AGENT, 0, "ERROR"), (made.CALL, 1, "ERROR"),
    ]  # fmt: skip
    assert trace.spans[0].end_time == made.us(made.AGENT, 1)
    assert trace.spans[0].attributes["step"] == "first"
    assert "logfire.span_type" not in trace.spans[0].attributes
    assert [warning.split(":")[0] for warning in trace.warnings] == ["span_completed"]


def test_what_differs_between_start_and_end_is_kept_and_warned_of(tmp_path: Path) -> None:
    step = [{"key": "step", "value": {"stringValue": "last"}}]
    paths = written(tmp_path, a=begun_and_ended()[0], b=some(made.AGENT, attributes=step))
    (trace,) = read_together(paths)
    assert isinstance(trace, Trace)
    (span,) = trace.spans
    assert (span.attributes["step"], span.attributes["tracejury.earlier.step"]) == ("last", "first")
    assert span.warnings == ("span_differs: sent twice with other values of step",)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_span_that_one_file_tells_with_two_ends_is_the_one_that_ended_later(order: tuple[int, int]) -> None:
    first, last = (made.us(made.AGENT, 0) + 7, made.us(made.AGENT, 1))
    spans = [
        {**span, "endTimeUnixNano": str(end * 1000), "status": {"code": code}, "attributes": [
            {"key": "step", "value": {"stringValue": step}}, {"key": alone, "value": {"stringValue": "told once"}},
        ]}
        for end, code, step, alone in ((first, 2, "first", "a"), (last, 1, "last", "b"))
        for span in made.otlp_spans() if span["spanId"] == made.AGENT
    ]  # fmt: skip
    (trace,) = read_bytes(request([spans[n] for n in order]), file="twice.json")
    assert isinstance(trace, Trace)
    (span,) = trace.spans
    assert (span.span_id, span.end_time, span.status) == (made.AGENT, last, "OK")
    assert {name: span.attributes[name] for name in ("step", "a", "b")} == {
        "step": "last", "a": "told once", "b": "told once"
    }  # fmt: skip
    earlier = {name: value for name, value in span.attributes.items() if name.startswith("tracejury.earlier.")}
    assert earlier == {
        "tracejury.earlier.step": "first",
        "tracejury.earlier.end_time_us": first,
        "tracejury.earlier.status": "ERROR",
    }
    assert span.warnings == ("span_differs: sent twice with other values of end_time_us, status, step",)
    assert trace.warnings[0].startswith("span_completed: ")


def test_a_pending_span_of_its_own_id_is_the_span_that_it_names(tmp_path: Path) -> None:
    begun = some(made.AGENT, spanId="aa" * 8, parentSpanId=made.AGENT, attributes=[
        {"key": "logfire.span_type", "value": {"stringValue": "pending_span"}},
        {"key": "logfire.pending_parent_id", "value": {"stringValue": "0" * 16}},
    ])  # fmt: skip
    (trace,) = read_together(written(tmp_path, a=begun, b=some(made.AGENT, made.CALL)))
    (alone,) = read_together(written(tmp_path, a=begun))
    assert isinstance(trace, Trace)
    assert isinstance(alone, Trace)
    assert [(span.span_id, span.parent_span_id) for span in trace.spans] == [
        (made.AGENT, None),
        (made.CALL, made.AGENT),
    ]
    assert [(span.span_id, span.parent_span_id, span.end_time) for span in alone.spans] == [(made.AGENT, None, None)]


def test_two_different_spans_of_one_id_stay_two(tmp_path: Path) -> None:
    other = some(made.CALL, name="another", startTimeUnixNano=str(made.us(made.TOOL, 0) * 1000))
    (trace,) = read_together(written(tmp_path, a=some(made.AGENT, made.CALL), b=other))
    assert isinstance(trace, Trace)
    assert [span.span_id for span in trace.spans] == [made.AGENT, made.CALL, f"{made.CALL}#2"]


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_files_complete_a_trace_in_any_order(
    order: tuple[int, ...], merge: bool, opened: Workspace, tmp_path: Path
) -> None:
    parts = [some(made.AGENT, made.CALL), some(made.TOOL), some(made.ANSWER_CALL)]
    paths = written(tmp_path, **{f"p{place}": parts[place] for place in order})
    report = ingest(opened, *paths, merge=merge)
    trace = stored(opened)
    assert report.rejected == []
    assert [span.span_id for span in trace.spans] == list(made.SPANS)
    assert (trace.goal, trace.final_answer, len(report.completed)) == (made.GOAL, made.ANSWER, 0 if merge else 2)
    assert faults(opened) == []


def test_a_late_file_says_what_it_added(opened: Workspace, tmp_path: Path) -> None:
    first, late = written(tmp_path, first=some(made.AGENT, made.CALL), late=some(made.TOOL, made.ANSWER_CALL))
    ingest(opened, first)
    report = ingest(opened, late)
    assert report.completed == [
        f"trace {made.TRACE} was stored earlier and is now completed by {late}: 2 spans and 2 messages added"
    ]
    assert (report.traces, report.duplicates) == (0, 0)
    assert any(warning.startswith("completed_later: ") for warning in stored(opened).warnings)


def test_labels_stay_on_their_spans_and_words_when_a_trace_grows(opened: Workspace, tmp_path: Path) -> None:
    late, first = written(tmp_path, late=some(made.AGENT, made.CALL), first=some(made.TOOL, made.ANSWER_CALL))
    ingest(opened, first)  # what the model was asked first comes second
    place = said(stored(opened)).index(made.ANSWER)
    evidence = Evidence(quote=made.ANSWER, span_id=made.ANSWER_CALL, field=f"message:{place}", start=0, end=9)
    label = error_label(trace_id=made.TRACE, span_ids=(made.ANSWER_CALL,), evidence=(evidence,))
    with write_transaction(opened.engine) as connection:
        put_labels(connection, author="test", keeps_edits=True, errors=[label], scores=[], reviews=[])
    assert ingest(opened, late).completed
    assert said(stored(opened))[place] == made.ANSWER
    assert [one.problem for one in check_opinions(opened.engine)] == []
    assert faults(opened) == []


def test_a_file_that_holds_less_is_a_duplicate(opened: Workspace, tmp_path: Path) -> None:
    whole, less = written(tmp_path, whole=some(*made.SPANS), less=some(made.CALL))
    ingest(opened, whole)
    report = ingest(opened, less, less)
    assert (report.duplicates, report.completed, report.rejected) == (2, [], [])


def test_a_file_that_contradicts_what_is_stored_is_rejected(opened: Workspace, tmp_path: Path) -> None:
    first, late = written(tmp_path, first=some(made.AGENT), late=some(made.AGENT, made.CALL, name="another"))
    ingest(opened, first)
    (rejected,) = ingest(opened, late).rejected
    assert f"span {made.AGENT} differs" in rejected.reason
    assert [span.name for span in stored(opened).spans] == [made.NAMES[made.AGENT]]


@pytest.mark.parametrize("make", [logs, sdk_logs], ids=["otlp", "sdk"])
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("first", ["logs", "spans"])
def test_log_records_in_a_file_of_their_own_complete_their_trace(
    first: str, merge: bool, make: Any, opened: Workspace, tmp_path: Path
) -> None:
    files = {"logs": make(), "spans": without_messages()}
    paths = written(tmp_path, **{name: files[name] for name in sorted(files, reverse=first == "spans")})
    report = ingest(opened, *paths, merge=merge)
    assert report.rejected == []
    assert said(stored(opened)) == [made.GOAL, made.ANSWER]
    assert faults(opened) == []


def test_log_records_wait_for_their_spans_and_say_so(opened: Workspace, tmp_path: Path) -> None:
    late, spans = written(tmp_path, late=logs(), spans=without_messages())
    report = ingest(opened, late, late)
    assert report.waiting[0] == f"{late}: log records are kept until the spans of trace {made.TRACE} arrive"
    assert (report.rejected, report.traces) == ([], 0)
    report = ingest(opened, spans)
    assert report.completed == [
        f"trace {made.TRACE} was stored earlier and is now completed by log records of {made.TRACE}: 2 messages added"
    ]


def test_a_trace_whose_messages_stand_elsewhere_has_none_until_they_come(opened: Workspace, tmp_path: Path) -> None:
    spans, late = written(tmp_path, spans=without_messages(), late=logs())
    ingest(opened, spans)
    assert said(stored(opened)) == []
    ingest(opened, late)
    assert said(stored(opened)) == [made.GOAL, made.ANSWER]


def test_log_records_alone_name_their_traces_outside_of_a_workspace(tmp_path: Path) -> None:
    (loose,) = read_together(written(tmp_path, logs=logs()))
    assert isinstance(loose, LooseLogs)
    assert [trace_id for trace_id, _ in loose.requests] == [made.TRACE]
    assert "holds log records but no span: 2 of trace" in loose.reason


def test_waiting_log_records_are_masked(opened: Workspace, tmp_path: Path) -> None:
    pytest.importorskip("detect_secrets")
    secret = logs().replace(made.GOAL.encode(), b"mail ada@example.org")
    late, spans = written(tmp_path, late=secret, spans=without_messages())
    ingest(opened, late, redact=True)
    ingest(opened, spans, redact=True)
    assert said(stored(opened)) == ["mail [redacted: e-mail address]", made.ANSWER]


def test_spans_over_http_complete_a_trace_that_came_as_a_file(opened: Workspace, tmp_path: Path) -> None:
    ingest(opened, *written(tmp_path, first=some(made.AGENT, made.CALL)))
    inbox.receive(opened.engine, some(made.TOOL), signal="traces", is_protobuf=False)
    inbox.receive(opened.engine, some(made.ANSWER_CALL), signal="traces", is_protobuf=False)
    assert [span.span_id for span in stored(opened).spans] == list(made.SPANS)


def test_a_file_completes_a_trace_that_came_over_http(opened: Workspace, tmp_path: Path) -> None:
    inbox.receive(opened.engine, some(made.AGENT, made.CALL), signal="traces", is_protobuf=False)
    ingest(opened, *written(tmp_path, late=some(made.TOOL)))
    inbox.receive(opened.engine, some(made.ANSWER_CALL), signal="traces", is_protobuf=False)
    assert [span.span_id for span in stored(opened).spans] == list(made.SPANS)


def test_observations_of_langfuse_complete_their_trace(opened: Workspace, tmp_path: Path) -> None:
    rows = made.langfuse_observations()
    paths = written(tmp_path, a=json.dumps(rows[:2]).encode(), b=json.dumps(rows[2:]).encode())
    report = ingest(opened, *paths)
    assert ([span.span_id for span in stored(opened).spans], report.rejected) == (list(made.SPANS), [])
