"""The story of `envelope_files` as vendors answer, download or store it, made here after their documentation."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.ingest import envelope_files as made
from tests.ingest.envelope_files import AGENT, CALL, NAMES, SPANS, TOOL, TRACE, US, gen_ai, iso, parent

Row = dict[str, Any]
KINDS = {AGENT: "agent", CALL: "llm", TOOL: "tool", made.ANSWER_CALL: "llm"}


def rows(row: Callable[[str], Row]) -> list[Row]:
    return [row(span) for span in SPANS]


def start(span: str) -> int:
    return made.START_US + US[span][0]


def length(span: str) -> int:
    return US[span][1] - US[span][0]


def flat(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name)


def text(attributes: Mapping[str, Any]) -> Row:
    return {key: str(value) for key, value in attributes.items()}


def decimal(span: str | None) -> str | None:
    return None if span is None else str(int(span, 16))


def messages(span: str) -> tuple[list[Row], list[Row]]:
    """What went into a call and came out of it, in the form of OpenAI."""
    arguments = json.dumps(made.ARGUMENTS)
    asked = {"role": "user", "content": made.GOAL}
    call = {"id": "call_1", "type": "function", "function": {"name": "tide", "arguments": arguments}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    given = {"role": "tool", "tool_call_id": "call_1", "content": made.RESULT}
    answer = {"role": "assistant", "content": made.ANSWER}
    return ([asked], [calling]) if span == CALL else ([asked, calling, given], [answer])


def sides(span: str) -> tuple[Any, Any]:
    """What went in and came out, whatever the span."""
    if span == AGENT:
        return made.GOAL, made.ANSWER
    return (made.ARGUMENTS, made.RESULT) if span == TOOL else messages(span)


def tokens(span: str, names: tuple[str, str, str]) -> Row:
    if span not in made.IN_TOKENS:
        return {}
    counts = made.IN_TOKENS[span], made.OUT_TOKENS[span]
    return dict(zip(names, (*counts, sum(counts)), strict=True))


COUNTS = ("input_tokens", "output_tokens", "total_tokens")


def openobserve(span: str) -> Row:
    return {
        "_timestamp": start(span), "trace_id": TRACE, "span_id": span, "reference_parent_span_id": parent(span) or "",
        "reference_ref_type": "ChildOf", "operation_name": NAMES[span], "span_kind": "1", "span_status": "UNSET",
        "start_time": start(span) * 1000, "end_time": (start(span) + length(span)) * 1000, "duration": length(span),
        "events": "[]", "links": "[]", **{flat(key): value for key, value in gen_ai(span).items()},
    }  # fmt: skip


def openobserve_llm(span: str) -> Row:
    plain = {key: item for key, item in openobserve(span).items() if not key.startswith("gen_ai")}
    side_in, side_out = map(json.dumps, sides(span))
    kind = {"llm": "GENERATION"}.get(KINDS[span], KINDS[span].upper())
    told = {"llm_observation_type": kind, "llm_input": side_in, "llm_output": side_out, "tool_name": "tide"}
    counts = tokens(span, ("llm_usage_tokens_input", "llm_usage_tokens_output", "llm_usage_tokens_total"))
    return {**plain, **told, **counts, "llm_model_name": made.MODEL}


def _datadog_side(side: Any) -> Row:
    if not isinstance(side, list):
        return {"value": side if isinstance(side, str) else json.dumps(side)}
    return {"messages": [
        {"role": one["role"], "content": one["content"] or "",
         **({"tool_calls": [{"name": "tide", "arguments": made.ARGUMENTS, "tool_id": "call_1", "type": "function"}]}
            if "tool_calls" in one else {})}
        for one in side
    ]}  # fmt: skip


def datadog(span: str) -> Row:
    """A span of LLM Observability as its export API gives it."""
    side_in, side_out = map(_datadog_side, sides(span))
    name = "tide" if span == TOOL else NAMES[span]
    return {"id": span, "type": "span", "attributes": {
        "trace_id": TRACE, "span_id": decimal(span), "parent_id": decimal(parent(span)) or "undefined", "name": name,
        "span_kind": KINDS[span], "ml_app": "sea", "start_ns": start(span) * 1000, "duration": length(span) * 1e3,
        "status": "ok", "input": side_in, "output": side_out, "tags": ["env:x"], "metrics": tokens(span, COUNTS),
        **({"model_name": made.MODEL} if KINDS[span] == "llm" else {}),
    }}  # fmt: skip


def datadog_sent(span: str) -> Row:
    """The same as the SDK sends it."""
    own = datadog(span)["attributes"]
    meta = {"span.kind": own["span_kind"], "input": own["input"], "output": own["output"], "model_name": made.MODEL}
    keys = ("trace_id", "span_id", "parent_id", "name", "start_ns", "duration", "status", "metrics")
    return {"_dd.stage": "raw", "event_type": "span", "spans": [{**{key: own[key] for key in keys}, "meta": meta}]}


def newrelic(span: str) -> Row:
    return {"id": span, "parentId": parent(span), "traceId": TRACE, "name": NAMES[span], "timestamp": start(span) / 1e3,
            "durationMs": length(span) / 1e3, "attributes": gen_ai(span)}  # fmt: skip


def newrelic_event(span: str) -> Row:
    above = {} if parent(span) is None else {"parent.id": parent(span)}
    return {"trace.id": TRACE, "id": span, "guid": span, **above, "name": NAMES[span], "timestamp": start(span) / 1e3,
            "duration.ms": length(span) / 1e3, **gen_ai(span)}  # fmt: skip


def honeycomb(span: str) -> Row:
    above = {} if parent(span) is None else {"trace.parent_id": parent(span)}
    return {"Timestamp": iso(span), "trace.trace_id": TRACE, "trace.span_id": span, **above, "name": NAMES[span],
            "duration_ms": length(span) / 1e3, **gen_ai(span)}  # fmt: skip


def honeycomb_event(span: str) -> Row:
    row = honeycomb(span)
    return {"time": row.pop("Timestamp"), "samplerate": 1, "data": row}


def grafana_frame() -> list[Row]:
    table = rows(lambda s: {
        "traceID": TRACE, "spanID": s, "parentSpanID": parent(s), "operationName": NAMES[s],
        "startTime": start(s) / 1e3, "duration": length(s) / 1e3,
        "tags": [{"key": key, "value": value} for key, value in gen_ai(s).items()],
    })  # fmt: skip
    fields = [{"name": name, "type": "string"} for name in table[0]]
    return [{"schema": {"fields": fields}, "data": {"values": [[row[name] for row in table] for name in table[0]]}}]


def sentry() -> Row:
    def attributes(span: str) -> Row:
        own = {
            key: item for key, item in gen_ai(span).items() if not key.endswith(("put.messages", "arguments", "result"))
        }
        if span == TOOL:
            return {**own, "gen_ai.tool.input": json.dumps(made.ARGUMENTS), "gen_ai.tool.output": made.RESULT}
        if span == AGENT:
            return own
        asked, (answer,) = messages(span)
        calls = [{"id": "call_1", "type": "function", "name": "tide", "arguments": json.dumps(made.ARGUMENTS)}]
        told = {"text": json.dumps([answer["content"]])} if answer["content"] else {"tool_calls": json.dumps(calls)}
        return {
            **own,
            "gen_ai.request.messages": json.dumps(asked),
            **{f"gen_ai.response.{k}": v for k, v in told.items()},
        }

    def span(one: str) -> Row:
        above = parent(one) or "e" * 16
        return {"trace_id": TRACE, "span_id": one, "parent_span_id": above, "op": "gen_ai.x", "description": NAMES[one],
                "start_timestamp": start(one) / 1e6, "timestamp": (start(one) + length(one)) / 1e6,
                "data": attributes(one)}  # fmt: skip

    root = {"trace": {"trace_id": TRACE, "span_id": "e" * 16, "op": "http.server", "status": "ok"}}
    times = {"start_timestamp": start(AGENT) / 1e6, "timestamp": start(AGENT) / 1e6 + 5}
    return {"event_id": "f" * 32, "type": "transaction", "transaction": "POST /ask", **times, "contexts": root,
            "spans": rows(span)}  # fmt: skip


def sentry_v2(span: str) -> Row:
    """A span by itself, its attributes with their types."""
    own = sentry()["spans"][SPANS.index(span)]
    typed = {key: {"type": type(item).__name__, "value": item} for key, item in own["data"].items()}
    kept = ("trace_id", "span_id", "start_timestamp")
    return {**{key: own[key] for key in kept}, "parent_span_id": parent(span), "name": own["description"],
            "end_timestamp": own["timestamp"], "attributes": typed}  # fmt: skip


def xray() -> Row:
    def segment(span: str) -> Row:
        own = gen_ai(span)
        is_long = {key: str(item)[:1] in "[{" for key, item in own.items()}
        return {
            "id": span, "name": NAMES[span],
            "start_time": start(span) / 1e6, "end_time": (start(span) + length(span)) / 1e6,
            "annotations": {flat(key): item for key, item in own.items() if not is_long[key]},
            "metadata": {"default": {key: item for key, item in own.items() if is_long[key]}},
        }  # fmt: skip

    root = {"trace_id": TRACE, **segment(AGENT), "subsegments": [segment(span) for span in SPANS if parent(span)]}
    return {"Traces": [{"Id": TRACE, "Segments": [{"Id": AGENT, "Document": json.dumps(root)}]}]}


def cloud_trace() -> Row:
    def span(one: str) -> Row:
        above = {} if parent(one) is None else {"parentSpanId": decimal(parent(one))}
        return {"spanId": decimal(one), **above, "name": NAMES[one], "startTime": iso(one), "endTime": iso(one, 1),
                "labels": text(gen_ai(one))}  # fmt: skip

    return {"projectId": "p", "traceId": TRACE, "spans": rows(span)}


def cloud_trace_v2(span: str) -> Row:
    above = {} if parent(span) is None else {"parentSpanId": parent(span)}
    held = {key: {"stringValue": {"value": item, "truncatedByteCount": 0}} for key, item in text(gen_ai(span)).items()}
    return {"name": f"projects/p/traces/{TRACE}/spans/{span}", "spanId": span, **above, "startTime": iso(span),
            "displayName": {"value": NAMES[span]}, "endTime": iso(span, 1),
            "attributes": {"attributeMap": held}}  # fmt: skip


def app_insights(span: str) -> Row:
    return {"timestamp": iso(span), "id": span, "operation_Id": TRACE, "operation_ParentId": parent(span) or TRACE,
            "name": NAMES[span], "duration": length(span) / 1e3, "success": "True",
            "customDimensions": json.dumps(text(gen_ai(span))), "itemType": "dependency"}  # fmt: skip


def app_insights_logs() -> list[Row]:
    """Spans without messages, and the messages as rows of the table of logs."""

    def plain(span: str) -> Row:
        own = {key: item for key, item in text(gen_ai(span)).items() if not key.endswith("messages")}
        return {**app_insights(span), "customDimensions": json.dumps(own)}

    def log(span: str, name: str, body: Row) -> Row:
        return {"timestamp": iso(span, 1), "id": "", "operation_Id": TRACE, "operation_ParentId": span,
                "itemType": "trace", "message": json.dumps(body),
                "customDimensions": json.dumps({"event.name": name})}  # fmt: skip

    logs = []
    for span in (CALL, made.ANSWER_CALL):
        asked, (answer,) = messages(span)
        logs += [log(span, f"gen_ai.{one['role']}.message", one) for one in asked]
        logs.append(log(span, "gen_ai.choice", {"index": 0, "message": answer}))
    return [*rows(plain), *logs]


def table(row: Callable[[str], Row]) -> tuple[list[str], list[list[Any]]]:
    all_rows = rows(row)
    names = list(dict.fromkeys(name for one in all_rows for name in one))
    return names, [[one.get(name, "") for name in names] for one in all_rows]


def csv_of(row: Callable[[str], Row], delimiter: str = ",") -> bytes:
    names, cells = table(row)
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([names, *cells])
    return out.getvalue().encode()


def log_analytics(span: str) -> Row:
    return {"TimeGenerated": iso(span), "Id": span, "OperationId": TRACE, "ParentId": parent(span) or TRACE,
            "Name": NAMES[span], "DurationMs": length(span) / 1e3,
            "Properties": json.dumps(text(gen_ai(span)))}  # fmt: skip


def elastic(span: str) -> Row:
    own, moment = gen_ai(span), {"timestamp": {"us": start(span)}, "trace": {"id": TRACE}}
    about = {"id": span, "name": NAMES[span], "duration": {"us": length(span)}}
    is_root = parent(span) is None
    where = (
        {"transaction": about}
        if is_root
        else {"span": about, "parent": {"id": parent(span)}, "transaction": {"id": AGENT}}
    )
    return {"_source": {
        **moment, **where, "processor": {"event": "transaction" if is_root else "span"},
        "labels": {flat(key): item for key, item in own.items() if isinstance(item, str)},
        "numeric_labels": {flat(key): float(item) for key, item in own.items() if isinstance(item, int)},
    }}  # fmt: skip


def elastic_flat(span: str) -> Row:
    """A row of Kibana's table."""
    kind, other = ("span", "transaction") if parent(span) else ("transaction", "span")
    return {"@timestamp": iso(span), "trace.id": TRACE, "parent.id": parent(span) or "", "processor.event": kind,
            f"{kind}.id": span, f"{other}.id": "", f"{kind}.name": NAMES[span], f"{kind}.duration.us": length(span),
            **{f"labels.{flat(key)}": item for key, item in gen_ai(span).items()}}  # fmt: skip


