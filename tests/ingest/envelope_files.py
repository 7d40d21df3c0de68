"""One story in the envelope of each tool, made here after its documented form: a question, a tool call, an answer."""

from __future__ import annotations

import base64
import csv
import io
import json
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import ipc

TRACE = "5b8efff798038103d269b633813fc60c"
AGENT, CALL, TOOL, ANSWER_CALL = "eee19b7ec3c1b174", "eee19b7ec3c1b175", "eee19b7ec3c1b176", "eee19b7ec3c1b177"
GOAL, ANSWER, RESULT = "When does the tide turn at Brest?", "At 14:10.", "HW 14:10"
MODEL, SYSTEM = "m-1", "Answer sailors."
ARGUMENTS = {"port": "Brest"}
START_US = 1_790_000_000_000_000
US = {
    AGENT: (0, 4_000_000),
    CALL: (100_000, 900_000),
    TOOL: (1_000_000, 2_000_000),
    ANSWER_CALL: (2_100_000, 3_900_000),
}
NAMES = {AGENT: "invoke_agent pilot", CALL: "chat m-1", TOOL: "execute_tool tide", ANSWER_CALL: "chat m-1"}
IN_TOKENS, OUT_TOKENS = {CALL: 20, ANSWER_CALL: 31}, {CALL: 5, ANSWER_CALL: 4}
TOTAL = 60
TOOL_CALL = {"type": "tool_call", "id": "call_1", "name": "tide", "arguments": ARGUMENTS}


def part(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": text}]


def gen_ai(span_id: str) -> dict[str, Any]:
    """Attributes in the words of OpenTelemetry's GenAI conventions."""
    asked = [{"role": "user", "parts": part(GOAL)}]
    calling = {"role": "assistant", "parts": [TOOL_CALL], "finish_reason": "tool_call"}
    given = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": RESULT}]}
    answer = [{"role": "assistant", "parts": part(ANSWER), "finish_reason": "stop"}]
    if span_id == AGENT:
        return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "pilot"}
    if span_id == TOOL:
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "tide",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.arguments": json.dumps(ARGUMENTS),
            "gen_ai.tool.call.result": RESULT,
        }
    said = (asked, [calling]) if span_id == CALL else ([*asked, calling, given], answer)
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": MODEL,
        "gen_ai.usage.input_tokens": IN_TOKENS[span_id],
        "gen_ai.usage.output_tokens": OUT_TOKENS[span_id],
        "gen_ai.input.messages": json.dumps(said[0]),
        "gen_ai.output.messages": json.dumps(said[1]),
    }


SPANS = (AGENT, CALL, TOOL, ANSWER_CALL)


def parent(span_id: str) -> str | None:
    return None if span_id == AGENT else AGENT


def us(span_id: str, side: int) -> int:
    return START_US + US[span_id][side]


def iso(span_id: str, side: int = 0) -> str:
    return pd.Timestamp(us(span_id, side), unit="us", tz="UTC").isoformat().replace("+00:00", "Z")


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def lines(rows: list[Any]) -> bytes:
    return b"".join(dumped(row) + b"\n" for row in rows)


def any_value(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def otlp_spans(*, base_64: bool = False) -> list[dict[str, Any]]:
    def own(one: str | None) -> str:
        return "" if one is None else base64.b64encode(bytes.fromhex(one)).decode() if base_64 else one

    return [
        {
            "traceId": own(TRACE),
            "spanId": own(s),
            "parentSpanId": own(parent(s)),
            "name": NAMES[s],
            "kind": 1,
            "startTimeUnixNano": str(us(s, 0) * 1000),
            "endTimeUnixNano": str(us(s, 1) * 1000),
            "status": {},
            "attributes": [{"key": k, "value": any_value(v)} for k, v in gen_ai(s).items()],
        }
        for s in SPANS
    ]


RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "harbour"}}]}


def groups(**more: Any) -> list[dict[str, Any]]:
    return [{"resource": RESOURCE, "scopeSpans": [{"scope": {"name": "x"}, "spans": otlp_spans(**more)}]}]


def flat_spans() -> list[dict[str, Any]]:
    return [
        {
            "resource": {"attributes": {"service.name": "harbour"}},
            "scope": {"name": "x", "version": ""},
            "traceId": TRACE,
            "spanId": s,
            **({"parentSpanId": AGENT} if s != AGENT else {}),
            "name": NAMES[s],
            "kind": "INTERNAL",
            "startTimeUnixNano": us(s, 0) * 1000,
            "endTimeUnixNano": us(s, 1) * 1000,
            "durationNano": (US[s][1] - US[s][0]) * 1000,
            "attributes": gen_ai(s),
            "status": {"code": "UNSET"},
        }
        for s in SPANS
    ]


