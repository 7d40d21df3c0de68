"""A synthetic corpus of TRAIL-form traces of any size, for measuring where no real files are at hand."""

from __future__ import annotations

import random
import re
from pathlib import Path

import orjson

_VOCABULARY = (
    "river ferry timetable harbour lamp keeper ledger winter crossing ticket island signal anchor rope tide "
    "chart bell mast deck cargo storm crew captain log book route north wind sand stone bridge mill"
)
WORDS = tuple(re.findall(r"\w+", _VOCABULARY))


def text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words)) + "."


def trace(number: int, *, steps: int = 10) -> bytes:
    """One trace of 2 + 2 * steps spans whose model calls repeat the whole history, as agents do."""
    rng = random.Random(number)
    trace_id = f"{rng.getrandbits(128):032x}"
    history = [("system", text(rng, 1500)), ("user", text(rng, 60))]
    children = []
    for step in range(steps):
        said = text(rng, 120)
        children.append(_span(rng, trace_id, "Step", "LLM", step, _model_call(history, said)))
        found = text(rng, 400)
        children.append(_span(rng, trace_id, "SearchTool", "TOOL", step, _tool_call(step, found)))
        history += [("assistant", said), ("tool-response", f"Observation:\n{found}")]
    agent = _span(
        rng, trace_id, "CodeAgent.run", "AGENT", 0, {"input.value": '{"task": "find it"}', "output.value": "x"}
    )
    root = _span(rng, trace_id, "main", "", 0, {})
    _adopt(agent, children)
    _adopt(root, [agent])
    return orjson.dumps({"trace_id": trace_id, "spans": [root]}, option=orjson.OPT_INDENT_2)


def write(folder: Path, megabytes: float) -> int:
    """Traces until `megabytes` are reached; returns the number of files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = number = 0
    while written < megabytes * 1e6:
        data = trace(number, steps=6 + number % 9)
        (folder / f"{number:06}.json").write_bytes(data)
        written += len(data)
        number += 1
    return number


def _adopt(parent: dict[str, object], children: list[dict[str, object]]) -> None:
    for child in children:
        child["parent_span_id"] = parent["span_id"]
    parent["child_spans"] = children


def _model_call(history: list[tuple[str, str]], said: str) -> dict[str, str]:
    messages = [{"role": role, "content": [{"type": "text", "text": content}]} for role, content in history]
    attributes = {
        "input.value": orjson.dumps({"messages": messages, "stop_sequences": ["<end_code>"]}).decode(),
        "input.mime_type": "application/json",
        "output.value": orjson.dumps({"role": "assistant", "content": said, "tool_calls": None}).decode(),
        "llm.model_name": "made-up",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": said,
        "llm.token_count.prompt": str(sum(len(content) for _, content in history) // 4),
        "llm.token_count.completion": "160",
    }
    for number, (role, content) in enumerate(history):
        attributes[f"llm.input_messages.{number}.message.role"] = role
        attributes[f"llm.input_messages.{number}.message.content"] = content
    return attributes


def _tool_call(step: int, found: str) -> dict[str, str]:
    return {"tool.name": "search", "input.value": f'{{"kwargs": {{"q": "{step}"}}}}', "output.value": found}


def _span(
    rng: random.Random, trace_id: str, name: str, kind: str, step: int, attributes: dict[str, str]
) -> dict[str, object]:
    return {
        "timestamp": f"2026-01-02T03:{step % 60:02}:00.{rng.randrange(10**6):06}Z",
        "trace_id": trace_id,
        "span_id": f"{rng.getrandbits(64):016x}",
        "parent_span_id": None,
        "trace_state": "",
        "span_name": name,
        "span_kind": "Internal",
        "service_name": "bench",
        "resource_attributes": {"service.name": "bench", "telemetry.sdk.name": "opentelemetry"},
        "scope_name": "openinference.instrumentation.smolagents",
        "scope_version": "0.1.6",
        "span_attributes": {**({"openinference.span.kind": kind} if kind else {}), **attributes},
        "duration": f"PT{rng.randrange(1, 9)}.{rng.randrange(10**6):06}S",
        "status_code": "Ok",
        "status_message": "",
        "events": [],
        "links": [],
        "logs": [],
        "child_spans": [],
    }


def otlp_request(number: int, *, spans: int = 10) -> dict[str, object]:
    """One trace as an OTLP/JSON request: spans of some 2.5 kB, as tools without long histories write them."""
    rng = random.Random(number)
    trace_id, root = f"{rng.getrandbits(128):032x}", f"{rng.getrandbits(64):016x}"
    held = [_otlp_span(rng, trace_id, root, place, number) for place in range(spans)]
    resource = {"attributes": [_attribute("service.name", "bench")]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "bench"}, "spans": held}]}]}


def _otlp_span(rng: random.Random, trace_id: str, root: str, place: int, number: int) -> dict[str, object]:
    kind = "AGENT" if place == 0 else ("LLM", "TOOL")[place % 2]
    attributes: dict[str, str | int] = {"openinference.span.kind": kind, "output.value": text(rng, 160)}
    if kind == "LLM":
        attributes |= {"llm.model_name": "made-up", "llm.token_count.prompt": 300, "llm.token_count.completion": 150}
        attributes |= {"llm.input_messages.0.message.role": "user"}
        attributes |= {"llm.input_messages.0.message.content": text(rng, 160)}
    else:
        attributes["input.value"] = text(rng, 160)
    start = 1_767_323_045_000_000_000 + number * 10**9 + place * 10**7
    return {
        "traceId": trace_id,
        "spanId": f"{rng.getrandbits(64):016x}" if place else root,
        "parentSpanId": root if place else "",
        "name": f"{kind.lower()} {place}",
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 5 * 10**6),
        "attributes": [_attribute(key, value) for key, value in attributes.items()],
        "status": {"code": 1},
    }


def _attribute(key: str, value: str | int) -> dict[str, object]:
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