def elastic_fields(span: str) -> Row:
    return {"_id": span, "fields": {key: [item] for key, item in elastic_flat(span).items() if item != ""}}


def elastic_otel(span: str) -> Row:
    above = {} if parent(span) is None else {"parent_span_id": parent(span)}
    return {"_source": {"@timestamp": iso(span), "trace_id": TRACE, "span_id": span, **above, "name": NAMES[span],
                        "duration": length(span) * 1000, "attributes": gen_ai(span)}}  # fmt: skip


def opensearch(span: str) -> Row:
    own = {f"span.attributes.{key.replace('.', '@')}": item for key, item in gen_ai(span).items()}
    return {"_source": {"traceId": TRACE, "spanId": span, "parentSpanId": parent(span) or "", "name": NAMES[span],
                        "startTime": iso(span), "endTime": iso(span, 1), **own}}  # fmt: skip


def splunk(span: str) -> Row:
    own = {f"attributes.{key}": str(item) for key, item in gen_ai(span).items()}
    return {"preview": False, "result": {
        "trace_id": TRACE, "span_id": span, "parent_span_id": parent(span) or "", "name": NAMES[span],
        "start_time": str(start(span) * 1000), "end_time": str((start(span) + length(span)) * 1000), **own,
    }}  # fmt: skip


