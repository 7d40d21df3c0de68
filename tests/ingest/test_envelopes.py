"""One story in every envelope that tools wrap their spans in: the same spans, messages, tokens, goal and answer."""

from __future__ import annotations

import json
from collections.abc import Callable

import pandas as pd
import pytest
from tests.ingest import envelope_files as made
from tests.ingest.losses import lost
from tests.ingest.trail_files import read_all

from tracejury.ingest.formats import trajectory
from tracejury.ingest.formats.rows import read_rows
from tracejury.ingest.readers import read_bytes, read_inputs
from tracejury.ingest.trace import Rejected, Trace

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
    "cloudwatch page": ("otlp", lambda: made.dumped(made.cloudwatch_page())),
    "cloudwatch csv": ("otlp", made.cloudwatch_csv),
    "cloudwatch lines after a time": ("otlp", made.after_time),
    "cloudwatch lines after a time and a stream": ("otlp", lambda: made.after_time("otel-rt-logs ")),
    "collector's lines with metrics": ("otlp", made.with_metrics),
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
    "genkit's developer store": ("span_table", lambda: made.dumped(made.genkit_store())),
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
    "langsmith without trace ids": ("langsmith", lambda: made.lines(made.langsmith_bare())),
    "langsmith parquet": ("langsmith", made.langsmith_parquet),
    "mlflow traces/get": ("mlflow", lambda: made.dumped(made.mlflow_answer())),
    "mlflow artifact": ("mlflow", lambda: made.dumped(made.mlflow_artifact())),
    "opik spans": ("opik", lambda: made.dumped({"page": 1, "total": 4, "content": made.opik_spans()})),
    "opik lines": ("opik", lambda: made.lines(made.opik_spans())),
    "weave lines": ("weave", lambda: made.lines(made.weave_calls())),
    "weave array": ("weave", lambda: made.dumped(made.weave_calls())),
}  # fmt: skip
"""Exports with words of their own."""

SESSIONS: dict[str, tuple[str, Make]] = {
    "claude code": ("claude_code", lambda: made.lines(made.claude_code())),
    "claude code in a list": ("claude_code", lambda: made.dumped(made.claude_code())),
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


STRUCTURE = frozenset({
    "type", "key", "kind", "name", "status", "code", "field", "value", "id", "processID", "refType", "logStreamName",
    "end_timestamp", "Events.Timestamp", "Duration", "values", "isMeta", "uuid", "parentUuid", "userType", "_ended",
    "_asyncAttributesPending", "ingestionTime", "nextForwardToken", "nextBackwardToken", "@timestamp",
})  # fmt: skip
"""Keys whose values say how a thing is written, or when."""


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith(("langfuse ui", "arrow"))])
def test_every_leaf_is_in_the_table(name: str) -> None:
    data = ALL[name][1]()
    documents = [row.values for row in read_rows(data, lists=())]
    missing = lost(documents, [read(name)], STRUCTURE)
    assert [leaf for leaf in missing if not str(leaf[1]).startswith('"')] == []  # JSON texts of plain words


def codex_without_events() -> bytes:
    """A rollout that tells the model's thoughts as an item alone, as most versions write them."""
    return made.lines([one for one in made.codex() if one["payload"].get("type") != "agent_reasoning"])


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("codex", lambda: made.lines(made.codex())),
        ("codex", codex_without_events),
        ("atif", lambda: ALL["atif"][1]()),
        ("openhands", lambda: ALL["openhands sdk"][1]()),
    ],
)
def test_what_a_model_thought_stands_with_its_answer(format: str, data: Callable[[], bytes]) -> None:
    (trace,) = (one for one in read_bytes(data(), file="t.jsonl") if isinstance(one, Trace))
    assert trace.format == format
    assert [one.reasoning for one in trace.messages if one.reasoning] == ["Look it up."]


# ---- what belongs to one tool ----------------------------------------------------------------------------------


def read_lines(*records: object) -> Trace:
    (found,) = read_all(made.lines(list(records)), file="session.jsonl")
    assert isinstance(found, Trace), found
    return found


def texts(trace: Trace, span_id: str) -> list[str | None]:
    """What the model of this call got, in order."""
    (span,) = (span for span in trace.spans if span.span_id == span_id)
    return [trace.messages[n].content for n in span.input_messages]


