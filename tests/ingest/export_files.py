"""Small exports made here after each tool's documented schema: one question, one search, one answer."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import Any

TRACE = "0af7651916cd43dd8448eb211c80319c"
ROOT, CALL, TOOL = "00f067aa0ba902b7", "00f067aa0ba902b8", "00f067aa0ba902b9"
START_NS = 1_795_815_492_200_000_000  # 2026-11-27T21:38:12.2Z
QUESTION, ANSWER, FOUND = "Who wrote Solaris?", "Stanisław Lem", "Solaris, a novel by Stanisław Lem (1961)"
ASKED = {"role": "user", "content": QUESTION}
CALLING = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"query": "Solaris"}'}}
    ],
}


def iso(offset_s: float) -> str:
    return f"2026-11-27T21:38:{12.2 + offset_s:09.6f}Z"


def ns(offset_s: float) -> int:
    return START_NS + int(offset_s * 1e9)


def phoenix_rows() -> list[dict[str, Any]]:
    def row(span_id: str, parent: str | None, name: str, kind: str, begin: float, end: float, **attributes: Any) -> Any:
        return {
            "name": name,
            "span_kind": kind,
            "parent_id": parent,
            "start_time": iso(begin),
            "end_time": iso(end),
            "status_code": "OK",
            "status_message": "",
            "events": [],
            "context.span_id": span_id,
            "context.trace_id": TRACE,
            **{f"attributes.{key}": value for key, value in attributes.items()},
        }

    return [
        row(ROOT, None, "agent", "AGENT", 0, 3, **{"input.value": QUESTION, "output.value": ANSWER}),
        row(
            CALL, ROOT, "ChatOpenAI", "LLM", 0.5, 1,
            **{
                "llm.model_name": "gpt-4o-mini",
                "llm.token_count.prompt": 11,
                "llm.token_count.completion": 7,
                "llm.input_messages": [{"message.role": "user", "message.content": QUESTION}],
                "llm.output_messages": [
                    {
                        "message.role": "assistant",
                        "message.tool_calls": [
                            {
                                "tool_call.id": "call_1",
                                "tool_call.function.name": "search",
                                "tool_call.function.arguments": '{"query": "Solaris"}',
                            }
                        ],
                    }
                ],
                "metadata": {"thread": "t-7"},
            },
        ),
        row(
            TOOL, ROOT, "search", "TOOL", 1, 2,
            **{"tool.name": "search", "input.value": '{"query": "Solaris"}', "output.value": FOUND},
        ),
    ]  # fmt: skip


def langfuse_trace() -> dict[str, Any]:
    def observation(own: str, parent: str | None, kind: str, name: str, begin: float, end: float, **more: Any) -> Any:
        return {
            "id": own, "traceId": TRACE, "type": kind, "name": name, "startTime": iso(begin), "endTime": iso(end),
            "parentObservationId": parent, "level": "DEFAULT", "statusMessage": None, "metadata": {}, **more,
        }  # fmt: skip

    usage = {"input": 11, "output": 7, "total": 18}
    return {
        "id": TRACE, "projectId": "p-1", "name": "ask", "timestamp": iso(0), "input": QUESTION, "output": ANSWER,
        "sessionId": "s-9", "userId": "u-4", "metadata": {"run": "r-2"}, "tags": ["novels"],
        "scores": [{"id": "sc-1", "name": "correctness", "value": 1, "comment": "right: Lem", "observationId": CALL}],
        "observations": [
            observation(ROOT, None, "AGENT", "agent", 0, 3, input={"task": QUESTION}, output=ANSWER),
            observation(
                CALL, ROOT, "GENERATION", "chat", 0.5, 1, model="gpt-4o-mini", modelParameters={"temperature": 0},
                input=[ASKED], output=CALLING, usageDetails=usage,
            ),
            observation(TOOL, ROOT, "TOOL", "search", 1, 2, input={"query": "Solaris"}, output=FOUND),
        ],
    }  # fmt: skip


def mlflow_trace(version: int = 3) -> dict[str, Any]:
    def own_id(span_id: str | None) -> str | None:
        if span_id is None:
            return None
        return base64.b64encode(bytes.fromhex(span_id)).decode() if version == 3 else span_id

    def span(own: str, parent: str | None, kind: str, name: str, begin: float, end: float, given: Any, got: Any) -> Any:
        attributes = {
            "mlflow.traceRequestId": '"tr-1"',
            "mlflow.spanType": json.dumps(kind),
            "mlflow.spanInputs": json.dumps(given),
            "mlflow.spanOutputs": json.dumps(got),
        }
        if kind == "CHAT_MODEL":
            attributes["mlflow.chat.tokenUsage"] = '{"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}'
        if version == 2:
            return {
                "name": name, "context": {"trace_id": "0x" + TRACE, "span_id": "0x" + own},
                "parent_id": None if parent is None else "0x" + parent, "start_time": ns(begin), "end_time": ns(end),
                "status_code": "OK", "status_message": "", "attributes": attributes, "events": [],
            }  # fmt: skip
        return {
            "trace_id": base64.b64encode(bytes.fromhex(TRACE)).decode(), "span_id": own_id(own), "trace_state": "",
            "parent_span_id": own_id(parent) or "", "name": name, "start_time_unix_nano": ns(begin),
            "end_time_unix_nano": ns(end), "events": [], "attributes": attributes,
            "status": {"code": "STATUS_CODE_OK", "message": ""},
        }  # fmt: skip

    return {
        "info": {
            "trace_id": "tr-1", "request_time": iso(0), "state": "OK", "trace_metadata": {"mlflow.user": "ada"},
            "tags": {"mlflow.traceName": "ask"}, "execution_duration_ms": 3000,
            "assessments": [{"assessment_name": "correct", "feedback": {"value": True}, "rationale": "Lem is right"}],
        },
        "data": {
            "spans": [
                span(ROOT, None, "AGENT", "ask", 0, 3, {"question": QUESTION}, ANSWER),
                span(
                    CALL, ROOT, "CHAT_MODEL", "Completions", 0.5, 1, {"messages": [ASKED], "model": "gpt-4o-mini"},
                    {"id": "chatcmpl-1", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": CALLING}]},
                ),
                span(TOOL, ROOT, "TOOL", "search", 1, 2, {"query": "Solaris"}, FOUND),
            ]
        },
    }  # fmt: skip


def trulens_rows() -> list[dict[str, Any]]:
    def row(own: str, parent: str, name: str, begin: float, end: float, **attributes: Any) -> Any:
        return {
            "event_id": f"e-{own}", "record_type": "SPAN", "start_timestamp": iso(begin), "timestamp": iso(end),
            "resource_attributes": {"service.name": "trulens"},
            "trace": {"trace_id": str(int(TRACE, 16)), "span_id": str(int(own, 16)), "parent_id": parent},
            "record": {
                "name": name, "kind": "SPAN_KIND_TRULENS", "parent_span_id": parent, "status": "STATUS_CODE_UNSET",
            },
            "record_attributes": {
                "ai.observability.record_id": "rec-1",
                **{f"ai.observability.{key}": value for key, value in attributes.items()},
            },
        }  # fmt: skip

    root = str(int(ROOT, 16))
    return [
        row(
            ROOT, "", "ask", 0, 3,
            **{
                "span_type": "record_root", "record_root.input": QUESTION, "record_root.output": ANSWER,
                "record_root.ground_truth_output": "gold: Stanislaw Lem of Lviv",
            },
        ),
        row(
            CALL, root, "generate", 0.5, 1,
            **{
                "span_type": "generation", "cost.model": "gpt-4o-mini", "cost.num_prompt_tokens": 11,
                "cost.num_completion_tokens": 7, "cost.num_tokens": 18, "call.kwargs.prompt": QUESTION,
                "call.return": "search for it",
            },
        ),
        row(
            TOOL, root, "search", 1, 2,
            **{"span_type": "tool", "call.kwargs.query": "Solaris", "call.return": FOUND},
        ),
    ]  # fmt: skip


def inspect_log() -> dict[str, Any]:
    call = {"id": "call_1", "function": "search", "arguments": {"query": "Solaris"}, "type": "function"}
    calling = {"id": "m-2", "role": "assistant", "content": "", "source": "generate", "tool_calls": [call]}
    asked = {"id": "m-1", "role": "user", "content": QUESTION, "source": "input"}
    told = {"id": "m-3", "role": "tool", "content": "attachment://a1", "tool_call_id": "call_1", "function": "search"}
    answering = {"id": "m-4", "role": "assistant", "content": ANSWER, "source": "generate"}

    def output(message: dict[str, Any], text: str) -> dict[str, Any]:
        return {
            "model": "gpt-4o-mini", "completion": text, "time": 0.5,
            "choices": [{"message": message, "stop_reason": "stop"}],
            "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18},
        }  # fmt: skip

    def event(kind: str, own: str, within: str, begin: float, **more: Any) -> dict[str, Any]:
        return {"event": kind, "uuid": own, "span_id": within, "timestamp": iso(begin), **more}

    return {
        "version": 2, "status": "success",
        "eval": {"eval_id": "ev-1", "run_id": "run-1", "task": "novels", "model": "openai/gpt-4o-mini"},
        "samples": [
            {
                "id": 1, "epoch": 1, "uuid": "sample-1", "input": QUESTION, "target": "gold: Lem (Lwów)",
                "metadata": {"solution": "gold: look up 1961"},
                "messages": [asked, calling, told, answering], "output": output(answering, ANSWER),
                "scores": {"match": {"value": "C", "explanation": "gold: equals Lem"}},
                "attachments": {"a1": FOUND},
                "events": [
                    event("sample_init", "i-1", "", 0, sample={"input": QUESTION, "target": "gold: Lem (Lwów)"}),
                    {"event": "span_begin", "id": "sp-1", "parent_id": None, "type": "agent", "name": "react",
                     "timestamp": iso(0), "uuid": "b-1"},
                    event("model", "e-1", "sp-1", 0.5, model="openai/gpt-4o-mini", input=[asked],
                          output=output(calling, ""), tools=[{"name": "search"}], completed=iso(1)),
                    event("tool", "e-2", "sp-1", 1, id="call_1", function="search", arguments={"query": "Solaris"},
                          result="attachment://a1", completed=iso(2)),
                    event("model", "e-3", "sp-1", 2, model="openai/gpt-4o-mini", input=[asked, calling, told],
                          output=output(answering, ANSWER), completed=iso(3)),
                    event("info", "e-4", "sp-1", 3, data="done looking", source="react"),
                    {"event": "span_end", "id": "sp-1", "timestamp": iso(3), "uuid": "b-2"},
                    {"event": "span_begin", "id": "sp-2", "parent_id": None, "type": "scorer", "name": "match",
                     "timestamp": iso(3), "uuid": "b-3"},
                    event("model", "e-5", "sp-2", 3, model="grader", input=[{"role": "user", "content": "gold: Lem?"}],
                          output=output(answering, "gold: yes"), completed=iso(3)),
                    event("score", "e-6", "sp-2", 3, score={"value": "C"}, target="gold: Lem (Lwów)"),
                ],
            }
        ],
    }  # fmt: skip


def inspect_zip() -> bytes:
    log = inspect_log()
    samples = log.pop("samples")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": log["eval"]}))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(log))
    return packed.getvalue()


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()