def clickhouse(span: str) -> Row:
    """As `FORMAT JSONEachRow` writes a 64 bit integer: as text."""
    row = next(one for one in made.clickhouse_rows() if one["SpanId"] == span)
    return {**row, "Duration": str(row["Duration"])}


def clickhouse_compact() -> Row:
    names, cells = table(clickhouse)
    return {"meta": [{"name": name, "type": "String"} for name in names], "data": cells, "rows": len(cells)}


def signoz(span: str) -> Row:
    own = gen_ai(span)
    return {"timestamp": iso(span), "data": {
        "traceID": TRACE, "spanID": span, "parentSpanID": parent(span) or "", "name": NAMES[span],
        "durationNano": length(span) * 1000,
        "attributes_string": {key: item for key, item in own.items() if isinstance(item, str)},
        "attributes_number": {key: item for key, item in own.items() if isinstance(item, int)},
    }}  # fmt: skip


def signoz_trace() -> list[Row]:
    names = ["__time", "SpanId", "TraceId", "Name", "DurationNano", "TagsKeys", "TagsValues", "References"]
    events = [
        [start(s) // 1000, s, TRACE, NAMES[s], str(length(s) * 1000), [*gen_ai(s)], [*text(gen_ai(s)).values()],
         [f"{{TraceId={TRACE}, SpanId={parent(s) or ''}, RefType=CHILD_OF}}"]]
        for s in SPANS
    ]  # fmt: skip
    return [{"columns": names, "events": events}]