def test_a_trace_of_jaeger_keeps_status_events_and_links() -> None:
    value = made.jaeger()
    span = value["data"][0]["spans"][2]
    span["tags"] += [
        {"key": "error", "type": "bool", "value": True},
        {"key": "otel.status_description", "value": "late"},
    ]
    span["logs"] = [{"timestamp": 5, "fields": [{"key": "event", "value": "note"}, {"key": "x", "value": "y"}]}]
    span["references"] += [{"refType": "FOLLOWS_FROM", "traceID": "cd" * 16, "spanID": "ab" * 8}]
    (trace,) = read_all(value)
    assert isinstance(trace, Trace)
    tool = trace.spans[2]
    assert (tool.status, tool.status_message, tool.parent_span_id) == ("ERROR", "late", made.AGENT)
    assert tool.events == ({"name": "note", "time": 5, "attributes": {"x": "y"}},)
    assert [(link["span_id"], link["ref_type"]) for link in tool.links] == [("ab" * 8, "FOLLOWS_FROM")]
    assert tool.attributes["otel.resource"] == {"service.name": "harbour"}


def test_a_span_of_zipkin_keeps_its_error_and_annotations() -> None:
    spans = made.zipkin()
    spans[2]["tags"]["error"] = "late"
    spans[2]["annotations"] = [{"timestamp": 5, "value": '"note": {"x": "y"}'}, {"timestamp": 6, "value": "bare"}]
    (trace,) = read_all(spans)
    assert isinstance(trace, Trace)
    assert (trace.spans[2].status, trace.spans[2].status_message) == ("ERROR", "late")
    assert [(event["name"], event["attributes"]) for event in trace.spans[2].events] == [
        ("note", {"x": "y"}),
        ("bare", {}),
    ]


def test_log_records_of_the_javascript_sdk_join_their_spans() -> None:
    log = {
        "hrTime": [1_790_000_001, 0], "hrTimeObserved": [1_790_000_001, 0], "_body": {"content": "and the wind?"},
        "spanContext": {"traceId": made.TRACE, "spanId": made.CALL, "traceFlags": 1}, "_severityNumber": 9,
        "attributes": {"event.name": "gen_ai.user.message"}, "resource": {"_rawAttributes": []},
    }  # fmt: skip
    (trace,) = read_all(made.js_spans() + b"\n" + json.dumps(log, indent=2).encode())
    assert isinstance(trace, Trace)
    assert len(trace.spans) == len(made.SPANS)
    assert [log.span_id for log in trace.logs] == [made.CALL]


def test_rows_of_a_table_keep_their_events_and_resource() -> None:
    (trace,) = read_all(made.lines(made.clickhouse_rows()))
    assert isinstance(trace, Trace)
    assert [event["name"] for event in trace.spans[0].events] == ["note"]
    assert trace.spans[0].attributes["otel.resource"] == {"service.name": "harbour"}
    assert trace.spans[0].attributes["otel.ServiceName"] == "harbour"


def test_an_answer_that_langfuse_keeps_as_a_python_literal_is_its_words() -> None:
    literal = repr({"role": "assistant", "text": "It's at 14:10.\nBe early."})
    trace = read_lines({"trace": made.langfuse_trace(output=json.dumps(literal)), "observations": OBSERVATIONS()})
    assert trace.final_answer == "It's at 14:10.\nBe early."


def test_a_run_of_pydantic_ai_that_langfuse_keeps_as_a_span_is_an_agent() -> None:
    run = {"id": "a1", "traceId": "t", "parentObservationId": None, "type": "SPAN", "name": "joker run",
           "startTime": "2026-01-01T00:00:00Z", "metadata": {"attributes": {"pydantic_ai.all_messages": [
               {"role": "user", "parts": [{"type": "text", "content": "Joke?"}]},
               {"role": "assistant", "parts": [{"type": "text", "content": "No."}]}]}}}  # fmt: skip
    trace = read_lines({"trace": {"id": "t", "projectId": "p"}, "observations": [run]})
    assert [span.kind for span in trace.spans] == ["AGENT"]


def test_what_went_into_a_call_whose_messages_are_incomplete_stays_beside_them() -> None:
    written = ["role='user' content='When?'", "role='assistant' content=None tool_calls=[{'name': 'tide'}]"]
    flat = {f"llm.input_messages.{n}.message.{key}": text for n, key, text in (
        (0, "role", "user"), (0, "content", "When?"), (2, "role", "tool"), (2, "content", "HW 14:10"))}  # fmt: skip
    call = {"id": "a1", "traceId": "t", "parentObservationId": None, "type": "GENERATION", "name": "call",
            "startTime": "2026-01-01T00:00:00Z", "output": {"choices": [{"message": {
                "role": "assistant", "content": "Noon."}}]}, "metadata": {"attributes": {
                "openinference.span.kind": "LLM", "input.value": {"messages": written}, **flat}}}  # fmt: skip
    trace = read_lines({"trace": {"id": "t", "projectId": "p"}, "observations": [call]})
    (span,) = trace.spans
    assert json.loads(str(span.input)) == {"messages": written}
    assert [trace.messages[at].content for at in span.output_messages] == ["Noon."]


