"""The same story in every vendor's form: one trace with its id, its tree, messages, call of a tool and tokens."""

import json
from pathlib import Path

import pytest
from tests.ingest import chat_store_files, conversation_files, vendor_files
from tests.ingest import envelope_files as made
from tests.ingest.trail_files import read_all

from tracejury.ingest.leftovers import leftovers
from tracejury.ingest.readers import read_traces, reader_named
from tracejury.ingest.trace import Rejected, Trace

OUTSIDE = {"sentry": 1}
"""Spans of the web server around the story."""


@pytest.mark.parametrize("name", vendor_files.FILES)
def test_a_vendor_s_file_is_the_trace_with_all_that_it_says(name: str) -> None:
    (trace,) = read_all(vendor_files.FILES[name](), "story")
    assert isinstance(trace, Trace)
    assert (trace.trace_id, trace.goal, trace.final_answer) == (made.TRACE, made.GOAL, made.ANSWER)
    above = OUTSIDE.get(name, 0)
    spans = trace.spans[above:]
    assert [span.depth for span in spans] == [above, *[above + 1] * 3]
    call, tool, answer = spans[1:]
    assert [span.kind for span in (call, tool, answer)] == ["LLM", "TOOL", "LLM"]
    assert (tool.tool_name, tool.output) == ("tide", made.RESULT)
    assert str(tool.tool_arguments).replace(" ", "") == '{"port":"Brest"}'
    calls = trace.messages[call.output_messages[0]].tool_calls
    assert [one.name for one in calls] == ["tide"]
    assert [trace.messages[at].content for at in answer.output_messages] == [made.ANSWER]
    assert trace.messages[call.input_messages[0]].content == made.GOAL
    assert (call.model, call.total_tokens, answer.total_tokens) == (made.MODEL, 25, 35)
    assert (tool.start_time, tool.duration_s) == (made.START_US + 1_000_000, 1.0)
    assert not [warning for warning in trace.all_warnings if warning.startswith(("no_", "unread"))]


def test_files_of_a_vendor_and_of_the_collector_are_one_trace_together(tmp_path: Path) -> None:
    others = vendor_files.rows(vendor_files.newrelic_event)[1:]
    (tmp_path / "a.json").write_bytes(vendor_files.dumped({"results": [{"events": others}]}))
    (tmp_path / "b.json").write_bytes(vendor_files.dumped({"resourceSpans": made.groups()}))
    (trace,) = read_traces(tmp_path, merge=True)
    assert isinstance(trace, Trace)
    again = list(reader_named(trace.format).read(trace.source))
    assert [len(one.spans) for one in (trace, *again) if isinstance(one, Trace)] == [4, 4]


def test_text_in_columns_that_nobody_knows_is_shown_at_its_span() -> None:
    ids = {"traceId": made.TRACE, "spanId": "a" * 16, "parentSpanId": None}
    row = {**ids, "name": "step", "startTime": made.iso(made.AGENT)}
    told = {
        "acmeQuestion": made.GOAL,
        "notes": "The pilot read the table of the harbour twice before it gave any answer at all, as told.",
    }
    (trace,) = read_all(json.dumps([{**row, **told, "acmeId": "x-1"}]).encode(), "acme.json")
    assert isinstance(trace, Trace)
    shown = {leftover.name: leftover.text for leftover in leftovers(trace.spans[0])}
    assert shown == told


def test_a_row_beside_spans_that_is_none_is_rejected_by_its_place() -> None:
    value = [*vendor_files.rows(vendor_files.honeycomb), {"name": "lost", "Timestamp": made.iso(made.AGENT)}]
    refused, trace = read_all(json.dumps(value).encode(), "rows.json")
    assert isinstance(trace, Trace)
    assert isinstance(refused, Rejected)
    assert (refused.place, refused.reason) == ("row 4", "a row without trace id or span id")


def test_text_in_a_field_of_a_span_of_otlp_that_nobody_knows_is_shown_at_it() -> None:
    span = {**made.otlp_spans()[0], "acmeQuestion": made.GOAL, "acmeId": "x-1"}
    (trace,) = read_all(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode(), "acme.json")
    assert isinstance(trace, Trace)
    assert {one.name: one.text for one in leftovers(trace.spans[0])} == {"acme_question": made.GOAL}


@pytest.mark.parametrize(
    "value",
    [
        {"id": "1", "name": "a list of users", "created": "2026-01-01", "items": [{"id": "2", "name": "b"}]},
        {"traceId": made.TRACE, "message": "a log line", "time": "2026-01-01T00:00:00Z"},
        [
            {
                "trace_id": made.TRACE,
                "span_id": "a" * 16,
                "name": "app.log",
                "timestamp": 1.79e9,
                "message": "a log line",
            }
        ],
        {"data": [{"id": "1", "parentId": None, "name": "folder", "created": "2026-01-01"}]},
    ],
)
def test_records_without_the_ids_of_a_trace_and_a_span_are_no_spans(value: object) -> None:
    (refused,) = read_all(json.dumps(value).encode(), "records.json")
    assert isinstance(refused, Rejected)
    assert "--map" in refused.remedy


def test_the_help_names_the_tool_of_every_form_that_is_tested() -> None:
    page = (Path(vendor_files.__file__).parents[2] / "data/help/formats.md").read_text(encoding="utf-8")
    names = (*vendor_files.FILES, *chat_store_files.MADE, *conversation_files.FILES)
    tools = {name.removesuffix("'s names").split(",")[0].split()[0] for name in names}
    plain = page.lower().replace("-", "")
    assert [tool for tool in sorted(tools) if tool.replace("-", "").removesuffix("'s") not in plain] == []