def braintrust(span: str) -> Row:
    side_in, side_out = sides(span)
    kind = {"agent": "task"}.get(KINDS[span], KINDS[span])
    name = "tide" if span == TOOL else NAMES[span]
    return {
        "id": f"row-{span}", "span_id": span, "root_span_id": TRACE,
        "span_parents": [parent(span)] if parent(span) else None,
        "created": iso(span), "span_attributes": {"name": name, "type": kind}, "input": side_in,
        "output": side_out[0] if KINDS[span] == "llm" else side_out, "metadata": {"model": made.MODEL},
        "metrics": {"start": start(span) / 1e6, "end": (start(span) + length(span)) / 1e6,
                    **tokens(span, ("prompt_tokens", "completion_tokens", "tokens"))},
    }  # fmt: skip


def laminar(span: str) -> Row:
    side_in, side_out = sides(span)
    counts = tokens(span, tuple(f"gen_ai.usage.{name}" for name in COUNTS))  # type: ignore[arg-type]
    name = "tide" if span == TOOL else NAMES[span]
    kind = {"agent": "DEFAULT"}.get(KINDS[span], KINDS[span].upper())
    return {"spanId": span, "traceId": TRACE, "parentSpanId": parent(span), "name": name, "spanType": kind,
            "startTime": iso(span), "endTime": iso(span, 1), "input": side_in, "output": side_out,
            "attributes": {"gen_ai.request.model": made.MODEL, **counts}}  # fmt: skip


