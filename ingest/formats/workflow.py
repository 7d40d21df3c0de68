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
from tracejury.ingest.formats.fields import Fields, plain_name
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
    usage: Fields = field(default_factory=lambda: Fields({}))
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
    executions = [one for document in documents for one in _executions(document, name, warnings) if one.nodes]
    if not executions and not bad:
        remedy = "ask n8n for it with includeData=true, or export the run with its nodes"
        raise IngestError("holds no data of a node that ran", remedy=remedy)
    names = [one.trace_id for one in executions]
    for number, one in enumerate(executions, 1):
        one.trace_id = one.trace_id if names.count(one.trace_id) == 1 else f"{one.trace_id}-{number}"
        yield _trace(one, source, warnings)


def _executions(value: Json, name: str, warnings: list[str]) -> Iterator[_Execution]:
    value = opened(value)
    if isinstance(value, list):
        rows = list(Fields({"executions": value}, "", warnings).objects("executions"))
        if rows and _is_dify(rows[0].raw):
            yield _dify(rows, Fields({}), name)
        else:
            yield from (inner for one in rows for inner in _executions(one.raw, name, warnings))
    elif isinstance(value, dict):
        fields = Fields(value, warnings=warnings)
        if isinstance(data := opened(value.get("data")), dict) and "resultData" in data:
            yield _n8n(fields, fields.inner("data").inner("resultdata"), name)
        elif "resultData" in value:
            yield _n8n(Fields({}), fields.inner("resultdata"), name)
        elif "executionData" in value:
            yield _flowise(fields, name)
        else:
            yield from _listed(fields, name)


def _listed(fields: Fields, name: str) -> Iterator[_Execution]:
    """The execution of an answer that lists its nodes, or those of one that lists executions."""
    key = next(
        (key for key in ("data", "nodeexecutions", "results") if isinstance(opened(fields.peek(key)), list)), "data"
    )
    rows = list(fields.objects(key))
    if rows and _is_dify(rows[0].raw):
        yield _dify(rows, fields, name)
    else:
        yield from (inner for one in rows for inner in _executions(one.raw, name, fields.warnings))


# n8n ------------------------------------------------------------------------------------------------------------


def _n8n(value: Fields, result: Fields, name: str) -> _Execution:
    workflow = value.inner("workflowdata")
    types = {node.text("name"): node.text("type") or "" for node in workflow.objects("nodes")}
    nodes = [
        _n8n_node(node, run, types.get(node, ""))
        for node, runs in result.nested("rundata").items()
        for run in Fields({"runs": runs}, f"{result.path}.runData.{node}", result.warnings).objects("runs")
    ]
    return _Execution(
        value.text("id") or name, nodes, workflow.text("name"), value.time("startedat"), value.time("stoppedat"),
        result.inner("error").text("message"),
    )  # fmt: skip


def _n8n_node(name: str, run: Fields, type_name: str) -> _Node:
    data, override = run.inner("data"), run.inner("inputoverride")
    port = next(iter(data.raw), "main")
    callers = [one.text("previousnode") for one in run.objects("source")]
    node = _Node(
        name, _N8N_PORTS.get(port, "CHAIN"),
        parent=callers[0] if port != "main" and callers else None,
        inputs=_items(override, port), outputs=_items(data, port), start=run.time("starttime"),
        error=run.inner("error").text("message"), rest={"n8n.type": type_name} if type_name else {},
    )  # fmt: skip
    if "langchain.agent" in type_name:
        node.kind = "AGENT"
    took = run.count("executiontime")
    node.end = None if node.start is None or took is None else node.start + took * 1000
    if node.kind == "LLM":
        _n8n_model(node, data)
    return node


def _items(ports: Fields, port: str) -> Json:
    """The JSON of the items at a port of a node; of one item alone it itself."""
    outputs = [one for one in ports.listed(plain_name(port)) if one is not None]
    rows = [Fields({"items": one}, f"{ports.path}.{port}[{n}]", ports.warnings) for n, one in enumerate(outputs)]
    items = [one.take("json") for row in rows for one in row.objects("items")]
    return items[0] if len(items) == 1 else items or None