def cloudwatch_events() -> dict[str, Any]:
    return {
        "events": [
            {"logStreamName": "default", "timestamp": 1, "message": json.dumps(s), "eventId": str(n)}
            for n, s in enumerate(flat_spans())
        ]
    }


def cloudwatch_page() -> dict[str, Any]:
    """What `aws logs get-log-events` answers, which names no stream."""
    events = [{"timestamp": 1, "message": json.dumps(s), "ingestionTime": 2} for s in flat_spans()]
    return {"events": events, "nextForwardToken": "f/1", "nextBackwardToken": "b/1"}


def cloudwatch_csv() -> bytes:
    rows = [{"@timestamp": "2026-09-21 14:13:20.000", "@message": json.dumps(s)} for s in flat_spans()]
    return pd.DataFrame(rows).to_csv(index=False).encode()


def after_time(stream: str = "") -> bytes:
    """The lines of an export to S3 or, with the name of a stream, of `aws logs tail`."""
    return "".join(f"2026-09-21T14:13:20.000Z {stream}{json.dumps(span)}\n" for span in flat_spans()).encode()


def with_metrics() -> bytes:
    """A file of the collector to which its other signals go too."""
    return lines([{"resourceMetrics": []}, {"resourceSpans": groups()}, {"resourceProfiles": [], "dictionary": {}}])


def cloudwatch_results() -> dict[str, Any]:
    rows = [
        [{"field": "@timestamp", "value": "2026-09-21"}, {"field": "@message", "value": json.dumps(s)}]
        for s in flat_spans()
    ]
    return {"results": rows, "status": "Complete"}