def agentops() -> Row:
    def nested(span: str) -> Row:
        tree: Row = {}
        for name, item in gen_ai(span).items():
            *above, last = name.split(".")
            node = tree
            for part in above:
                node = node.setdefault(part, {})
            node[last] = item
        return tree

    def span(one: str) -> Row:
        return {"span_id": one, "parent_span_id": parent(one), "span_name": NAMES[one], "start_time": iso(one),
                "end_time": iso(one, 1), "span_attributes": nested(one), "event_names": []}  # fmt: skip

    return {"trace_id": TRACE, "spans": rows(span)}


def galileo() -> Row:
    def span(one: str) -> Row:
        side_in, side_out = sides(one)
        return {"type": KINDS[one], "id": one, "name": "tide" if one == TOOL else NAMES[one], "created_at": iso(one),
                "input": side_in if one != TOOL else json.dumps(side_in), "output": side_out, "model": made.MODEL,
                "metrics": {"duration_ns": length(one) * 1000,
                            **tokens(one, ("num_input_tokens", "num_output_tokens", "num_total_tokens"))}}  # fmt: skip

    inner = [span(one) for one in SPANS if parent(one)]
    return {"traces": [{"type": "trace", "id": TRACE, "spans": [{**span(AGENT), "spans": inner}]}]}


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


def lines(row: Callable[[str], Row]) -> bytes:
    return "\n".join(json.dumps(one) for one in rows(row)).encode()


def dynatrace(span: str) -> Row:
    above = {} if parent(span) is None else {"span.parent_id": parent(span)}
    return {"trace.id": TRACE, "span.id": span, **above, "span.name": NAMES[span], "start_time": iso(span),
            "end_time": iso(span, 1), "span.kind": "internal", **gen_ai(span)}  # fmt: skip


def axiom(span: str) -> Row:
    above = {} if parent(span) is None else {"parent_span_id": parent(span)}
    own = agentops()["spans"][SPANS.index(span)]["span_attributes"]
    return {"_time": iso(span), "data": {"trace_id": TRACE, "span_id": span, **above, "name": NAMES[span],
                                         "duration": f"{length(span) / 1e6}s", "attributes": own}}  # fmt: skip


def jaeger_like(span: str) -> Row:
    """Jaeger's names with tags in one object, as some stores give them."""
    return {"traceID": TRACE, "spanID": span, "parentSpanID": parent(span) or "", "operationName": NAMES[span],
            "startTime": start(span), "duration": length(span), "tags": gen_ai(span)}  # fmt: skip


