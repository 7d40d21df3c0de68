"""One story in every envelope that tools wrap their spans in: the same spans, messages, tokens, goal and answer."""

from __future__ import annotations

import json
from collections.abc import Callable

import pandas as pd
import pytest
from tests.ingest import envelope_files as made
from tests.ingest.trail_files import read_all

from tracejury.ingest.trace import Trace

Make = Callable[[], bytes]

OTLP: dict[str, tuple[str, Make]] = {
    "tempo batches": ("otlp", lambda: made.dumped({"batches": made.groups(base_64=True)})),
    "tempo trace": ("otlp", lambda: made.dumped({"trace": {"resourceSpans": made.groups(base_64=True)}})),
    "tempo trace of batches": ("otlp", lambda: made.dumped({"trace": {"batches": made.groups()}})),
    "jaeger result": ("otlp", lambda: made.dumped({"result": {"resourceSpans": made.groups()}})),
    "flat spans, lines": ("otlp", lambda: made.lines(made.flat_spans())),
    "flat spans, array": ("otlp", lambda: made.dumped(made.flat_spans())),
    "flat spans, indented one after another": (
        "otlp", lambda: "\n".join(json.dumps(span, indent=1) for span in made.flat_spans()).encode(),
    ),
    "cloudwatch events": ("otlp", lambda: made.dumped(made.cloudwatch_events())),
    "cloudwatch insights": ("otlp", lambda: made.dumped(made.cloudwatch_results())),
    "jaeger": ("jaeger", lambda: made.dumped(made.jaeger())),
    "jaeger trace": ("jaeger", lambda: made.dumped(made.jaeger()["data"][0])),
    "zipkin": ("zipkin", lambda: made.dumped(made.zipkin())),
    "zipkin traces": ("zipkin", lambda: made.dumped([made.zipkin()])),
    "js sdk": ("otel_js", made.js_spans),
    "js sdk printed": ("otel_js", lambda: made.lines(made.js_printed())),
    "logfire rows": ("span_table", lambda: made.dumped({"rows": made.logfire_rows()})),
    "logfire array": ("span_table", lambda: made.dumped(made.logfire_rows())),
    "logfire lines": ("span_table", lambda: made.lines(made.logfire_rows())),
    "logfire columns": ("span_table", lambda: made.dumped(made.logfire_columns())),
    "logfire csv": (
        "span_table",
        lambda: pd.DataFrame([
            {**row, "attributes": json.dumps(row["attributes"])} for row in made.logfire_rows()
        ]).to_csv(index=False).encode(),
    ),
    "clickhouse lines": ("span_table", lambda: made.lines(made.clickhouse_rows())),
    "clickhouse parquet": ("span_table", lambda: bytes(pd.DataFrame(made.clickhouse_rows()).to_parquet())),
    "otlp parquet": ("span_table", made.otlp_parquet),
    "arrow file": ("span_table", lambda: made.arrow(stream=False)),
    "arrow stream": ("span_table", lambda: made.arrow(stream=True)),
}  # fmt: skip
"""Spans whose attributes speak in OpenTelemetry's words."""

OBSERVATIONS = made.langfuse_observations
OWN: dict[str, tuple[str, Make]] = {
    "langfuse api trace": ("langfuse", lambda: made.dumped(made.langfuse_trace(observations=OBSERVATIONS()))),
    "langfuse ui download": (
        "langfuse",
        lambda: made.dumped({"trace": made.langfuse_trace(), "observations": OBSERVATIONS(as_text=1)}),
    ),
    "langfuse ui download, listed twice": (
        "langfuse",
        lambda: made.dumped({
            "trace": made.langfuse_trace(observations=OBSERVATIONS(as_text=2)), "observations": OBSERVATIONS(as_text=2),
        }),
    ),
    "langfuse traces and observations": (
        "langfuse", lambda: made.dumped({"traces": [made.langfuse_trace()], "observations": OBSERVATIONS()}),
    ),
    "langfuse api v1 page": (
        "langfuse", lambda: made.dumped({"data": OBSERVATIONS(), "meta": {"page": 1, "totalItems": 4}}),
    ),
    "langfuse api v2 page": (
        "langfuse", lambda: made.dumped({"data": OBSERVATIONS(as_text=1), "meta": {"cursor": None}}),
    ),
    "langfuse observations csv": ("langfuse", made.langfuse_csv),
    "langfuse blob lines": ("langfuse", lambda: made.lines(made.langfuse_blob())),
    "langsmith array": ("langsmith", lambda: made.dumped(made.langsmith_runs())),
    "langsmith lines": ("langsmith", lambda: made.lines(made.langsmith_runs())),
    "langsmith answer": ("langsmith", lambda: made.dumped({"runs": made.langsmith_runs(), "cursors": {}})),
    "langsmith parquet": ("langsmith", made.langsmith_parquet),
    "mlflow traces/get": ("mlflow", lambda: made.dumped(made.mlflow_answer())),
    "opik spans": ("opik", lambda: made.dumped({"page": 1, "total": 4, "content": made.opik_spans()})),
    "opik lines": ("opik", lambda: made.lines(made.opik_spans())),
    "weave lines": ("weave", lambda: made.lines(made.weave_calls())),
    "weave array": ("weave", lambda: made.dumped(made.weave_calls())),
}  # fmt: skip
"""Exports with words of their own."""