@pytest.mark.parametrize(("held", "asked"), [
    ({"args": ["When?"], "kwargs": {}}, ["When?"]), ({"args": ["When?", "m-1"]}, []), ({"args": [], "kwargs": {}}, []),
])  # fmt: skip
def test_the_only_argument_of_a_model_call_is_its_prompt(held: dict[str, object], asked: list[str]) -> None:
    call = {"id": "a1", "traceId": "t", "parentObservationId": None, "type": "GENERATION", "name": "complete",
            "startTime": "2026-01-01T00:00:00Z", "input": held, "output": "Noon."}  # fmt: skip
    trace = read_lines({"trace": {"id": "t", "projectId": "p"}, "observations": [call]})
    (span,) = trace.spans
    assert [trace.messages[at].content for at in span.input_messages] == asked
    assert (span.input is None) == bool(asked)


def test_two_downloads_of_langfuse_are_two_traces() -> None:
    first = {"trace": made.langfuse_trace(), "observations": made.langfuse_observations(as_text=1)}
    second = json.loads(json.dumps(first).replace(made.TRACE, "cd" * 16))
    found = [read_all(value)[0] for value in (first, second)]
    assert [one.trace_id for one in found if isinstance(one, Trace)] == [made.TRACE, "cd" * 16]


def test_scores_and_feedback_are_kept_where_no_judge_reads_them() -> None:
    score = {
        "id": "s",
        "traceId": made.TRACE,
        "name": "right",
        "value": 1,
        "observationId": made.CALL,
        "dataType": "NUMERIC",
    }
    langfuse = {"trace": made.langfuse_trace(scores=[score]), "observations": made.langfuse_observations()}
    for value in (langfuse, made.langsmith_runs(), made.opik_file()):
        (trace,) = read_all(value)
        assert isinstance(trace, Trace)
        assert [log.holds_answer for log in trace.logs] == [True]
        assert not any("right" in str(span.attributes) or "feedback_stats" in span.attributes for span in trace.spans)


def test_a_file_of_opik_hangs_its_spans_on_their_trace() -> None:
    (trace,) = read_all(made.opik_file())
    assert isinstance(trace, Trace)
    assert [(span.span_id, span.depth) for span in trace.spans[:3]] == [
        (made.TRACE, 0),
        (made.AGENT, 1),
        (made.CALL, 2),
    ]
    assert (trace.goal, trace.final_answer) == (made.GOAL, made.ANSWER)


def test_runs_of_langsmith_stand_below_their_parents_however_it_is_said() -> None:
    runs = made.langsmith_runs()
    nested = {**runs[0], "child_runs": runs[1:]}
    by_order = [
        {**run, "parent_run_id": None, "dotted_order": f"1Z{made.AGENT}" + (f".2Z{run['id']}" if n else "")}
        for n, run in enumerate(runs)
    ]
    for value in (nested, by_order):
        (trace,) = read_all(value)
        assert isinstance(trace, Trace)
        assert [span.depth for span in trace.spans] == [0, 1, 1, 1]


def test_a_call_of_weave_without_a_summary_has_the_tokens_of_its_answer() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    rows = [{**one, "summary": None, "output": {"choices": [], "usage": usage}} for one in made.weave_calls()]
    (trace,) = read_all(made.lines(rows), "calls.jsonl")
    assert isinstance(trace, Trace)
    assert {span.total_tokens for span in trace.spans if span.kind == "LLM"} == {9}


def test_a_call_of_weave_that_failed_says_why() -> None:
    calls = made.weave_calls()
    calls[2] |= {"exception": "TimeoutError: no answer", "summary": {"weave": {"status": "error"}}}
    (trace,) = read_all(made.lines(calls))
    assert isinstance(trace, Trace)
    assert (trace.spans[2].status, trace.spans[2].status_message) == ("ERROR", "TimeoutError: no answer")


def test_ids_of_a_table_may_be_bytes() -> None:
    rows = [
        {"trace_id": bytes.fromhex(made.TRACE), "span_id": bytes.fromhex(s), "name": made.NAMES[s].encode(),
         "parent_span_id": None if s == made.AGENT else bytes.fromhex(made.AGENT),
         "start_time_unix_nano": made.us(s, 0) * 1000, "duration_time_unix_nano": 1}
        for s in made.SPANS
    ]  # fmt: skip
    (trace,) = read_all(bytes(pd.DataFrame(rows).to_parquet()))
    assert isinstance(trace, Trace)
    assert (trace.trace_id, [span.span_id for span in trace.spans]) == (made.TRACE, list(made.SPANS))
    assert [span.name for span in trace.spans] == list(made.NAMES.values())


def test_a_row_of_logfire_with_an_exception_failed() -> None:
    rows = made.logfire_rows()
    rows[2] |= {"is_exception": True, "exception_type": "ValueError", "exception_message": "no tide"}
    (trace,) = read_all(rows)
    assert isinstance(trace, Trace)
    assert (trace.spans[2].status, trace.spans[2].status_message) == ("ERROR", "ValueError: no tide")