def _n8n_model(node: _Node, place: Fields) -> None:
    inputs, outputs = (Fields(one or {}, place.path, place.warnings) for one in (node.inputs, node.outputs))
    for words in inputs.listed("messages"):
        node.asked += _spoken(words) if isinstance(words, str) else [Message("user", as_text(words))]
    for some in outputs.inner("response").listed("generations"):
        for one in some if isinstance(some, list) else [some]:
            node.answered.append(Message("assistant", as_text(one.get("text", one) if isinstance(one, dict) else one)))
    node.usage = outputs.inner("tokenusage")
    node.model = inputs.inner("options").text("model", "modelname")


def _spoken(words: str) -> list[Message]:
    """The messages in a text that names the speaker of each."""
    first, *pieces = _SPEAKER.split(words)
    roles = (_ROLES.get(who.lower(), who.lower()) for who in pieces[::2])
    messages = [Message(role, text.strip("\n")) for role, text in zip(roles, pieces[1::2], strict=True)]
    return [*([Message("user", first.strip("\n"))] if first.strip() else []), *messages]


# Dify, Flowise --------------------------------------------------------------------------------------------------


def _is_dify(row: Record) -> bool:
    return "node_type" in row and "outputs" in row


def _dify(rows: Sequence[Fields], value: Fields, name: str) -> _Execution:
    own = next((text for row in rows if (text := as_text(row.peek("workflowrunid")))), None)
    ordered = sorted(rows, key=lambda row: integer(row.peek("index")) or 0)
    trace_id = own or value.text("workflowrunid", "id") or name
    return _Execution(trace_id, [_dify_node(row) for row in ordered])


def _dify_node(row: Fields) -> _Node:
    process, outputs = row.inner("processdata"), opened(row.take("outputs"))
    kind, own = row.text("nodetype"), row.text("nodeid")
    node = _Node(
        row.text("title") or own or "node", _DIFY_NODES.get(kind or "", "CHAIN"), inputs=opened(row.take("inputs")),
        outputs=outputs, start=row.time("createdat"), end=row.time("finishedat"), error=row.text("error"),
        model=process.text("modelname"), rest={"dify.node_type": kind, "dify.node_id": own},
    )  # fmt: skip
    if node.kind == "LLM":
        node.asked = [Message(one.text("role") or "user", one.text("text")) for one in process.objects("prompts")]
        answer = Fields(outputs if isinstance(outputs, dict) else {}, row.path, row.warnings)
        text = answer.text("text") if isinstance(outputs, dict) else as_text(outputs)
        node.answered = [Message("assistant", text)] if text else []
        node.usage = process.inner("usage") if process.peek("usage") is not None else answer.inner("usage")
    return node


def _flowise(value: Fields, name: str) -> _Execution:
    nodes = [_flowise_node(one) for one in value.objects("executiondata")]
    trace_id = value.text("id") or value.text("sessionid") or name
    return _Execution(trace_id, nodes, start=value.time("createddate"), end=value.time("updateddate"))


def _flowise_node(row: Fields) -> _Node:
    data = row.inner("data")
    inputs, outputs = opened(data.take("input")), opened(data.take("output"))
    given, made = (Fields(one if isinstance(one, dict) else {}, data.path, data.warnings) for one in (inputs, outputs))
    moments = made.inner("timemetadata")
    node = _Node(
        row.text("nodelabel") or row.text("nodeid") or "node", _FLOWISE_NODES.get(data.text("name") or "", "CHAIN"),
        inputs=inputs, outputs=outputs, start=moments.time("start"), end=moments.time("end"), error=data.text("error"),
    )  # fmt: skip
    if node.kind == "LLM":
        messages = read_messages(given.peek("messages"))
        node.asked = [one.message for one in messages or ()]
        content = made.text("content")
        node.answered = [Message("assistant", content)] if content else []
        node.usage = made.inner("usagemetadata")
        node.model = given.inner("llmmodelconfig").text("modelname")
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


def _count(draft: SpanDraft, counts: Fields) -> None:
    draft.prompt_tokens = counts.count("prompttokens", "inputtokens")
    draft.completion_tokens = counts.count("completiontokens", "outputtokens")
    draft.total_tokens = counts.count("totaltokens")