def keywords_ai(span: str) -> Row:
    side_in, side_out = sides(span)
    kind = {"llm": "chat"}.get(KINDS[span], KINDS[span])
    return {
        "id": f"log-{span}", "trace_unique_id": TRACE, "span_unique_id": span, "span_parent_id": parent(span),
        "span_name": "tide" if span == TOOL else NAMES[span], "log_type": kind, "start_time": iso(span),
        "timestamp": iso(span, 1), "latency": length(span) / 1e6, "model": made.MODEL, "input": json.dumps(side_in),
        "output": json.dumps(side_out[0] if KINDS[span] == "llm" else side_out), "status": "success",
        **tokens(span, ("prompt_tokens", "completion_tokens", "total_request_tokens")),
    }  # fmt: skip


def keywords_ai_tree() -> Row:
    """A trace as Keywords AI's API answers it, each span with its children."""
    inner = [{**keywords_ai(span), "children": []} for span in SPANS if parent(span)]
    return {"trace_unique_id": TRACE, "name": "pilot", "span_tree": [{**keywords_ai(AGENT), "children": inner}]}


def lunary(span: str) -> Row:
    side_in, side_out = sides(span)
    used = tokens(span, ("prompt", "completion", "total"))
    return {
        "id": TRACE if span == AGENT else span, "type": KINDS[span], "parentRunId": TRACE if parent(span) else None,
        "name": "tide" if span == TOOL else made.MODEL if KINDS[span] == "llm" else NAMES[span], "createdAt": iso(span),
        "endedAt": iso(span, 1), "input": side_in, "output": side_out[0] if KINDS[span] == "llm" else side_out,
        "status": "success", "projectId": "p", **({"tokens": used} if used else {}),
        **({"model": made.MODEL} if KINDS[span] == "llm" else {}),
    }  # fmt: skip


def mastra(span: str) -> Row:
    """A span as Mastra's exporters are given it."""
    side_in, side_out = sides(span)
    kind = {"agent": "agent_run", "llm": "model_generation", "tool": "tool_call"}[KINDS[span]]
    own = {"toolId": "tide"} if span == TOOL else {"agentId": "pilot"}
    used = tokens(span, ("inputTokens", "outputTokens", "totalTokens"))
    return {
        "id": span, "traceId": TRACE, "parentSpanId": parent(span), "name": f"{kind}: 'x'", "type": kind,
        "startTime": iso(span), "endTime": iso(span, 1), "isEvent": False, "input": side_in,
        "output": side_out[0] if KINDS[span] == "llm" else side_out,
        "attributes": {"model": made.MODEL, "usage": used} if used else own,
    }  # fmt: skip


def mastra_stored(span: str) -> Row:
    names = {"id": "spanId", "type": "spanType", "startTime": "startedAt", "endTime": "endedAt"}
    return {names.get(key, key): item for key, item in mastra(span).items()}


def plain(span: str) -> Row:
    """A span as a team of its own writes it."""
    return {"trace_id": TRACE, "span_id": span, "parent_span_id": parent(span), "name": NAMES[span],
            "start_time": iso(span), "end_time": iso(span, 1), "attributes": gen_ai(span)}  # fmt: skip


def nested(span: str) -> Row:
    """The same with its attributes as objects in objects."""
    tree: Row = {}
    for key, item in gen_ai(span).items():
        *above, last = key.split(".")
        holder = tree
        for part in above:
            holder = holder.setdefault(part, {})
        holder[last] = item
    return {**plain(span), "attributes": tree}


def lightstep() -> Row:
    def span(one: str) -> Row:
        tags = {**gen_ai(one), **({"parent_span_guid": parent(one)} if parent(one) else {})}
        return {"span-id": one, "trace-id": TRACE, "span-name": NAMES[one], "start-time-micros": start(one),
                "end-time-micros": start(one) + length(one), "is-error": False, "tags": tags, "logs": []}  # fmt: skip

    return {"data": [{"type": "trace", "id": AGENT, "attributes": {"custom-data": []},
                      "relationships": {"reporters": [], "spans": rows(span)}}]}  # fmt: skip