def test_log_records_of_agentcore_give_their_spans_messages() -> None:
    spans = made.flat_spans()
    for span in spans:
        span["attributes"] = {key: item for key, item in span["attributes"].items() if not key.endswith(".messages")}
    call = [{"toolUse": {"toolUseId": "call_1", "name": "tide", "input": made.ARGUMENTS}}]
    body = {
        "input": {"messages": [{"role": "user", "content": {"content": json.dumps([{"text": made.GOAL}])}}]},
        "output": {"messages": [
            {"role": "assistant", "content": {"message": json.dumps(call), "finish_reason": "tool_use"}},
        ]},
    }  # fmt: skip
    log = {"timeUnixNano": made.us(made.CALL, 0) * 1000, "severityNumber": 9, "body": body, "traceId": made.TRACE,
           "spanId": made.CALL, "attributes": {"event.name": "strands.telemetry.tracer"}}  # fmt: skip
    (trace,) = read_all(made.lines([*spans, log]))
    assert isinstance(trace, Trace)
    assert texts(trace, made.CALL) == [made.GOAL]
    (answer,) = (trace.messages[n] for n in trace.spans[1].output_messages)
    assert [(one.id, one.name) for one in answer.tool_calls] == [("call_1", "tide")]
    assert trace.goal == made.GOAL


def test_what_opentelemetry_said_of_an_observation_goes_through_the_conventions() -> None:
    rows = made.langfuse_observations()
    rows[0] |= {"type": "SPAN", "metadata": {"attributes": made.gen_ai(made.AGENT), "scope": {"name": "x"}}}
    (trace,) = read_all(rows)
    assert isinstance(trace, Trace)
    assert (trace.spans[0].kind, trace.spans[0].agent) == ("AGENT", "pilot")
    assert trace.spans[0].attributes["otel.scope"] == {"name": "x"}


# ---- sessions of coding agents ---------------------------------------------------------------------------------


def record(uuid: str, above: str | None, kind: str, content: object, **more: object) -> dict[str, object]:
    message = {"role": kind, "content": content, **({"id": uuid, "model": made.MODEL} if kind == "assistant" else {})}
    return {"uuid": uuid, "parentUuid": above, "sessionId": made.SESSION, "type": kind, "message": message,
            "isSidechain": False, "timestamp": "2026-09-21T14:13:20Z", **more}  # fmt: skip


def text_of(value: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value}]


TASK = [
    {"type": "tool_use", "id": "task_1", "name": "Task", "input": {"prompt": "Find tides", "subagent_type": "finder"}}
]
STARTED = [
    record("u1", None, "user", made.GOAL),
    record("u2", "u1", "assistant", TASK),
]
BACK = record("u3", "u2", "user", [{"type": "tool_result", "tool_use_id": "task_1", "content": "14:10"}],
              toolUseResult={"agentId": "a1", "status": "completed"})  # fmt: skip
ENDED = record("u4", "u3", "assistant", text_of(made.ANSWER))
SIDE = [
    record("s1", None, "user", "Find tides", isSidechain=True),
    record("s2", "s1", "assistant", text_of("14:10"), isSidechain=True),
]


def test_a_sub_agent_of_claude_code_stands_below_the_call_that_started_it() -> None:
    trace = read_lines(*STARTED, *SIDE, BACK, ENDED)
    agents = [span for span in trace.spans if span.kind == "AGENT"]
    assert [(agent.name, agent.parent_span_id) for agent in agents] == [("claude-code", None), ("finder", "task_1")]
    assert (agents[1].input, agents[1].output) == ("Find tides", "14:10")
    assert (trace.goal, trace.final_answer) == (made.GOAL, made.ANSWER)


def test_a_sub_agent_in_a_file_of_its_own_is_read_with_its_session() -> None:
    side = [{**one, "agentId": "a1"} for one in SIDE]
    files = {f"p/{made.SESSION}.jsonl": made.lines([*STARTED, BACK, ENDED])}
    for name in (f"p/{made.SESSION}/subagents/agent-a1.jsonl", "p/agent-a1.jsonl"):
        (trace,) = read_inputs({**files, name: made.lines(side)})
        assert isinstance(trace, Trace)
        assert [span.parent_span_id for span in trace.spans if span.kind == "AGENT"] == [None, "task_1"]


