"""Every span once, every leaf value found again, the same tree from a shuffled file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.ingest import export_files as made
from tests.ingest.losses import lost
from tests.ingest.otel_forms import write_forms
from tests.ingest.trail_files import document, read_all, span

from tracejury.ingest.parse import parse_documents
from tracejury.ingest.readers import read_bytes, read_traces
from tracejury.ingest.trace import Rejected, Trace

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"
STRUCTURE = frozenset({"kind", "code", "status_code", "status", "span_kind", "type"})
"""Closed sets that become our own words (kind, status) or say what a part of a message is."""

SCALARS = frozenset({"stringValue", "intValue", "doubleValue", "boolValue"})


def traces_of(path: Path) -> list[Trace]:
    found = list(read_traces(path))
    assert [item for item in found if isinstance(item, Rejected)] == []
    return [item for item in found if isinstance(item, Trace)]


def otlp_attributes_opened(value: Any) -> Any:
    """OTLP's lists of key and value as objects, so that their keys are keys, and each scalar bare."""
    if isinstance(value, list) and value and all(isinstance(item, dict) and "key" in item for item in value):
        return {item["key"]: otlp_attributes_opened(item.get("value")) for item in value}
    if isinstance(value, dict) and len(value) == 1 and SCALARS & value.keys():
        return next(iter(value.values()))
    if isinstance(value, dict):
        return {key: otlp_attributes_opened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [otlp_attributes_opened(item) for item in value]
    return value


def really_lost(path: Path, traces: list[Trace]) -> list[tuple[str, Any]]:
    documents = [otlp_attributes_opened(item.value) for item in parse_documents(path.read_bytes())]
    missing = lost(documents, traces, STRUCTURE)
    # A ChatMessage repr is dropped only where it begins with the repr of the message we keep (test_conventions).
    return [item for item in missing if not str(item[1]).startswith("ChatMessage(role=")]


def samples() -> list[Path]:
    kinds = ("trail", "otlp", "otel_sdk", "langfuse", "inspect", "trulens")
    return sorted(path for kind in kinds for path in (SAMPLES / kind).rglob("*.json*"))


@pytest.mark.parametrize("path", samples(), ids=lambda path: path.name)
def test_every_leaf_of_a_sample_is_in_its_traces(path: Path) -> None:
    if ".logs." in path.name:
        pytest.skip("read together with the spans beside it")
    assert really_lost(path, traces_of(path)) == []


@pytest.mark.shared
def test_every_leaf_of_real_trail_traces_is_in_the_table(shared: Path) -> None:
    paths = sorted((shared / "trail" / "traces").rglob("*.json"), key=lambda path: path.stat().st_size)
    for path in [*paths[:12], *paths[-2:]]:
        assert really_lost(path, traces_of(path)) == [], path.name


@pytest.mark.shared
def test_every_leaf_of_real_otlp_is_in_the_table(shared: Path) -> None:
    for path in sorted((shared / "otel" / "smolagents").glob("*.otlp.json*")):
        assert really_lost(path, traces_of(path)) == [], path.name


@pytest.mark.parametrize(
    "make",
    [made.phoenix_rows, made.langfuse_trace, made.mlflow_trace, made.trulens_rows, made.inspect_log],
    ids=lambda make: make.__name__,
)
def test_every_leaf_of_an_export_is_in_the_table(make: Any) -> None:
    value = make()
    traces = [item for item in read_all(value) if isinstance(item, Trace)]
    # MLflow writes plain texts as JSON, in quotes; Inspect's attachments are put back where they are named
    missing = [item for item in lost(value, traces, STRUCTURE) if not str(item[1]).startswith(('"', "attachment://"))]
    assert missing == []


@pytest.mark.shared
def test_the_held_trail_traces_are_69_with_2029_spans_and_one_duplicate(shared: Path) -> None:
    found = list(read_traces(shared / "trail" / "traces"))
    traces = [item for item in found if isinstance(item, Trace)]
    assert len(found) == len(traces) == 69
    assert sum(len(trace.spans) for trace in traces) == 2029
    duplicates = [w for trace in traces for w in trace.all_warnings if w.startswith("duplicate_span")]
    assert len(duplicates) == 1
    assert "b14646a5fcac02fd" in duplicates[0]


def evicted_calls(folder: Path) -> int:
    """Calls that lost their first attributes to OpenTelemetry's limit; each of their messages has its role again."""
    count = 0
    for trace in traces_of(folder):
        for call in trace.spans:
            count += any(warning.startswith("evicted_attributes") for warning in call.warnings)
            for position in call.input_messages:
                assert trace.messages[position].role is not None, (trace.trace_id, call.span_id)
    return count


@pytest.mark.shared
def test_every_evicted_head_of_the_held_traces_is_rebuilt(shared: Path) -> None:
    evicted_calls(shared / "trail" / "traces" / "swe_bench")


def test_every_evicted_head_of_the_samples_is_rebuilt() -> None:
    """The first ten attributes of messages are gone from the last calls of one of them, as OpenTelemetry drops them."""
    assert evicted_calls(SAMPLES / "trail") > 0


def table_of(path: Path) -> list[tuple[Any, ...]]:
    (trace,) = traces_of(path)
    return [
        (s.span_id, s.parent_span_id, s.depth, s.name, s.kind, s.agent, s.status, s.input, s.output,
         s.input_messages, s.output_messages, s.total_tokens, s.tool_arguments, s.model)
        for s in trace.spans
    ]  # fmt: skip


@pytest.mark.shared
@pytest.mark.parametrize("run", ["success", "max_steps", "tool_error_then_wrong_answer"])
def test_the_same_run_in_every_otel_form_gives_the_same_table(shared: Path, run: str) -> None:
    first, *others = map(table_of, sorted((shared / "otel" / "smolagents").glob(f"{run}.*")))
    assert len(others) == 4
    assert all(other == first for other in others)


def test_a_sample_in_every_otel_form_gives_the_same_table(tmp_path: Path) -> None:
    protobuf = SAMPLES / "otlp" / "ferry.otlp.pb"
    table = table_of(protobuf)
    assert len(table) == 10
    forms = write_forms(protobuf.read_bytes(), tmp_path)
    assert len(forms) == 5
    for form in forms:
        assert table_of(form) == table, form.name


def shuffled(value: Any, seed: int) -> Any:
    """The same document with the keys of every object in another order, and its flat lists of spans too."""
    order = random.Random(seed)
    if isinstance(value, dict):
        items = list(value.items())
        order.shuffle(items)
        changed = {key: shuffled(item, seed) for key, item in items}
        for key in ("child_spans", "spans"):
            if isinstance(changed.get(key), list):
                order.shuffle(changed[key])
        return changed
    return [shuffled(item, seed) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(5))
def test_a_shuffled_file_gives_the_same_tree(seed: int) -> None:
    path = next(path for path in samples() if path.parent.name == "trail")
    value = json.loads(path.read_bytes())
    (before,) = read_all(value)
    (after,) = read_all(shuffled(value, seed))
    assert isinstance(before, Trace)
    assert isinstance(after, Trace)

    def tree(trace: Trace) -> list[Any]:
        said = trace.messages
        return [
            (s.span_id, s.depth, s.input, s.output, [said[p] for p in s.input_messages], s.agent) for s in trace.spans
        ]

    assert tree(before) == tree(after)


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_otlp_lines_give_the_same_tree(seed: int) -> None:
    path = next(path for path in samples() if path.name == "ferry.otlp.jsonl")
    lines = path.read_bytes().splitlines()
    random.Random(seed).shuffle(lines)
    before = {trace.trace_id: [s.span_id for s in trace.spans] for trace in traces_of(path)}
    after = {
        t.trace_id: [s.span_id for s in t.spans]
        for t in read_bytes(b"\n".join(lines), file="x")
        if isinstance(t, Trace)
    }
    assert before == after


def test_unknown_keys_of_a_span_are_kept_as_attributes() -> None:
    (trace,) = read_all(document(span("a" * 16, {"my.own": "x"}, surprise={"deep": [1, 2]})))
    assert isinstance(trace, Trace)
    assert trace.spans[0].attributes["my.own"] == "x"
    assert trace.spans[0].attributes["surprise"] == {"deep": [1, 2]}


def test_spans_of_several_traces_in_a_file_become_several_traces() -> None:
    spans = [span("a" * 16), span("b" * 16, trace_id="f" * 32), span("c" * 16)]
    found = read_all({"trace_id": "0" * 31 + "1", "spans": spans})
    assert [(t.trace_id, len(t.spans)) for t in found if isinstance(t, Trace)] == [("0" * 31 + "1", 2), ("f" * 32, 1)]


@pytest.mark.parametrize("name", ["ferry.otlp.jsonl", "ferry.spans.jsonl"])
def test_a_trace_over_several_files_is_one_when_asked(name: str, tmp_path: Path) -> None:
    path = next(path for path in samples() if path.name == name)
    (whole, *_) = traces_of(path)
    for number, line in enumerate(path.read_bytes().splitlines()):
        (tmp_path / f"{number}.json").write_bytes(line)
    merged = [item for item in read_traces(tmp_path, merge=True) if isinstance(item, Trace)]
    again = next(trace for trace in merged if trace.trace_id == whole.trace_id)
    assert [s.span_id for s in again.spans] == [s.span_id for s in whole.spans]
    assert again.messages == whole.messages


def test_the_hubs_parquet_form_gives_the_same_traces_as_the_json_files(tmp_path: Path) -> None:
    paths = [path for path in samples() if path.parent.name == "trail"][:3]
    rows = [{"trace": path.read_text(encoding="utf-8"), "labels": "{}"} for path in paths]
    pd.DataFrame(rows).to_parquet(tmp_path / "gaia.parquet")
    from_hub = traces_of(tmp_path)
    assert [trace.spans for trace in from_hub] == [trace.spans for path in paths for trace in traces_of(path)]
    assert [trace.source.place for trace in from_hub] == ["row 0", "row 1", "row 2"]
