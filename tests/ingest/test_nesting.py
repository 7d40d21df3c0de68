"""JSON of any depth: read whole, written whole, and what stands beside it is never lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.build import span_id
from tests.ingest.test_parse import JSON

from tracejury.ingest.batch import ingest
from tracejury.ingest.check import check_store
from tracejury.ingest.nesting import LEVELS, read_deep, write_deep
from tracejury.ingest.parse import json_text, parse_json
from tracejury.ingest.readers import read_bytes
from tracejury.ingest.trace import Rejected, Trace
from tracejury.judging.store import open_workspace

DEEP = 10_000


def span(number: int, attributes: str = "{}", children: str = "[]") -> str:
    return f'{{"span_id": "{span_id(number)}", "span_attributes": {attributes}, "child_spans": {children}}}'


def trace(trace_id: str, *spans: str) -> str:
    return f'{{"trace_id": "{trace_id}", "spans": [{", ".join(spans)}]}}'


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def read_all(text: str) -> list[Trace | Rejected]:
    return list(read_bytes(text.encode(), file="deep.json"))


def deep_value(depth: int) -> Any:
    value: Any = {"end": ['"]}', None, 1.5, "ü"]}
    for number in range(depth):
        value = [value, {}] if number % 2 else {"a": value, "b\\": [], "c": "{["}
    return value


@settings(deadline=None)  # a busy machine is not a slow parser
@given(JSON, st.integers(0, 3 * LEVELS))
def test_values_at_any_depth_are_read_as_a_parser_without_limit_reads_them(value: Any, depth: int) -> None:
    text = "[" * depth + json.dumps(value) + ", 1]" * depth
    read = read_deep(text.encode(), orjson.loads)
    for _ in range(depth):
        assert isinstance(read, list)
        assert read[1:] == [1]
        read = read[0]
    assert read == value


@pytest.mark.parametrize("depth", [0, 1, LEVELS - 1, LEVELS, LEVELS + 1, 2 * LEVELS, DEEP])
def test_what_is_written_of_a_deep_value_reads_back_the_same(depth: int) -> None:
    text = write_deep(deep_value(depth))
    assert write_deep(parse_json(text.encode())) == text
    assert json_text(deep_value(depth)) == text


@pytest.mark.parametrize("text", ["[" * 3000, "]" * 3000, "[" * 3000 + "}" * 3000, "[" * 3000 + "x" + "]" * 3000])
def test_deep_text_that_is_no_json_is_named(text: str) -> None:
    (found,) = read_all('{"trace_id": "t", "spans": ' + text)
    assert isinstance(found, Rejected)
    assert "JSON" in found.reason
    assert found.remedy


def test_a_deep_attribute_is_kept_as_its_text_and_loses_no_other_span() -> None:
    (read,) = read_all(trace("t", span(1), span(2, f'{{"deep": {nested(DEEP)}}}'), span(3)))
    assert isinstance(read, Trace)
    assert [one.span_id for one in read.spans] == [span_id(1), span_id(2), span_id(3)]
    assert read.spans[1].attributes["deep"] == nested(DEEP)


def test_a_deep_attribute_loses_no_other_line() -> None:
    lines = [trace("t1", span(1)), trace("t2", span(1, f'{{"deep": {nested(DEEP)}}}')), trace("t3", span(1))]
    for ordered in (lines, lines[1:] + lines[:1]):
        read = read_all("\n".join(ordered))
        assert {one.trace_id for one in read if isinstance(one, Trace)} == {"t1", "t2", "t3"}


def test_not_a_number_deep_inside_is_kept_as_text() -> None:
    (read,) = read_all(trace("t", span(1, f'{{"deep": {"[" * DEEP}NaN{"]" * DEEP}}}')))
    assert isinstance(read, Trace)
    assert read.spans[0].attributes["deep"] == "[" * DEEP + '"NaN"' + "]" * DEEP
    assert any(warning.startswith("not_a_json_number") for warning in read.warnings)


def spans_in_spans(depth: int) -> str:
    opened = (f'{{"span_id": "{span_id(n)}", "span_attributes": {{}}, "child_spans": [' for n in range(depth))
    return f'{{"trace_id": "t", "spans": [{"".join(opened)}{"]}" * depth}]}}'


def test_spans_nested_ten_thousand_deep_are_all_read() -> None:
    (read,) = read_all(spans_in_spans(DEEP))
    assert isinstance(read, Trace)
    assert [one.depth for one in read.spans] == list(range(DEEP))


def test_spans_nested_deeper_than_any_parser_follows_are_stored_and_verified(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text(spans_in_spans(1_500), encoding="utf-8")
    engine = open_workspace(tmp_path / "home").engine
    report = ingest(engine, [file])
    assert (report.traces, report.spans, report.rejected) == (1, 1_500, [])
    assert check_store(engine) == []


@pytest.mark.parametrize("kind", ["arrayValue", "kvlistValue"])
def test_a_deep_otlp_attribute_loses_no_other_span(kind: str) -> None:
    begin, end = {
        "arrayValue": ('{"arrayValue": {"values": [', "]}}"),
        "kvlistValue": ('{"kvlistValue": {"values": [{"key": "k", "value": ', "}]}}"),
    }[kind]
    value = begin * DEEP + '{"intValue": "7"}' + end * DEEP
    spans = [
        f'{{"traceId": "{"ab" * 16}", "spanId": "{span_id(n)}", "name": "s", "attributes": [{attributes}]}}'
        for n, attributes in ((1, ""), (2, f'{{"key": "deep", "value": {value}}}'))
    ]
    (read,) = read_all(f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{", ".join(spans)}]}}]}}]}}')
    assert isinstance(read, Trace)
    assert len(read.spans) == 2
    kept = read.spans[1].attributes["deep"]
    assert isinstance(kept, str)
    assert "7" in kept