def test_compaction_begins_the_context_of_claude_code_anew() -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "u5", "sessionId": made.SESSION,
                "logicalParentUuid": "u4", "isSidechain": False, "compactMetadata": {"trigger": "auto"}}  # fmt: skip
    trace = read_lines(
        *STARTED, BACK, ENDED, boundary,
        record("u6", "u5", "user", "Summary: tides.", isCompactSummary=True),
        record("u7", "u6", "user", "And tomorrow?"), record("u8", "u7", "assistant", text_of("At 15:00.")),
    )  # fmt: skip
    assert texts(trace, "u8") == ["Summary: tides.", "And tomorrow?"]
    assert [event["name"] for event in trace.spans[0].events] == ["compact_boundary"]
    assert (trace.goal, trace.final_answer) == (made.GOAL, "At 15:00.")


def test_a_session_that_goes_on_in_another_file_is_one_trace() -> None:
    on = [record("u5", "u4", "user", "And tomorrow?", sessionId="other"),
          record("u6", "u5", "assistant", text_of("At 15:00."), sessionId="other")]  # fmt: skip
    first = [*STARTED, BACK, ENDED]
    (trace,) = read_all(made.lines([*first, *first, *on]))  # a file that goes on repeats what came before
    assert isinstance(trace, Trace)
    assert (trace.trace_id, trace.attributes["session_ids"]) == (made.SESSION, [made.SESSION, "other"])
    assert [span.kind for span in trace.spans].count("LLM") == 3
    assert texts(trace, "u6")[-2:] == [made.ANSWER, "And tomorrow?"]


def test_a_tool_call_without_a_result_and_a_result_without_a_call_say_so() -> None:
    loose = record(
        "u3", "u2", "user", [{"type": "tool_result", "tool_use_id": "other", "content": "x", "is_error": True}]
    )
    trace = read_lines(*STARTED, loose)
    tools = [span for span in trace.spans if span.kind == "TOOL"]
    assert [(span.span_id, span.status, span.warnings[0].split(":")[0]) for span in tools] == [
        ("task_1", "UNSET", "no_result"), ("other", "ERROR", "no_call"),
    ]  # fmt: skip


def test_the_stream_of_claude_code_is_read_with_its_sub_agents() -> None:
    def printed(kind: str, content: object, above: str | None = None, **more: object) -> dict[str, object]:
        message = {"role": kind, "content": content, **({"id": f"m{content}"} if kind == "assistant" else {})}
        return {"type": kind, "message": message, "parent_tool_use_id": above, "session_id": made.SESSION, **more}

    result = [{"type": "tool_result", "tool_use_id": "task_1", "content": "14:10"}]
    trace = read_lines(
        {"type": "system", "subtype": "init", "session_id": made.SESSION, "tools": ["Task"], "model": made.MODEL},
        printed("assistant", TASK), printed("user", text_of("Find tides"), "task_1"),
        printed("assistant", text_of("14:10"), "task_1"), printed("user", result),
        printed("assistant", text_of("Done.")),
        {"type": "result", "subtype": "success", "result": made.ANSWER, "session_id": made.SESSION, "num_turns": 2},
    )  # fmt: skip
    assert [(span.name, span.parent_span_id) for span in trace.spans if span.kind == "AGENT"] == [
        ("claude-code", None), ("finder", "task_1"),
    ]  # fmt: skip
    assert (trace.trace_id, trace.final_answer) == (made.SESSION, made.ANSWER)


def test_an_error_that_stands_for_an_answer_of_claude_code_is_an_error() -> None:
    failed = record("u5", "u4", "assistant", text_of("API Error: 529"), isApiErrorMessage=True, apiErrorStatus=529)
    trace = read_lines(*STARTED, BACK, ENDED, failed)
    assert (trace.spans[-1].status, trace.spans[-1].status_message) == ("ERROR", "API Error: 529")
    assert (trace.spans[-1].attributes["apiErrorStatus"], trace.final_answer) == (529, made.ANSWER)


def test_compaction_and_failures_of_codex_are_read() -> None:
    def item(kind: str, **payload: object) -> dict[str, object]:
        return {"timestamp": "2026-09-21T14:13:30Z", "type": kind, "payload": payload}

    trace = read_lines(
        *made.codex(),
        item("compacted", message="Summary: tides.", replacement_history=[
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Summary: tides."}]},
        ]),
        item("response_item", type="custom_tool_call", call_id="c2", name="apply_patch", input="*** Begin Patch"),
        item("response_item", type="custom_tool_call_output", call_id="c2",
             output=json.dumps({"output": "no such file", "metadata": {"exit_code": 1}})),
        item("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": "Failed."}]),
    )  # fmt: skip
    last = next(span for span in reversed(trace.spans) if span.kind == "LLM")
    assert texts(trace, last.span_id) == ["Summary: tides.", None, "no such file"]
    failed = next(span for span in trace.spans if span.tool_call_id == "c2")
    assert (failed.status, failed.status_message, failed.output) == ("ERROR", "exit code 1", "no such file")
    assert (trace.goal, trace.final_answer) == (made.GOAL, "Failed.")