def jaeger() -> dict[str, Any]:
    def tag(key: str, value: Any) -> dict[str, Any]:
        return {"key": key, "type": "int64" if isinstance(value, int) else "string", "value": value}

    spans = [
        {
            "traceID": TRACE,
            "spanID": s,
            "operationName": NAMES[s],
            "startTime": us(s, 0),
            "duration": US[s][1] - US[s][0],
            "logs": [],
            "processID": "p1",
            "warnings": None,
            "references": [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": AGENT}] if s != AGENT else [],
            "tags": [tag(key, value) for key, value in gen_ai(s).items()],
        }
        for s in SPANS
    ]
    return {"data": [{"traceID": TRACE, "spans": spans, "processes": {"p1": {"serviceName": "harbour", "tags": []}}}]}


def zipkin() -> list[dict[str, Any]]:
    return [
        {
            "traceId": TRACE,
            "id": s,
            **({"parentId": AGENT} if s != AGENT else {}),
            "name": NAMES[s],
            "timestamp": us(s, 0),
            "duration": US[s][1] - US[s][0],
            "localEndpoint": {"serviceName": "harbour"},
            "tags": {key: str(value) for key, value in gen_ai(s).items()},
        }
        for s in SPANS
    ]


def js_spans() -> bytes:
    """As `JSON.stringify(span, null, 2)` writes the SDK's own objects, one after another, metrics among them."""

    def hr(span_id: str, side: int) -> list[int]:
        return [us(span_id, side) // 1_000_000, us(span_id, side) % 1_000_000 * 1000]

    spans: list[dict[str, Any]] = [
        {
            "_spanContext": {"traceId": TRACE, "spanId": s, "traceFlags": 1},
            "name": NAMES[s],
            "kind": 0,
            **({"parentSpanContext": {"traceId": TRACE, "spanId": AGENT, "traceFlags": 1}} if s != AGENT else {}),
            "startTime": hr(s, 0),
            "endTime": hr(s, 1),
            "_ended": True,
            "_duration": [0, 1],
            "status": {"code": 0},
            "attributes": gen_ai(s),
            "links": [],
            "events": [],
            "_droppedAttributesCount": 0,
            "resource": {"_rawAttributes": [["service.name", "harbour"]], "_asyncAttributesPending": False},
            "instrumentationScope": {"name": "x", "version": "1"},
        }
        for s in SPANS
    ]
    metrics = {"resource": {"_rawAttributes": []}, "scopeMetrics": [{"metrics": []}]}
    return "\n".join(json.dumps(one, indent=2) for one in [*spans[:2], metrics, *spans[2:]]).encode()


def js_printed() -> list[dict[str, Any]]:
    return [
        {
            "resource": {"attributes": {"service.name": "harbour"}},
            "instrumentationScope": {"name": "x"},
            "traceId": TRACE,
            "parentSpanContext": {"spanId": AGENT} if s != AGENT else None,
            "name": NAMES[s],
            "id": s,
            "kind": 0,
            "timestamp": us(s, 0),
            "duration": US[s][1] - US[s][0],
            "attributes": gen_ai(s),
            "status": {"code": 0},
            "events": [],
            "links": [],
        }
        for s in SPANS
    ]


def genkit_store() -> dict[str, Any]:
    """A trace as Genkit's developer store keeps it: the spans by their ids, times in milliseconds with a fraction."""
    spans = {
        s: {
            "spanId": s,
            "traceId": TRACE,
            "parentSpanId": parent(s),
            "displayName": NAMES[s],
            "startTime": us(s, 0) / 1000,
            "endTime": us(s, 1) / 1000,
            "attributes": gen_ai(s),
            "spanKind": "INTERNAL",
            "status": {"code": 0},
        }
        for s in SPANS
    }
    return {"traceId": TRACE, "displayName": NAMES[AGENT], "spans": spans}


def logfire_rows() -> list[dict[str, Any]]:
    return [
        {
            "start_timestamp": iso(s),
            "end_timestamp": iso(s, 1),
            "duration": (US[s][1] - US[s][0]) / 1e6,
            "trace_id": TRACE,
            "span_id": s,
            "parent_span_id": parent(s),
            "kind": "span",
            "level": 9,
            "span_name": NAMES[s],
            "message": NAMES[s],
            "otel_scope_name": "x",
            "otel_status_code": None,
            "otel_events": None,
            "otel_resource_attributes": {"service.name": "harbour"},
            "attributes": gen_ai(s),
        }
        for s in SPANS
    ]


def logfire_columns() -> dict[str, Any]:
    rows = logfire_rows()
    return {"columns": [{"name": n, "datatype": "x", "values": [row[n] for row in rows]} for n in rows[0]]}


def clickhouse_rows() -> list[dict[str, Any]]:
    return [
        {
            "Timestamp": iso(s),
            "TraceId": TRACE,
            "SpanId": s,
            "ParentSpanId": parent(s) or "",
            "SpanName": NAMES[s],
            "SpanKind": "Internal",
            "ServiceName": "harbour",
            "ResourceAttributes": {"service.name": "harbour"},
            "ScopeName": "x",
            "SpanAttributes": {key: str(value) for key, value in gen_ai(s).items()},
            "Duration": (US[s][1] - US[s][0]) * 1000,
            "StatusCode": "Unset",
            "StatusMessage": "",
            "Events.Timestamp": [iso(s)],
            "Events.Name": ["note"],
            "Events.Attributes": [{"x": "1"}],
        }
        for s in SPANS
    ]


def otlp_parquet() -> bytes:
    rows = [
        {
            "trace_id": TRACE,
            "span_id": s,
            "parent_span_id": parent(s),
            "name": NAMES[s],
            "start_time_unix_nano": us(s, 0) * 1000,
            "end_time_unix_nano": us(s, 1) * 1000,
            "status_code": 0,
            "attributes": json.dumps(gen_ai(s)),
        }
        for s in SPANS
    ]
    return bytes(pd.DataFrame(rows).to_parquet())


def arrow(*, stream: bool) -> bytes:
    rows = [
        {
            "trace_id": TRACE,
            "span_id": s,
            "parent_span_id": parent(s),
            "name": NAMES[s],
            "start_time": pd.Timestamp(us(s, 0), unit="us", tz="UTC").to_pydatetime(),
            "end_time": pd.Timestamp(us(s, 1), unit="us", tz="UTC").to_pydatetime(),
            "attributes": [(key, str(value)) for key, value in gen_ai(s).items()],
        }
        for s in SPANS
    ]
    time = pa.timestamp("us", tz="UTC")
    types = [(name, pa.string()) for name in ("trace_id", "span_id", "parent_span_id", "name")]
    schema = pa.schema(
        [*types, ("start_time", time), ("end_time", time), ("attributes", pa.map_(pa.string(), pa.string()))]
    )
    sink = pa.BufferOutputStream()
    with (ipc.new_stream if stream else ipc.new_file)(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return bytes(sink.getvalue().to_pybytes())


# ---- tools with words of their own -----------------------------------------------------------------------------

OPENAI_CALL = {"id": "call_1", "type": "function", "function": {"name": "tide", "arguments": json.dumps(ARGUMENTS)}}
ASKED = {"role": "user", "content": GOAL}
CALLING = {"role": "assistant", "content": "", "tool_calls": [OPENAI_CALL]}
GIVEN = {"role": "tool", "content": RESULT, "tool_call_id": "call_1"}
ANSWERED = {"role": "assistant", "content": ANSWER}


def sides(span_id: str) -> tuple[Any, Any]:
    """What went in and what came out, as the tools that keep both as JSON hold them."""
    if span_id == TOOL:
        return ARGUMENTS, RESULT
    if span_id == CALL:
        return [ASKED], CALLING
    return ([ASKED, CALLING, GIVEN], ANSWERED) if span_id == ANSWER_CALL else ({"question": GOAL}, ANSWER)


def langfuse_observations(*, as_text: int = 0) -> list[dict[str, Any]]:
    kinds = {AGENT: "AGENT", CALL: "GENERATION", TOOL: "TOOL", ANSWER_CALL: "GENERATION"}

    def coded(value: Any) -> Any:
        for _ in range(as_text):
            value = json.dumps(value)
        return value

    return [
        {
            "id": s,
            "traceId": TRACE,
            "type": kinds[s],
            "name": "tide" if s == TOOL else NAMES[s],
            "startTime": iso(s),
            "endTime": iso(s, 1),
            "parentObservationId": parent(s),
            "level": "DEFAULT",
            "statusMessage": None,
            "input": coded(sides(s)[0]),
            "output": coded(sides(s)[1]),
            "metadata": coded({"k": "v"}),
            **(
                {
                    "model": MODEL,
                    "usageDetails": {
                        "input": IN_TOKENS[s],
                        "output": OUT_TOKENS[s],
                        "total": IN_TOKENS[s] + OUT_TOKENS[s],
                    },
                }
                if s in IN_TOKENS
                else {"model": None, "usageDetails": {}}
            ),
        }
        for s in SPANS
    ]


def langfuse_trace(**more: Any) -> dict[str, Any]:
    given, answer = sides(AGENT)
    return {
        "id": TRACE,
        "name": "pilot",
        "timestamp": iso(AGENT),
        "projectId": "p",
        "sessionId": "s1",
        "tags": ["t"],
        "input": json.dumps(given),
        "output": json.dumps(answer),
        "metadata": "{}",
        **more,
    }


def langfuse_csv() -> bytes:
    names = [
        "id",
        "traceId",
        "traceName",
        "parentObservationId",
        "type",
        "name",
        "startTime",
        "endTime",
        "level",
        "statusMessage",
        "input",
        "output",
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*names, "model", "inputUsage", "outputUsage", "totalUsage"], extrasaction="ignore")
    writer.writeheader()
    for row in langfuse_observations(as_text=1):
        usage = row["usageDetails"]
        counts = {f"{side}Usage": usage.get(side, 0) for side in ("input", "output", "total")}
        writer.writerow({**row, **counts, "traceName": "pilot"})
    return text.getvalue().encode()


def langfuse_blob() -> list[dict[str, Any]]:
    snake = {
        "traceId": "trace_id",
        "startTime": "start_time",
        "endTime": "end_time",
        "statusMessage": "status_message",
        "parentObservationId": "parent_observation_id",
        "usageDetails": "usage_details",
        "model": "provided_model_name",
    }
    return [
        {
            **{snake.get(key, key): item for key, item in row.items()},
            "trace_name": "pilot",
            "session_id": "s1",
            "start_time": row["startTime"].replace("T", " ").rstrip("Z"),
            "end_time": row["endTime"].replace("T", " ").rstrip("Z"),
        }
        for row in langfuse_observations(as_text=1)
    ]


def langchain(message: dict[str, Any]) -> dict[str, Any]:
    kinds = {"user": "human", "assistant": "ai", "tool": "tool"}
    calls = (
        [{"name": "tide", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}] if "tool_calls" in message else []
    )
    more = {"tool_calls": calls} if calls else {}
    more.update({"tool_call_id": "call_1"} if message["role"] == "tool" else {})
    return {"type": kinds[message["role"]], "content": message["content"], **more}


def langsmith_bare() -> list[dict[str, Any]]:
    """Runs that name the run above them and nothing else of their trace, the last first."""
    beside = ("trace_id", "dotted_order", "parent_run_ids")
    return [{key: item for key, item in run.items() if key not in beside} for run in langsmith_runs()[::-1]]


def langsmith_runs() -> list[dict[str, Any]]:
    kinds = {AGENT: "chain", CALL: "llm", TOOL: "tool", ANSWER_CALL: "llm"}

    def run(s: str) -> dict[str, Any]:
        given, got = sides(s)
        if s in IN_TOKENS:
            inputs: Any = {"messages": [[langchain(one) for one in given]]}
            outputs: Any = {"generations": [[{"text": got["content"], "message": langchain(got)}]], "llm_output": {}}
        elif s == AGENT:
            inputs, outputs = {"messages": [langchain(ASKED)]}, {"messages": [langchain(ASKED), langchain(ANSWERED)]}
        else:
            inputs, outputs = given, {"output": got}
        counts = {"prompt_tokens": IN_TOKENS.get(s, 51), "completion_tokens": OUT_TOKENS.get(s, 9)}
        return {
            "id": s,
            "trace_id": AGENT,
            "parent_run_id": parent(s),
            "name": "tide" if s == TOOL else "run",
            "error": None,
            "run_type": kinds[s],
            "start_time": iso(s).rstrip("Z"),
            "end_time": iso(s, 1).rstrip("Z"),
            "status": "success",
            "inputs": inputs,
            "outputs": outputs,
            "session_id": "p1",
            "tags": ["t"],
            "events": [],
            "extra": {"metadata": {"ls_model_name": MODEL}},
            "dotted_order": f"20260921T000000Z{AGENT}",
            "feedback_stats": {"correct": {"n": 1, "avg": 1.0}} if s == AGENT else None,
            **counts,
            "total_tokens": sum(counts.values()),
        }

    return [run(s) for s in SPANS]


def langsmith_parquet() -> bytes:
    rows = [
        {key: json.dumps(item) if isinstance(item, (dict, list)) else item for key, item in row.items()}
        for row in langsmith_runs()
    ]
    return bytes(pd.DataFrame(rows).to_parquet())


def mlflow_artifact() -> dict[str, Any]:
    """`traces.json` as it lies among a run's artifacts: the spans in the schema of version 2, and no info."""
    spans = [
        {
            "name": span["name"],
            "context": {"span_id": f"0x{s}", "trace_id": f"0x{TRACE}"},
            "parent_id": None if parent(s) is None else f"0x{parent(s)}",
            "start_time": us(s, 0) * 1000,
            "end_time": us(s, 1) * 1000,
            "status_code": "OK",
            "status_message": "",
            "events": [],
            "attributes": {
                "mlflow.traceRequestId": json.dumps(TRACE),
                **{one["key"]: one["value"]["string_value"] for one in span["attributes"]},
            },
        }
        for s, span in zip(SPANS, mlflow_answer()["trace"]["spans"], strict=True)
    ]
    return {"spans": spans, "request": json.dumps({"messages": [ASKED]}), "response": json.dumps(ANSWER)}


def mlflow_answer() -> dict[str, Any]:
    kinds = {AGENT: "AGENT", CALL: "CHAT_MODEL", TOOL: "TOOL", ANSWER_CALL: "CHAT_MODEL"}

    def attributes(s: str) -> dict[str, str]:
        given, got = sides(s)
        held = {"mlflow.spanType": kinds[s]}
        if s in IN_TOKENS:
            given, got = {"messages": given, "model": MODEL}, {"choices": [{"message": got}]}
            counts = {"input_tokens": IN_TOKENS[s], "output_tokens": OUT_TOKENS[s]}
            held["mlflow.chat.tokenUsage"] = {**counts, "total_tokens": sum(counts.values())}  # type: ignore[assignment]
        held.update({"mlflow.spanInputs": given, "mlflow.spanOutputs": got})
        return {key: json.dumps(item) for key, item in held.items()}

    def own(one: str | None) -> str:
        return "" if one is None else base64.b64encode(bytes.fromhex(one)).decode()

    spans = [
        {
            "trace_id": own(TRACE),
            "span_id": own(s),
            "parent_span_id": own(parent(s)),
            "name": "tide" if s == TOOL else NAMES[s],
            "start_time_unix_nano": us(s, 0) * 1000,
            "end_time_unix_nano": us(s, 1) * 1000,
            "status": {"code": "STATUS_CODE_OK"},
            "attributes": [{"key": k, "value": {"string_value": v}} for k, v in attributes(s).items()],
        }
        for s in SPANS
    ]
    info = {"trace_id": TRACE, "state": "OK", "request_time": iso(AGENT), "trace_metadata": {"mlflow.user": "a"}}
    return {"trace": {"trace_info": info, "spans": spans}}


def opik_spans() -> list[dict[str, Any]]:
    kinds = {AGENT: "general", CALL: "llm", TOOL: "tool", ANSWER_CALL: "llm"}
    return [
        {
            "id": s,
            "project_id": "p",
            "trace_id": TRACE,
            "name": "tide" if s == TOOL else NAMES[s],
            "type": kinds[s],
            **({"parent_span_id": AGENT} if s != AGENT else {}),
            "start_time": iso(s),
            "end_time": iso(s, 1),
            "input": {"messages": sides(s)[0]} if s in IN_TOKENS else sides(s)[0],
            "output": {"choices": [{"message": sides(s)[1]}]} if s in IN_TOKENS else {"output": sides(s)[1]},
            "total_estimated_cost": 0.1,
            "last_updated_at": iso(s),
            "feedback_scores": [],
            **(
                {
                    "model": MODEL,
                    "usage": {
                        "prompt_tokens": IN_TOKENS[s],
                        "completion_tokens": OUT_TOKENS[s],
                        "total_tokens": IN_TOKENS[s] + OUT_TOKENS[s],
                    },
                }
                if s in IN_TOKENS
                else {}
            ),
        }
        for s in SPANS
    ]


def opik_file() -> dict[str, Any]:
    trace = {
        "id": TRACE,
        "project_id": "p",
        "name": "pilot",
        "start_time": iso(AGENT),
        "end_time": iso(AGENT, 1),
        "input": {"question": GOAL},
        "output": {"output": ANSWER},
        "thread_id": "th",
        "span_count": 4,
        "feedback_scores": [{"name": "right", "value": 1}],
        "last_updated_at": iso(AGENT),
    }
    return {"trace": trace, "spans": opik_spans(), "project_name": "harbour"}


def weave_calls() -> list[dict[str, Any]]:
    names = {
        AGENT: "pilot",
        CALL: "openai.chat.completions.create",
        TOOL: "tide",
        ANSWER_CALL: "openai.chat.completions.create",
    }
    kinds = {AGENT: "agent", TOOL: "tool"}
    return [
        {
            "id": s,
            "project_id": "e/p",
            "op_name": f"weave:///e/p/op/{names[s]}:abc",
            "trace_id": TRACE,
            "parent_id": parent(s),
            "started_at": iso(s),
            "ended_at": iso(s, 1),
            "exception": None,
            "attributes": {"kind": kinds[s]} if s in kinds else {"weave": {"client_version": "0.52"}},
            "inputs": {"model": MODEL, "messages": sides(s)[0]} if s in IN_TOKENS else sides(s)[0],
            "output": {"choices": [{"message": sides(s)[1]}]} if s in IN_TOKENS else sides(s)[1],
            "summary": {
                "weave": {"status": "success"},
                "usage": {
                    MODEL: {
                        "prompt_tokens": IN_TOKENS.get(s, 51),
                        "completion_tokens": OUT_TOKENS.get(s, 9),
                        "total_tokens": IN_TOKENS.get(s, 51) + OUT_TOKENS.get(s, 9),
                    }
                },
            },
        }
        for s in SPANS
    ]


# ---- sessions of coding agents ---------------------------------------------------------------------------------

SESSION = "0198c0de-0000-4000-8000-000000000001"


def claude_code(session: str = SESSION) -> list[dict[str, Any]]:
    def record(uuid: str, above: str | None, kind: str, second: int, message: dict[str, Any], **more: Any) -> Any:
        return {
            "parentUuid": above,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/w",
            "sessionId": session,
            "version": "2.1.0",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": f"2026-09-21T14:13:{20 + second:02d}.000Z",
            **more,
        }

    def answer(key: str, block: Any, tokens: tuple[int, int], **more: Any) -> dict[str, Any]:
        usage = {"input_tokens": 1, "cache_read_input_tokens": tokens[0] - 1, "output_tokens": tokens[1]}
        return {
            "id": key,
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [block],
            "usage": usage,
            **more,
        }

    return [
        {"type": "summary", "summary": "Tides", "leafUuid": "u5"},
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {"trackedFileBackups": {}}},
        record("u0", None, "user", 0, {"role": "user", "content": "Caveat: the messages below"}, isMeta=True),
        record("u1", "u0", "user", 0, {"role": "user", "content": GOAL}),
        record(
            "u2",
            "u1",
            "assistant",
            1,
            answer("m1", {"type": "thinking", "thinking": "Look it up.", "signature": "x"}, (20, 1)),
        ),
        record(
            "u3",
            "u2",
            "assistant",
            2,
            answer("m1", {"type": "tool_use", "id": "call_1", "name": "tide", "input": ARGUMENTS}, (20, 5)),
        ),
        record(
            "u4",
            "u3",
            "user",
            3,
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": RESULT}]},
            toolUseResult={"stdout": RESULT},
        ),
        record(
            "u5", "u4", "assistant", 4, answer("m2", {"type": "text", "text": ANSWER}, (31, 4), stop_reason="end_turn")
        ),
        {
            "type": "system",
            "subtype": "turn_duration",
            "durationMs": 4000,
            "uuid": "u6",
            "parentUuid": "u5",
            "sessionId": session,
            "isSidechain": False,
            "timestamp": "2026-09-21T14:13:25.000Z",
        },
    ]


def codex() -> list[dict[str, Any]]:
    def record(kind: str, second: int, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": f"2026-09-21T14:13:{20 + second:02d}.000Z", "type": kind, "payload": payload}

    def counts(tokens: tuple[int, int]) -> dict[str, Any]:
        usage = {
            "input_tokens": tokens[0],
            "cached_input_tokens": 2,
            "output_tokens": tokens[1],
            "total_tokens": sum(tokens),
        }
        return {"type": "token_count", "info": {"last_token_usage": usage}, "rate_limits": None}

    def said(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    return [
        record(
            "session_meta",
            0,
            {"id": SESSION, "cwd": "/w", "cli_version": "0.50", "base_instructions": {"text": SYSTEM}},
        ),
        record("response_item", 0, said("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>")),
        record("turn_context", 0, {"model": MODEL, "cwd": "/w", "approval_policy": "never"}),
        record("response_item", 1, said("user", GOAL)),
        record("event_msg", 1, {"type": "user_message", "message": GOAL}),
        record("event_msg", 2, {"type": "agent_reasoning", "text": "Look it up."}),
        record(
            "response_item",
            2,
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "Look it up."}],
                "encrypted_content": "gAAA",
            },
        ),
        record(
            "response_item",
            2,
            {"type": "function_call", "name": "tide", "arguments": json.dumps(ARGUMENTS), "call_id": "call_1"},
        ),
        record("event_msg", 2, counts((20, 5))),
        record("response_item", 3, {"type": "function_call_output", "call_id": "call_1", "output": RESULT}),
        record("event_msg", 4, {"type": "agent_message", "message": ANSWER}),
        record("response_item", 4, said("assistant", ANSWER)),
        record("event_msg", 4, counts((31, 4))),
        record("event_msg", 4, counts((31, 4))),
    ]


