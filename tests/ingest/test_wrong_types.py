"""A field of another type than its format says: no reader fails, and nothing of the value is gone in silence."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
from tests.ingest import chat_store_files as stores
from tests.ingest import conversation_files as conversations
from tests.ingest import envelope_files as envelopes
from tests.ingest import export_files as made
from tests.ingest import log_files as logs
from tests.ingest import vendor_files as vendors
from tests.ingest.losses import texts
from tests.ingest.mutants import SAMPLES
from tests.ingest.test_bad_input import otlp_request, trail_document
from tests.ingest.test_gaia2_files import content

from tracejury.ingest.readers import read_bytes
from tracejury.ingest.trace import Rejected

Path = tuple[Any, ...]
WRONG: tuple[Any, ...] = (None, 990017, "wr0ng", ["wr0ng"], {"k": "wr0ng"})
"""One value of each type of JSON, the last four to be found again."""


def _shipped(name: str) -> Callable[[], Any]:
    def load() -> Any:
        text = (SAMPLES / name).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)

    return load


FILES: dict[str, Callable[[], Any]] = {
    "atif": envelopes.atif,
    "claude_code": _shipped("claude_code/tide.jsonl"),
    "codex": _shipped("codex/tide.jsonl"),
    "conversation": conversations.openai,
    "conversation of Gemini CLI": conversations.gemini_cli,
    "conversation of OpenCode": conversations.opencode,
    "gaia2": lambda: content("hf"),
    "inspect": made.inspect_log,
    "jaeger": _shipped("jaeger/tide.json"),
    "langfuse": made.langfuse_trace,
    "langsmith": _shipped("langsmith/tide.jsonl"),
    "maseval": _shipped("maseval/harbour_desk.json"),
    "mlflow": made.mlflow_trace,
    "openai_agents": _shipped("openai_agents/openai-agents-text.jsonl"),
    "openhands": envelopes.openhands,
    "openhands of the SDK": envelopes.openhands_sdk,
    "opik": _shipped("opik/tide.json"),
    "otel_js": envelopes.js_printed,
    "otel_sdk": _shipped("otel_sdk/ferry.spans.jsonl"),
    "otlp": otlp_request,
    "phoenix": made.phoenix_rows,
    "span_table": _shipped("span_table/tide.jsonl"),
    "swe_agent": envelopes.swe_agent,
    "swe_agent, mini": envelopes.mini_swe_agent,
    "trail": trail_document,
    "trulens": made.trulens_rows,
    "weave": _shipped("weave/tide.jsonl"),
    "zipkin": _shipped("zipkin/tide.json"),
}
NOT_READ = {
    "claude_code": {
        "*.parentUuid", "*.userType", "*.uuid", "*.message.role", "*.message.id", "*.message.type",
    },
    "codex": {"*.payload.content.*.type"},
    "conversation": {"*.tool_calls.*.type"},
    "conversation of Gemini CLI": {
        "projectHash", "messages.*.id", "messages.*.toolCalls.*.status",
        "messages.*.toolCalls.*.result.*.functionResponse.id", "messages.*.toolCalls.*.result.*.functionResponse.name",
    },
    "conversation of OpenCode": {"info", "info.title", "messages.*.parts.*.type", "messages.*.parts.*.state.status"},
    "gaia2": {"events.*.event_time_comparator", "events.*.dependencies.*", "completed_events.*.event_relative_time"},
    "inspect": {
        "samples.*.messages.*.id", "samples.*.messages.*.source", "samples.*.messages.*.function",
        "samples.*.messages.*.tool_calls.*.type",
    },
    "jaeger": {"data.*.traceID", "data.*.spans.*.tags.*.type", "data.*.spans.*.references.*.traceID"},
    "langfuse": {"scores.*", "observations.*"},
    "openhands": {
        "*.cause", "*.message", "*.tool_call_metadata.total_calls_in_response",
        "*.tool_call_metadata.model_response.choices.*.index",
    },
    "openhands of the SDK": {
        "*.system_prompt.type", "*.action.kind", "*.action.port", "*.llm_message.content.*.type",
        "*.observation.content.*.type",
    },
    "opik": {"project_name"},
    "otel_js": {"*.parentSpanContext"},
    "swe_agent": {"trajectory.*.query.*", "trajectory.*.query.*.role", "trajectory.*.query.*.content"},
    "trulens": {"*.trace.parent_id", "*.record.parent_span_id"},
}  # fmt: skip
"""Fields whose value no reader keeps where its type is right either: each is told elsewhere, or is a label."""
CHATS: dict[str, Callable[[], Any]] = {
    **stores.MADE, "chatgpt": conversations.chat_gpt, "claude.ai": conversations.claude_ai,
    "ag-ui": conversations.ag_ui,
    "cline": conversations.cline, "strands": conversations.strands, "litellm": conversations.spend_logs,
    "vertex": conversations.vertex_batch, "bedrock batch": conversations.bedrock_batch, "dify chat": conversations.dify,
    "flowise chat": conversations.flowise, "copilot cli": conversations.copilot, "pydantic ai": conversations.pydantic,
    "letta": conversations.letta, "smolagents": conversations.smolagents, **logs.WORKFLOWS, "crewai": logs.crewai_rows,
    "sentry": vendors.sentry, "cloud trace": vendors.cloud_trace, "agentops": vendors.agentops,
    "galileo": vendors.galileo, "lightstep": vendors.lightstep, "keywords ai": vendors.keywords_ai_tree,
    "datadog": lambda: vendors.rows(vendors.datadog), "elastic": lambda: vendors.rows(vendors.elastic),
    "gaia2, lite": lambda: content("lite"),
    "braintrust": lambda: vendors.rows(vendors.braintrust), "laminar": lambda: vendors.rows(vendors.laminar),
}  # fmt: skip
"""Forms of which most fields are labels, that nobody keeps; what is told elsewhere or stands on another branch:"""
QUICK = frozenset(
    {"vs code", "kiro", "copilot studio", "bedrock agent", "chatgpt", "dify chat", "n8n", "dify", "datadog"}
)
TOLD_ELSEWHERE = {
    "lm studio": {"createdAt", "messages.*.versions.*.steps", "messages.*.versions.*.steps.*",
                  "messages.*.versions.*.steps.*.content", "messages.*.versions.*.steps.*.content.*"},
    "vs code": {"requests.*.result.timings"}, "kiro": {"transcript"}, "amazon q": {"transcript"},
    "trae": {"agent_steps.*.tool_calls.*.arguments"}, "letta file": {"tools"}, "rasa": {"slots", "events.*.data",
             "events.*.parse_data.intent"},
    "langchain events": {"*.data.input", "*.data.input.messages.*", "*.data.output.additional_kwargs",
                         "*.data.output.response_metadata"},
    "open webui": {"*.chat.models", "*.chat.history.messages.x", "*.chat.history.messages.x.usage"},
    "n8n": {"data.startData"}, "dify": {"data.*.process_data.prompts.*.files"}, "dify chat": {"data.*.inputs"},
    "chatgpt": {"*.mapping.x.message", "*.mapping.x.message.author", "*.mapping.x.message.content",
                "*.mapping.x.message.create_time", "*.mapping.n1.message.create_time"},
    "vertex": {"response"},
    "sentry": {"contexts", "contexts.trace.trace_id", "contexts.trace.span_id", "spans.*.trace_id"},
    "cloud trace": {"spans.*.parentSpanId"}, "lightstep": {"data.*.attributes", "data.*.attributes.custom-data",
                    "data.*.relationships.reporters"},
    "keywords ai": {"span_tree.*.trace_unique_id", "span_tree.*.span_unique_id",
                    "span_tree.*.children.*.trace_unique_id", "span_tree.*.children.*.span_unique_id"},
    "datadog": {"*.attributes.span_id", "*.attributes.parent_id", "*.attributes.duration"}, "braintrust": {"*.span_id"},
}  # fmt: skip


def paths_of(document: Any) -> Iterator[Path]:
    """The way to each field of a document, in lists the first of each form."""
    seen: set[str] = set()
    waiting: list[tuple[Path, Any]] = [((), document)]
    while waiting:
        path, node = waiting.pop(0)
        for key, item in node.items() if isinstance(node, dict) else enumerate(node):
            if (own := dotted((*path, key))) not in seen:
                seen.add(own)
                yield (*path, key)
            if isinstance(item, (dict, list)):
                waiting.append(((*path, key), item))


def dotted(path: Path) -> str:
    return ".".join("*" if isinstance(part, int) else part for part in path)


def changed(document: Any, path: Path, value: Any) -> tuple[Any, Any]:
    """The document with another value at this place, and the value that stood there."""
    document = node = copy.copy(document)
    for key in path[:-1]:
        node[key] = copy.copy(node[key])
        node = node[key]
    before, node[path[-1]] = node[path[-1]], value
    return document, before


def is_gone(document: Any, path: Path, value: Any) -> bool:
    """Whether a value stands in nothing that is read of a document and no warning names its place."""
    found = list(read_bytes(json.dumps(document).encode(), file="file.json"))
    assert found, dotted(path)
    for item in found:
        if isinstance(item, Rejected):
            assert "the reader failed" not in item.reason, (dotted(path), value, item.reason)
            return False
    mark = "wr0ng" if value != WRONG[1] else str(value)
    name = next((str(key) for key in reversed(path) if isinstance(key, str)), "").lower()
    said = [warning.lower() for item in found for warning in item.all_warnings]  # type: ignore[union-attr]
    held = any(mark in text.lower() for item in found for text in texts(item))
    named = any(name in warning or warning.startswith("unreadable_span") for warning in said)
    return value is not None and not held and not named


@pytest.mark.parametrize(
    "is_short", [pytest.param(True, id="short"), pytest.param(False, id="long", marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("name", FILES)
def test_a_value_of_a_wrong_type_is_kept_or_named(name: str, is_short: bool) -> None:
    document = FILES[name]()
    gone = []
    for number, path in enumerate(paths_of(document)):
        wrong = islice(WRONG, number % len(WRONG), number % len(WRONG) + 1) if is_short else WRONG
        for value in wrong:
            broken, before = changed(document, path, value)
            if type(before) is not type(value) and is_gone(broken, path, value):
                gone.append((dotted(path), value))
    assert [item for item in gone if item[0] not in NOT_READ.get(name, ())] == []


def is_label(document: Any, path: Path, before: Any) -> bool:
    """Whether no reader keeps a field's value where its type is right either."""
    if before is None or isinstance(before, bool):
        return True
    value = "r1ght" if isinstance(before, str) else 990018
    if not isinstance(before, (str, int, float)) or (value == 990018 and before > 1e8):  # a time is told as one
        return False
    found = list(read_bytes(json.dumps(changed(document, path, value)[0]).encode(), file="file.json"))
    has_failed = any(isinstance(item, Rejected) for item in found)
    return not has_failed and not any(str(value) in text for item in found for text in texts(item))


@pytest.mark.parametrize("name", [
    *(pytest.param(name, marks=() if name in QUICK else pytest.mark.soak) for name in CHATS)
])  # fmt: skip
def test_a_wrong_type_in_a_saved_chat_a_workflow_or_a_vendors_answer_is_kept_or_named(name: str) -> None:
    document = CHATS[name]()
    gone = []
    for number, path in enumerate(paths_of(document)):
        for value in islice(WRONG, number % len(WRONG), number % len(WRONG) + 1) if name in QUICK else WRONG:
            broken, before = changed(document, path, value)
            if type(before) is type(value) or dotted(path) in TOLD_ELSEWHERE.get(name, ()):
                continue
            if is_gone(broken, path, value) and not is_label(document, path, before):
                gone.append((dotted(path), value))
    assert gone == []