def test_old_rollouts_of_codex_with_bare_items_are_read() -> None:
    items = [one["payload"] for one in made.codex() if one["type"] == "response_item"]
    first = {"id": made.SESSION, "timestamp": "2025-07-01T00:00:00Z", "instructions": made.SYSTEM}
    trace = read_lines(first, {"record_type": "state"}, *items)
    assert (trace.trace_id, trace.goal, trace.final_answer) == (made.SESSION, made.GOAL, made.ANSWER)
    assert [span.kind for span in trace.spans].count("LLM") == 2


def exec_item(event: str, number: int, kind: str, **fields: object) -> dict[str, object]:
    return {"type": f"item.{event}", "item": {"id": f"item_{number}", "type": kind, **fields}}


def test_what_codex_exec_prints_is_a_trace_of_each_thread_without_a_prompt() -> None:
    shell = {"command": "bash -lc 'ls tides'", "aggregated_output": "", "exit_code": None, "status": "in_progress"}
    ended = {**shell, "aggregated_output": "brest.csv", "exit_code": 0, "status": "completed"}
    todo = [{"text": "look up", "completed": False}]
    started = {"type": "thread.started", "thread_id": "0199-t"}
    trace = read_lines(
        started,
        {"type": "turn.started"},
        exec_item("completed", 0, "reasoning", text="Look at the files."),
        exec_item("started", 1, "command_execution", **shell),
        exec_item("started", 2, "mcp_tool_call", server="sea", tool="tide", arguments={"port": "Brest"}, result=None),
        exec_item("completed", 1, "command_execution", **ended),
        exec_item("completed", 2, "mcp_tool_call", server="sea", tool="tide", arguments={"port": "Brest"},
                  error={"message": "no such port"}, status="failed"),
        exec_item("started", 3, "todo_list", items=todo),
        exec_item("completed", 3, "todo_list", items=todo),
        exec_item("completed", 4, "agent_message", text="At noon."),
        {"type": "turn.completed", "usage": {"input_tokens": 30, "cached_input_tokens": 4, "output_tokens": 7}},
        started,
        exec_item("completed", 0, "command_execution", **{**ended, "exit_code": 2}),
        exec_item("completed", 1, "agent_message", text="Still at noon."),
        {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 1}},
    )  # fmt: skip
    assert (trace.trace_id, trace.format, trace.goal, trace.final_answer) == ("0199-t", "codex", None, "Still at noon.")
    tools = [(span.tool_name, span.tool_arguments, span.output, span.status) for span in trace.spans if span.tool_name]
    assert tools == [
        ("command_execution", '{"command":"bash -lc \'ls tides\'"}', "brest.csv", "UNSET"),
        ("sea.tide", '{"port":"Brest"}', "no such port", "ERROR"),
        ("todo_list", json.dumps({"items": todo}, separators=(",", ":")), None, "UNSET"),
        ("command_execution", '{"command":"bash -lc \'ls tides\'"}', "brest.csv", "ERROR"),
    ]
    calls = [span for span in trace.spans if span.kind == "LLM"]
    answers = [trace.messages[span.output_messages[0]] for span in calls]
    assert [len(answer.tool_calls) for answer in answers] == [2, 1, 1, 0]
    assert (answers[0].reasoning, answers[1].content) == ("Look at the files.", "At noon.")
    assert (trace.spans[0].prompt_tokens, trace.spans[0].completion_tokens) == (40, 8)
    assert any(warning.startswith("no_prompt") for warning in trace.warnings)


def test_a_trajectory_in_a_trajectory_of_atif_stands_below_the_call_that_names_it() -> None:
    value = made.atif()
    inner = {
        **made.atif(),
        "trajectory_id": "inner",
        "session_id": "inner",
        "agent": {"name": "finder", "version": "1"},
    }
    value["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"] = [{"trajectory_id": "inner"}]
    value["subagent_trajectories"] = [inner]
    (trace,) = read_all(value)
    assert isinstance(trace, Trace)
    assert [(s.name, s.parent_span_id) for s in trace.spans if s.kind == "AGENT"] == [
        ("terminus-2", None), ("finder", "call_1"),
    ]  # fmt: skip


def test_commands_in_the_text_of_mini_swe_agent_are_tool_calls() -> None:
    value = made.mini_swe_agent()
    value["messages"] = [
        {"role": "system", "content": made.SYSTEM}, {"role": "user", "content": made.GOAL},
        {"role": "assistant", "content": "Look.\n```bash\ntide Brest\n```"},
        {"role": "user", "content": "<returncode>2</returncode>\n<output>\nno tide\n</output>"},
        {"role": "assistant", "content": "Again.\n```bash\ntide\n```"},
        {"role": "user", "content": "Observation: none"},
        {"role": "assistant", "content": made.ANSWER},
    ]  # fmt: skip
    (trace,) = read_all(value, file="run-7.traj.json")
    assert isinstance(trace, Trace)
    tool, other = (span for span in trace.spans if span.kind == "TOOL")
    assert other.output == "Observation: none"
    assert (trace.trace_id, tool.tool_arguments, tool.status) == ("run-7", "tide Brest", "ERROR")