FILES: dict[str, Callable[[], bytes]] = {
    "keywords ai": lambda: lines(keywords_ai),
    "keywords ai tree": lambda: dumped(keywords_ai_tree()),
    "lunary": lambda: lines(lunary),
    "lunary page": lambda: dumped({"data": rows(lunary), "total": 4}),
    "lightstep": lambda: dumped(lightstep()),
    "plain rows": lambda: lines(plain),
    "nested attributes": lambda: lines(nested),
    "attributes encoded twice": lambda: dumped([
        {**one, "attributes": json.dumps(json.dumps(one["attributes"]))} for one in rows(plain)]),
    "spans in spans": lambda: dumped({**plain(AGENT), "children": [
        {key: item for key, item in plain(one).items() if key not in ("trace_id", "parent_span_id")}
        for one in SPANS if parent(one)]}),
    "mastra": lambda: dumped(rows(mastra)),
    "mastra's store": lambda: dumped({"traceId": TRACE, "spans": rows(mastra_stored)}),
    "openobserve": lambda: dumped({"hits": rows(openobserve), "total": 4}),
    "openobserve lines": lambda: lines(openobserve),
    "openobserve llm": lambda: dumped({"hits": rows(openobserve_llm)}),
    "datadog export": lambda: dumped({"data": rows(datadog), "meta": {"status": "done"}}),
    "datadog sent": lambda: dumped(rows(datadog_sent)),
    "new relic trace": lambda: dumped({"data": {"actor": {"distributedTracing": {"trace": {
        "traceId": TRACE, "durationMs": 4, "spans": rows(newrelic)}}}}}),
    "new relic events": lambda: dumped({"results": [{"events": rows(newrelic_event)}]}),
    "honeycomb rows": lambda: dumped(rows(honeycomb)),
    "honeycomb events": lambda: dumped(rows(honeycomb_event)),
    "honeycomb csv": lambda: csv_of(honeycomb),
    "honeycomb csv with semicolons": lambda: csv_of(honeycomb, ";"),
    "grafana frame": lambda: dumped(grafana_frame()),
    "sentry": lambda: dumped(sentry()),
    "sentry v2": lambda: dumped({"data": rows(sentry_v2)}),
    "x-ray": lambda: dumped(xray()),
    "cloud trace": lambda: dumped(cloud_trace()),
    "cloud trace list": lambda: dumped({"traces": [cloud_trace()]}),
    "cloud trace v2": lambda: dumped({"spans": rows(cloud_trace_v2)}),
    "app insights": lambda: dumped({"tables": [{"name": "PrimaryResult", "columns": [
        {"name": name, "type": "string"} for name in table(app_insights)[0]], "rows": table(app_insights)[1]}]}),
    "app insights csv": lambda: csv_of(app_insights),
    "app insights, messages as logs": lambda: dumped(app_insights_logs()),
    "log analytics": lambda: dumped(rows(log_analytics)),
    "elastic": lambda: dumped({"hits": {"hits": rows(elastic)}}),
    "elastic fields": lambda: dumped({"hits": {"hits": rows(elastic_fields)}}),
    "kibana csv": lambda: csv_of(elastic_flat),
    "elastic otel": lambda: dumped({"hits": {"hits": rows(elastic_otel)}}),
    "opensearch lines": lambda: lines(opensearch),
    "splunk lines": lambda: lines(splunk),
    "clickhouse each": lambda: lines(clickhouse),
    "clickhouse compact": lambda: dumped(clickhouse_compact()),
    "clickhouse tsv": lambda: csv_of(clickhouse, "\t"),
    "signoz rows": lambda: dumped({"data": {"result": [{"list": rows(signoz)}]}}),
    "signoz trace": lambda: dumped(signoz_trace()),
    "braintrust": lambda: dumped({"events": rows(braintrust), "cursor": None}),
    "laminar": lambda: dumped(rows(laminar)),
    "agentops": lambda: dumped(agentops()),
    "galileo": lambda: dumped(galileo()),
    "dynatrace": lambda: dumped({"result": {"records": rows(dynatrace), "types": []}}),
    "axiom": lambda: dumped({"matches": rows(axiom)}),
    "jaeger's names": lambda: lines(jaeger_like),
    "otlp, encoded twice": lambda: dumped(json.dumps({"resourceSpans": made.groups()})),
    "clickhouse lines, encoded twice": lambda: b"\n".join(dumped(json.dumps(one)) for one in rows(clickhouse)),
}  # fmt: skip