def atif() -> dict[str, Any]:
    def metrics(tokens: tuple[int, int]) -> dict[str, Any]:
        return {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "cost_usd": 0.1}

    return {
        "schema_version": "ATIF-v1.6",
        "session_id": SESSION,
        "agent": {"name": "terminus-2", "version": "2", "model_name": MODEL},
        "steps": [
            {"step_id": 1, "timestamp": iso(AGENT), "source": "user", "message": GOAL},
            {
                "step_id": 2,
                "timestamp": iso(CALL, 1),
                "source": "agent",
                "message": "",
                "reasoning_content": "Look it up.",
                "tool_calls": [{"tool_call_id": "call_1", "function_name": "tide", "arguments": ARGUMENTS}],
                "observation": {"results": [{"source_call_id": "call_1", "content": RESULT}]},
                "metrics": metrics((20, 5)),
            },
            {
                "step_id": 3,
                "timestamp": iso(ANSWER_CALL, 1),
                "source": "agent",
                "message": ANSWER,
                "metrics": metrics((31, 4)),
            },
        ],
        "final_metrics": {"total_prompt_tokens": 51},
    }


def openhands() -> list[dict[str, Any]]:
    def response(message: dict[str, Any], tokens: tuple[int, int]) -> dict[str, Any]:
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        return {"id": "r", "model": MODEL, "choices": [{"message": message, "index": 0}], "usage": usage}

    def call(message: dict[str, Any], tokens: tuple[int, int], name: str, key: str) -> dict[str, Any]:
        return {
            "function_name": name,
            "tool_call_id": key,
            "model_response": response(message, tokens),
            "total_calls_in_response": 1,
        }

    ending = {
        "id": "call_2",
        "type": "function",
        "function": {"name": "finish", "arguments": json.dumps({"message": ANSWER})},
    }
    finish = {"role": "assistant", "content": ANSWER, "tool_calls": [ending]}
    return [
        {
            "id": 0,
            "timestamp": "2026-09-21T14:13:20",
            "source": "agent",
            "action": "system",
            "args": {"content": SYSTEM},
            "message": SYSTEM,
        },
        {
            "id": 1,
            "timestamp": "2026-09-21T14:13:20",
            "source": "user",
            "action": "message",
            "args": {"content": GOAL},
            "message": GOAL,
        },
        {
            "id": 2,
            "timestamp": "2026-09-21T14:13:21",
            "source": "agent",
            "action": "run",
            "message": "Running",
            "args": {"command": "tide Brest", "thought": ""},
            "tool_call_metadata": call(CALLING, (20, 5), "tide", "call_1"),
        },
        {
            "id": 3,
            "timestamp": "2026-09-21T14:13:22",
            "source": "agent",
            "observation": "run",
            "cause": 2,
            "content": RESULT,
            "extras": {"command": "tide Brest", "metadata": {"exit_code": 0}},
            "message": "done",
            "tool_call_metadata": call(CALLING, (20, 5), "tide", "call_1"),
        },
        {
            "id": 4,
            "timestamp": "2026-09-21T14:13:23",
            "source": "agent",
            "action": "finish",
            "message": ANSWER,
            "args": {"final_thought": ANSWER, "outputs": {}},
            "tool_call_metadata": call(finish, (31, 4), "finish", "call_2"),
        },
    ]