def test_the_task_of_swe_agent_is_no_result_of_a_tool_and_its_submission_has_one() -> None:
    value = made.swe_agent()
    value["history"][1]["message_type"] = "observation"  # as SWE-agent 1 marks the task
    value["history"][-1]["action"] = value["trajectory"][-1]["action"] = "submit"
    value["trajectory"][-1]["observation"] = "Submitted."
    (trace,) = read_all(made.dumped(value), file="i-1.traj")
    assert isinstance(trace, Trace)
    tools = [(span.tool_arguments, span.output) for span in trace.spans if span.kind == "TOOL"]
    assert tools == [(made.OPENAI_CALL["function"]["arguments"], made.RESULT), ("submit", "Submitted.")]
    assert trace.all_warnings == ()


@pytest.mark.parametrize("form", ['"{0}":{1}', "{0}|{1}|0", '{{"{0}": {1}}}'])
def test_an_annotation_of_zipkin_is_an_event_with_its_attributes(form: str) -> None:
    spans = made.zipkin()
    spans[1]["annotations"] = [
        {"timestamp": 5, "value": form.format("cache.miss", json.dumps({"note": "Read from the harbour's desk."}))},
        {"timestamp": 6, "value": "{not JSON"},
    ]
    (trace,) = read_all(made.dumped(spans), file="z.json")
    assert isinstance(trace, Trace)
    assert [(one["name"], one["time"], one["attributes"]) for one in trace.spans[1].events] == [
        ("cache.miss", 5, {"note": "Read from the harbour's desk."}), ("{not JSON", 6, {}),
    ]  # fmt: skip


