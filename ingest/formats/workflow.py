"""Executions of workflows: n8n (its API with the data of each node), Dify (the nodes of a run), Flowise (agent flows).

Each execution is a trace, each run of a node a span below it; the nodes of models hold messages, those of tools a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tracejury.ingest.conventions.message_json import read_messages
from tracejury.ingest.conventions.parts import arguments_text
from tracejury.ingest.formats.exports import Shaped, as_text, shaped_trace
from tracejury.ingest.formats.fields import Fields, objects_in, time_of_any
from tracejury.ingest.formats.otel import take_documents
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.spans import kept
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.times import integer
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, SpanDraft, SpanKind, Trace

NAME = "workflow"

_SPEAKER = re.compile(r"(?m)^(System|Human|AI|Tool): ")
_ROLES = {"human": "user", "ai": "assistant"}
_ASKED = ("chatInput", "sys.query", "query", "question", "input", "prompt", "message", "text")
_ANSWERED = ("output", "answer", "text", "response", "content", "result")

_N8N_PORTS: dict[str, SpanKind] = {"ai_languageModel": "LLM", "ai_tool": "TOOL", "ai_retriever": "RETRIEVER"}
_DIFY_NODES: dict[str, SpanKind] = {"llm": "LLM", "tool": "TOOL", "agent": "AGENT", "knowledge-retrieval": "RETRIEVER"}
_FLOWISE_NODES: dict[str, SpanKind] = {"llmAgentflow": "LLM", "agentAgentflow": "LLM", "toolAgentflow": "TOOL"}

Record = dict[str, Json]


@dataclass(slots=True)
class _Node:
    """One run of a node, whatever the tool."""

    name: str
    kind: SpanKind = "CHAIN"
    parent: str | None = None
    """The name of the node that called it; None below the execution itself."""
    inputs: Json = None
    outputs: Json = None
    asked: list[Message] = field(default_factory=list)
    answered: list[Message] = field(default_factory=list)
    start: int | None = None
    end: int | None = None
    error: str | None = None
    model: str | None = None
    usage: Record = field(default_factory=dict)
    rest: Record = field(default_factory=dict)


@dataclass(slots=True)
class _Execution:
    trace_id: str
    nodes: list[_Node]
    name: str | None = None
    start: int | None = None
    end: int | None = None
    error: str | None = None


def sniff(sample: FileSample) -> bool:
    """The data of an execution of n8n, of nodes of Dify, of an agent flow of Flowise."""
    keys = sample.keys
    is_n8n = {"resultData", "runData"} <= keys or b'\\"resultData\\"' in sample.data
    return is_n8n or {"node_type", "inputs", "outputs", "node_id"} <= keys or "executionData" in keys


def read(source: Source) -> Iterator[Trace | Rejected]:
    """The trace of each execution."""
    documents: list[Json] = []
    warnings: list[str] = []
    bad = yield from take_documents((source,), lambda value, _: documents.append(value), warnings)
    name = source.stem
    executions = [one for document in documents for one in _executions(document, name) if one.nodes]
    if not executions and not bad:
        remedy = "ask n8n for it with includeData=true, or export the run with its nodes"
        raise IngestError("holds no data of a node that ran", remedy=remedy)
    names = [one.trace_id for one in executions]
    for number, one in enumerate(executions, 1):
        one.trace_id = one.trace_id if names.count(one.trace_id) == 1 else f"{one.trace_id}-{number}"
        yield _trace(one, source, warnings)


def _executions(value: Json, name: str) -> Iterator[_Execution]:
    value = opened(value)
    if isinstance(value, list):
        rows = [one for one in value if isinstance(one, dict)]
        if rows and _is_dify(rows[0]):
            yield _dify(rows, {}, name)
        else:
            yield from (inner for one in rows for inner in _executions(one, name))
    elif isinstance(value, dict):
        data = opened(value.get("data"))
        if isinstance(data, dict) and isinstance(data.get("resultData"), dict):
            yield _n8n(value, data["resultData"], name)  # type: ignore[arg-type]
        elif isinstance(value.get("resultData"), dict):
            yield _n8n({}, value["resultData"], name)  # type: ignore[arg-type]
        elif "executionData" in value:
            yield _flowise(value, name)
        else:
            listed = next((items for key in ("data", "node_executions", "results") if isinstance(
                items := opened(value.get(key)), list)), [])  # fmt: skip
            rows = [one for one in listed if isinstance(one, dict)]
            if rows and _is_dify(rows[0]):
                yield _dify(rows, value, name)
            else:
                yield from (inner for one in rows for inner in _executions(one, name))


# n8n ------------------------------------------------------------------------------------------------------------


def _n8n(value: Record, result: Record, name: str) -> _Execution:
    workflow_data = value.get("workflowData")
    workflow = workflow_data if isinstance(workflow_data, dict) else {}
    types = {as_text(node.get("name")): as_text(node.get("type")) or "" for node in objects_in(workflow.get("nodes"))}
    runs = result.get("runData")
    nodes = [
        _n8n_node(node, run, types.get(node, ""))
        for node, some in (runs.items() if isinstance(runs, dict) else ())
        for run in objects_in(some)
    ]
    error = result.get("error")
    return _Execution(
        as_text(value.get("id")) or name, nodes, as_text(workflow.get("name")), time_of_any(value.get("startedAt")),
        time_of_any(value.get("stoppedAt")), as_text(error.get("message")) if isinstance(error, dict) else None,
    )  # fmt: skip


def _n8n_node(name: str, run: Record, type_name: str) -> _Node:
    data, override = run.get("data"), run.get("inputOverride")
    port = next(iter(data), "main") if isinstance(data, dict) else "main"
    calls = objects_in(run.get("source"))
    error = run.get("error")
    node = _Node(
        name, _N8N_PORTS.get(port, "CHAIN"),
        parent=as_text(calls[0].get("previousNode")) if port != "main" and calls else None,
        inputs=_items(override, port), outputs=_items(data, port), start=time_of_any(run.get("startTime")),
        error=as_text(error.get("message")) if isinstance(error, dict) else None,
        rest={"n8n.type": type_name} if type_name else {},
    )  # fmt: skip
    if "langchain.agent" in type_name:
        node.kind = "AGENT"
    took = integer(run.get("executionTime"))
    node.end = None if node.start is None or took is None else node.start + took * 1000
    if node.kind == "LLM":
        _n8n_model(node)
    return node


def _items(value: Json, port: str) -> Json:
    """The JSON of the items at a port of a node; of one item alone it itself."""
    outputs = value.get(port) if isinstance(value, dict) else None
    items = [one.get("json") for some in (outputs if isinstance(outputs, list) else ()) for one in objects_in(some)]
    return items[0] if len(items) == 1 else items or None


def _n8n_model(node: _Node) -> None:
    inputs, outputs = (one if isinstance(one, dict) else {} for one in (node.inputs, node.outputs))
    listed = inputs.get("messages")
    for words in listed if isinstance(listed, list) else ():
        node.asked += _spoken(words) if isinstance(words, str) else []
    response = outputs.get("response")
    generations = response.get("generations") if isinstance(response, dict) else None
    for some in generations if isinstance(generations, list) else ():
        for one in objects_in(some if isinstance(some, list) else [some]):
            node.answered.append(Message("assistant", as_text(one.get("text"))))
    usage = outputs.get("tokenUsage", outputs.get("tokenUsageEstimate"))
    node.usage = usage if isinstance(usage, dict) and "tokenUsage" in outputs else {}
    options = inputs.get("options")
    node.model = as_text(options.get("model", options.get("model_name"))) if isinstance(options, dict) else None


def _spoken(words: str) -> list[Message]:
    """The messages in a text that names the speaker of each."""
    first, *pieces = _SPEAKER.split(words)
    roles = (_ROLES.get(who.lower(), who.lower()) for who in pieces[::2])
    messages = [Message(role, text.strip("\n")) for role, text in zip(roles, pieces[1::2], strict=True)]
    return [*([Message("user", first.strip("\n"))] if first.strip() else []), *messages]


# Dify, Flowise --------------------------------------------------------------------------------------------------


def _is_dify(row: Record) -> bool:
    return "node_type" in row and "outputs" in row


def _dify(rows: Sequence[Record], value: Record, name: str) -> _Execution:
    own = next((as_text(row.get("workflow_run_id")) for row in rows if row.get("workflow_run_id")), None)
    ordered = sorted(rows, key=lambda row: integer(row.get("index")) or 0)
    trace_id = own or as_text(value.get("workflow_run_id", value.get("id"))) or name
    return _Execution(trace_id, [_dify_node(row) for row in ordered])


def _dify_node(row: Record) -> _Node:
    process, outputs = opened(row.get("process_data")), opened(row.get("outputs"))
    process_data = process if isinstance(process, dict) else {}
    node = _Node(
        as_text(row.get("title")) or as_text(row.get("node_id")) or "node",
        _DIFY_NODES.get(str(row.get("node_type")), "CHAIN"), inputs=opened(row.get("inputs")), outputs=outputs,
        start=time_of_any(row.get("created_at")), end=time_of_any(row.get("finished_at")),
        error=as_text(row.get("error")) or None, model=as_text(process_data.get("model_name")),
        rest={"dify.node_type": row.get("node_type"), "dify.node_id": row.get("node_id")},
    )  # fmt: skip
    if node.kind == "LLM":
        node.asked = [
            Message(as_text(one.get("role")) or "user", as_text(one.get("text")))
            for one in objects_in(process_data.get("prompts"))
        ]
        text = outputs.get("text") if isinstance(outputs, dict) else outputs
        node.answered = [Message("assistant", as_text(text))] if text else []
        usage = process_data.get("usage", outputs.get("usage") if isinstance(outputs, dict) else None)
        node.usage = usage if isinstance(usage, dict) else {}
    return node


def _flowise(value: Record, name: str) -> _Execution:
    nodes = [_flowise_node(one) for one in objects_in(opened(value.get("executionData")))]
    trace_id = as_text(value.get("id")) or as_text(value.get("sessionId")) or name
    start, end = (time_of_any(value.get(key)) for key in ("createdDate", "updatedDate"))
    return _Execution(trace_id, nodes, start=start, end=end)


def _flowise_node(row: Record) -> _Node:
    node_data = row.get("data")
    data = node_data if isinstance(node_data, dict) else {}
    inputs, outputs = opened(data.get("input")), opened(data.get("output"))
    input_fields, output_fields = (one if isinstance(one, dict) else {} for one in (inputs, outputs))
    kind = _FLOWISE_NODES.get(str(data.get("name")), "CHAIN")
    times = output_fields.get("timeMetadata")
    moments = times if isinstance(times, dict) else {}
    node = _Node(
        as_text(row.get("nodeLabel")) or as_text(row.get("nodeId")) or "node", kind, inputs=inputs, outputs=outputs,
        start=time_of_any(moments.get("start")), end=time_of_any(moments.get("end")),
        error=as_text(data.get("error")) or None,
    )  # fmt: skip
    if kind == "LLM":
        messages = read_messages(input_fields.get("messages"))
        node.asked = [one.message for one in messages or ()]
        node.answered = (
            [Message("assistant", as_text(output_fields.get("content")))] if output_fields.get("content") else []
        )
        usage = output_fields.get("usageMetadata")
        node.usage = usage if isinstance(usage, dict) else {}
        model = input_fields.get("llmModelConfig")
        node.model = as_text(model.get("modelName")) if isinstance(model, dict) else None
    return node


# spans ----------------------------------------------------------------------------------------------------------


def _trace(execution: _Execution, source: Source, warnings: Sequence[str]) -> Trace:
    own = execution.trace_id
    root = SpanDraft(span_id=own, parent_span_id=None, name=execution.name or "execution", kind="CHAIN")
    ids = {node.name: f"{own}-{number}" for number, node in enumerate(execution.nodes, 1)}
    shaped = [_shaped(node, f"{own}-{number}", ids.get(node.parent or "", own))
              for number, node in enumerate(execution.nodes, 1)]  # fmt: skip
    starts = [one.start for one in execution.nodes if one.start is not None]
    ends = [one.end for one in execution.nodes if one.end is not None]
    root.start_time = execution.start if execution.start is not None else min(starts, default=None)
    root.end_time = execution.end if execution.end is not None else max(ends, default=None)
    root.status, root.status_message = ("ERROR" if execution.error else "UNSET"), execution.error
    outer = [node for node in execution.nodes if node.parent is None]
    goal = next(
        (text for node in outer for value in (node.inputs, node.outputs) if (text := _word(value, _ASKED))), None
    )
    answer = next((text for node in reversed(outer) if (text := _word(node.outputs, _ANSWERED))), None)
    root.input, root.output = goal, answer
    return shaped_trace(
        [Shaped(root), *shaped], trace_id=own, format=NAME, source=source, goal=goal, final_answer=answer,
        warnings=warnings,
    )  # fmt: skip


def _word(value: Json, names: Sequence[str]) -> str | None:
    fields = value if isinstance(value, dict) else {}
    return next((words for name in names if isinstance(words := fields.get(name), str) and words), None)


def _shaped(node: _Node, span_id: str, parent: str) -> Shaped:
    draft = SpanDraft(span_id=span_id, parent_span_id=parent, name=node.name, kind=node.kind)
    draft.start_time, draft.end_time, draft.model = node.start, node.end, node.model
    draft.status, draft.status_message = ("ERROR" if node.error else "UNSET"), node.error
    draft.attributes = {key: kept(item) for key, item in node.rest.items() if item is not None}
    _count(draft, node.usage)
    if node.kind == "TOOL":
        output = node.outputs.get("response", node.outputs) if isinstance(node.outputs, dict) else node.outputs
        draft.tool_name, draft.tool_arguments = node.name, arguments_text(node.inputs)
        draft.output = as_text(output)
    else:
        draft.input = as_text(node.inputs) if not node.asked else None
        draft.output = as_text(node.outputs) if not node.answered else None
    return Shaped(draft, node.asked, node.answered)


def _count(draft: SpanDraft, usage: Record) -> None:
    counts = Fields(usage)
    draft.prompt_tokens = integer(counts.take("prompttokens", "inputtokens"))
    draft.completion_tokens = integer(counts.take("completiontokens", "outputtokens"))
    draft.total_tokens = integer(counts.take("totaltokens"))