def openhands_sdk() -> list[dict[str, Any]]:
    def text(value: str) -> list[dict[str, Any]]:
        return [{"type": "text", "text": value}]

    return [
        {
            "kind": "SystemPromptEvent",
            "id": "e0",
            "source": "agent",
            "timestamp": "2026-09-21T14:13:20",
            "tools": [],
            "system_prompt": {"type": "text", "text": SYSTEM},
        },
        {
            "kind": "MessageEvent",
            "id": "e1",
            "source": "user",
            "timestamp": "2026-09-21T14:13:20",
            "llm_message": {"role": "user", "content": text(GOAL)},
        },
        {
            "kind": "ActionEvent",
            "id": "e2",
            "source": "agent",
            "timestamp": "2026-09-21T14:13:21",
            "thought": [],
            "reasoning_content": "Look it up.",
            "tool_name": "tide",
            "tool_call_id": "call_1",
            "llm_response_id": "r",
            "action": {"kind": "TideAction", **ARGUMENTS},
            "tool_call": {"id": "call_1", "name": "tide", "arguments": json.dumps(ARGUMENTS)},
        },
        {
            "kind": "ObservationEvent",
            "id": "e3",
            "source": "environment",
            "timestamp": "2026-09-21T14:13:22",
            "tool_name": "tide",
            "tool_call_id": "call_1",
            "action_id": "e2",
            "observation": {"kind": "TideObservation", "content": text(RESULT), "is_error": False},
        },
        {
            "kind": "MessageEvent",
            "id": "e4",
            "source": "agent",
            "timestamp": "2026-09-21T14:13:23",
            "llm_message": {"role": "assistant", "content": text(ANSWER)},
        },
    ]