def test_what_mini_swe_agent_hands_in_is_the_result_of_its_last_command() -> None:
    value = made.mini_swe_agent()
    value["messages"][-1] = {"role": "assistant", "content": "```bash\necho DONE\n```"}
    value["messages"].append({"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}})
    (trace,) = read_all(made.dumped(value), file="i-1.traj.json")
    assert isinstance(trace, Trace)
    assert (trace.spans[-1].tool_arguments, trace.spans[-1].output) == ("echo DONE", "diff")
    assert trace.all_warnings == ()


@pytest.mark.parametrize("separator", ["/", "\\"])
def test_events_of_openhands_that_lie_in_a_file_each_are_one_conversation(separator: str) -> None:
    events = made.openhands()
    names = [separator.join(("home", "sessions", "c-7", "events", f"{number}.json")) for number in range(len(events))]
    inputs = {name: made.dumped(event) for name, event in sorted(zip(names, events, strict=True))}
    (trace,) = read_inputs(inputs)
    (whole,) = read_all(made.dumped(events), file="c-7.json")
    assert isinstance(trace, Trace)
    assert isinstance(whole, Trace)
    assert (trace.trace_id, trace.goal, trace.final_answer) == ("c-7", made.GOAL, made.ANSWER)
    assert [span.name for span in trace.spans] == [span.name for span in whole.spans]
    assert trace.messages == whole.messages
    assert trace.all_warnings == ()


def test_steps_of_swe_agent_without_history_are_read() -> None:
    value = made.swe_agent()
    del value["history"]
    (trace,) = read_all(value, file="run-7.traj")
    assert isinstance(trace, Trace)
    assert [span.kind for span in trace.spans] == ["AGENT", "LLM", "TOOL", "LLM"]
    assert (trace.goal, trace.final_answer) == (made.GOAL, made.ANSWER)


def test_a_long_session_holds_each_message_once_a_call_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectory, "_POSITIONS", 3)
    trace = read_lines(*STARTED, BACK, ENDED)
    assert texts(trace, "u4") == ["14:10"]
    assert any(warning.startswith("only_new_messages") for warning in trace.all_warnings)


# ---- what is refused -------------------------------------------------------------------------------------------

BAD: dict[str, tuple[object, str, str]] = {
    "frame by columns": (
        {name: {str(n): row[name] for n, row in enumerate(made.logfire_rows())} for name in made.logfire_rows()[0]},
        "a pandas frame by columns", "orient='records'",
    ),
    "frame by index": (
        {str(n): row for n, row in enumerate(made.logfire_rows())}, "a pandas frame by columns", "orient='records'",
    ),
    "frame split": (
        {"columns": list(made.logfire_rows()[0]), "index": [0], "data": [list(made.logfire_rows()[0].values())]},
        "a pandas frame by columns", "orient='records'",
    ),
    "frame of another tool": ({"a": {"0": 1, "1": 2}, "b": {"0": 3, "1": 4}}, "a pandas frame by columns", "orient"),
    "row without span id": (
        [{**row, "span_id": None} for row in made.logfire_rows()], "a row without trace id or span id", "span_id",
    ),
    "jaeger without trace": (
        {"data": [{"traceID": "ab", "operationName": "x", "of": {"spanID": 1}}, 7]}, "not a Jaeger trace", "again",
    ),
    "langsmith without id": ([{"run_type": "llm", "trace_id": "t", "name": "x"}], "a run without id", "`id`"),
    "weave without id": ([{"op_name": "x", "trace_id": None, "started_at": ""}], "a call without id", "trace_id"),
    "langfuse scores alone": (
        [{"traceId": "t", "parentObservationId": None, "id": "s", "value": 1, "name": "x"}],
        "holds scores of trace t", "labels import",
    ),
    "atif without steps": ({"schema_version": "ATIF-v1.6", "steps": 7}, "without a list `steps`", "again"),
    "swe-agent without messages": ({"trajectory": [], "history": [], "info": {}}, "a trace without messages", "whole"),
    "unknown": ({"acme": {"request": "hello"}}, "no known trace format", "tracejury map suggest FILE"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_refused_with_a_remedy(name: str) -> None:
    value, reason, remedy = BAD[name]
    refused = [item for item in read_all(value) if isinstance(item, Rejected)]
    assert refused
    assert reason in refused[0].reason
    assert remedy in refused[0].remedy


def test_what_is_unknown_names_the_map_and_every_format() -> None:
    (refused,) = read_all({"acme": 1})
    assert isinstance(refused, Rejected)
    assert all(
        name in refused.remedy for name in ("--map acme.toml", "jaeger", "claude_code", "langsmith", "span_table")
    )
    assert "joined" not in refused.remedy


def test_one_bad_item_among_spans_is_named_and_the_others_are_read() -> None:
    (trace,) = read_all([*made.flat_spans(), 7])
    assert isinstance(trace, Trace)
    assert len(trace.spans) == len(made.SPANS)
    assert any(warning.startswith("unreadable_span: 7") for warning in trace.warnings)


@pytest.mark.parametrize("name", ["langsmith lines", "weave lines", "opik lines", "logfire lines", "zipkin", "codex"])
def test_a_broken_line_is_rejected_by_number_and_the_rest_is_read(name: str) -> None:
    data = made.lines(json.loads(ALL[name][1]())) if name == "zipkin" else ALL[name][1]()
    found = read_all(data + b'{"trace_id": \n')
    assert [type(item) for item in found] in ([Rejected, Trace], [Trace, Rejected])
    (broken,) = (item for item in found if isinstance(item, Rejected))
    assert broken.place.startswith("line ")


def test_older_events_of_codex_exec_are_the_same_session_with_its_prompt_and_tokens() -> None:
    command = {"call_id": "c", "command": ["bash", "-lc", "tide"], "cwd": "/w"}
    output = {"call_id": "c", "stdout": made.RESULT, "stderr": "", "exit_code": 0}
    tokens = {"input_tokens": 9, "output_tokens": 4, "reasoning_output_tokens": 1, "total_tokens": 13}
    messages: list[dict[str, object]] = [
        {"type": "task_started"}, {"type": "agent_reasoning", "text": "Look."},
        {"type": "exec_command_begin", **command}, {"type": "exec_command_end", "call_id": "c", **output},
        {"type": "token_count", "info": {"total_token_usage": tokens}},
        {"type": "agent_message", "message": made.ANSWER},
        {"type": "task_complete", "last_agent_message": made.ANSWER},
    ]  # fmt: skip
    rows = [
        {"model": "m-1", "provider": "openai"},
        {"prompt": made.GOAL},
        *({"id": "0", "msg": one} for one in messages),
    ]
    (trace,) = read_all(made.lines(rows), "run.jsonl")
    assert isinstance(trace, Trace)
    assert (trace.format, trace.trace_id, trace.goal, trace.final_answer) == ("codex", "run", made.GOAL, made.ANSWER)
    assert [(one.kind, one.model) for one in trace.spans[1:]] == [("LLM", "m-1"), ("TOOL", None), ("LLM", "m-1")]
    assert "tide" in str(trace.spans[2].tool_arguments)
    assert (trace.spans[2].output, trace.spans[0].prompt_tokens, trace.spans[0].total_tokens) == (made.RESULT, 9, 13)
    notified = [{"jsonrpc": "2.0", "method": "codex/event", "params": one} for one in rows[2:]]
    (again,) = read_all(made.lines(notified), "run.jsonl")
    assert isinstance(again, Trace)
    assert (again.goal, again.final_answer) == (None, made.ANSWER)