SESSIONS: dict[str, tuple[str, Make]] = {
    "claude code": ("claude_code", lambda: made.lines(made.claude_code())),
    "codex": ("codex", lambda: made.lines(made.codex())),
    "atif": ("atif", lambda: made.dumped(made.atif())),
    "openhands": ("openhands", lambda: made.dumped(made.openhands())),
    "openhands evaluation": (
        "openhands", lambda: made.lines([{"instance_id": "i-1", "history": made.openhands(), "metrics": {}}]),
    ),
    "openhands sdk": ("openhands", lambda: made.dumped(made.openhands_sdk())),
    "openhands sdk lines": ("openhands", lambda: made.lines(made.openhands_sdk())),
    "swe-agent": ("swe_agent", lambda: made.dumped(made.swe_agent())),
    "mini-swe-agent": ("swe_agent", lambda: made.dumped(made.mini_swe_agent())),
}  # fmt: skip
ALL = {**OTLP, **OWN, **SESSIONS}
UNCOUNTED = {"openhands sdk", "openhands sdk lines", "swe-agent"}
"""Their messages say nothing of tokens."""


def read(name: str) -> Trace:
    format, make = ALL[name]
    (found,) = read_all(make(), file="story.json")
    assert isinstance(found, Trace), found
    assert found.format == format
    return found


@pytest.fixture(params=ALL)
def trace(request: pytest.FixtureRequest) -> Trace:
    return read(request.param)


def test_the_agent_calls_its_model_twice_and_a_tool_once(trace: Trace) -> None:
    kinds = [span.kind for span in trace.spans]
    tools = [span for span in trace.spans if span.kind == "TOOL" and span.tool_name != "finish"]
    assert kinds[0] in ("AGENT", "CHAIN")
    assert (kinds.count("LLM"), len(tools)) == (2, 1)
    assert [span.depth for span in trace.spans[1:]] == [1] * (len(kinds) - 1)
    assert tools[0].output == made.RESULT or made.RESULT in (tools[0].output or "")


def test_every_model_call_has_what_it_was_told_and_what_it_answered(trace: Trace) -> None:
    calls = [span for span in trace.spans if span.kind == "LLM"]
    asked, answered = ([trace.messages[n] for n in span.input_messages] for span in calls)
    said = [trace.messages[n] for span in calls for n in span.output_messages]
    assert made.GOAL in [message.content for message in asked]
    assert said[0].tool_calls[0].name == "tide"
    assert [message.content for message in answered if message.role == "tool"] == [made.RESULT]
    assert said[-1].content == made.ANSWER


@pytest.mark.parametrize("name", [name for name in ALL if name not in UNCOUNTED])
def test_tokens_are_those_of_the_model_calls(name: str) -> None:
    trace = read(name)
    assert sum(span.total_tokens or 0 for span in trace.leaf_llm_spans()) == made.TOTAL
    assert {span.model for span in trace.spans if span.kind == "LLM"} == {made.MODEL}


def test_goal_and_answer_are_words(trace: Trace) -> None:
    assert (trace.goal, trace.final_answer) == (made.GOAL, made.ANSWER)


def test_nothing_is_doubted(trace: Trace) -> None:
    assert [warning for warning in trace.all_warnings if not warning.startswith("no_trace_id")] == []


@pytest.mark.parametrize("name", OTLP)
def test_spans_keep_their_ids_times_and_resource(name: str) -> None:
    trace = read(name)
    assert trace.trace_id == made.TRACE
    assert [span.span_id for span in trace.spans] == list(made.SPANS)
    assert [(span.start_time, span.end_time) for span in trace.spans] == [
        (made.us(s, 0), made.us(s, 1)) for s in made.SPANS
    ]


@pytest.mark.parametrize("name", OWN)
def test_exports_keep_the_identity_of_their_trace(name: str) -> None:
    assert read(name).trace_id == (made.AGENT if name.startswith("langsmith") else made.TRACE)