def swe_agent() -> dict[str, Any]:
    thought = "Look it up."
    return {
        "environment": "swe_main",
        "replay_config": "{}",
        "trajectory": [
            {
                "action": "tide Brest",
                "observation": RESULT,
                "response": thought,
                "thought": thought,
                "execution_time": 0.2,
                "state": {"cwd": "/w"},
                "query": [{"role": "user", "content": GOAL}],
            },
            {
                "action": "",
                "observation": "",
                "response": ANSWER,
                "thought": ANSWER,
                "execution_time": 0.0,
                "state": {},
            },
        ],
        "history": [
            {"role": "system", "content": SYSTEM, "agent": "main", "message_type": "system_prompt"},
            {"role": "user", "content": GOAL, "agent": "main", "message_type": "observation_first"},
            {
                "role": "assistant",
                "content": thought,
                "thought": thought,
                "action": "tide Brest",
                "agent": "main",
                "message_type": "action",
                "tool_calls": [OPENAI_CALL],
            },
            {
                "role": "tool",
                "content": RESULT,
                "agent": "main",
                "message_type": "observation",
                "tool_call_ids": ["call_1"],
            },
            {"role": "assistant", "content": ANSWER, "agent": "main", "message_type": "action", "action": ""},
        ],
        "info": {"exit_status": "submitted", "submission": None, "model_stats": {"tokens_sent": 51, "api_calls": 2}},
    }


def mini_swe_agent() -> dict[str, Any]:
    def response(tokens: tuple[int, int]) -> dict[str, Any]:
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        return {"model": MODEL, "usage": usage, "choices": []}

    return {
        "info": {
            "exit_status": "Submitted",
            "submission": ANSWER,
            "mini_version": "2.2",
            "model_stats": {"api_calls": 2},
            "config": {"model": {"model_name": MODEL}},
        },
        "trajectory_format": "mini-swe-agent-1.1",
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": GOAL},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [OPENAI_CALL],
                "extra": {"actions": [{"command": "tide"}], "response": response((20, 5)), "timestamp": 1790000001.0},
            },
            {
                "role": "tool",
                "content": RESULT,
                "tool_call_id": "call_1",
                "extra": {"returncode": 0, "timestamp": 1790000002.0},
            },
            {
                "role": "assistant",
                "content": ANSWER,
                "extra": {"response": response((31, 4)), "timestamp": 1790000003.0},
            },
            {"role": "exit", "content": ANSWER, "extra": {"exit_status": "Submitted", "submission": ANSWER}},
        ],
    }
