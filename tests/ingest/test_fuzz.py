"""Each reader against made-up damage: no traceback, no hang, nothing invented, no span lost in silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ingest.test_bad_input import DOCUMENTS, fine
from tests.ingest.trail_files import read_all

from tracejury.ingest.readers import READERS
from tracejury.ingest.trace import Trace

SPAN_KEYS = {
    "trail": {"span_name", "span_id", "span_attributes"}, "otlp": {"spanId", "startTimeUnixNano"},
    "otel_sdk": {"context", "start_time", "name"}, "phoenix": {"context.span_id", "start_time"},
    "trulens": {"event_id"},
}  # fmt: skip
"""Keys that each span of a format has and nothing else does, by which spans are counted apart from its reader."""
MARKS = (b'"', b"{", b"}", b"[", b"]", b",", b"\n{", b"\x00", b"\\")
ROUNDS = [pytest.param(15, id="short"), pytest.param(1500, id="long", marks=pytest.mark.soak)]

LEAVES = st.none() | st.booleans() | st.floats() | st.text(max_size=8)
ANY_JSON = st.recursive(
    LEAVES, lambda children: st.lists(children) | st.dictionaries(st.text(max_size=8), children)
).map(lambda value: json.dumps(value).encode())


def counted(value: Any, keys: set[str]) -> int:
    """The objects with these keys, anywhere in a document."""
    return sum(keys <= node.keys() for node in objects(value))


def objects(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
        if isinstance(node, (dict, list)):
            stack.extend(node.values() if isinstance(node, dict) else node)


def damaged(raw: bytes, data: st.DataObject) -> bytes:
    """A few bytes changed, cut out, doubled or put in."""
    text = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(text) - 1, 0)))
        match data.draw(st.sampled_from(("change", "cut", "double", "insert", "end"))):
            case "change":
                text[place : place + 1] = bytes([data.draw(st.integers(0, 255))])
            case "cut":
                del text[place : place + data.draw(st.integers(1, 200))]
            case "double":
                text[place:place] = text[place : place + data.draw(st.integers(1, 200))]
            case "insert":
                text[place:place] = data.draw(st.sampled_from(MARKS))
            case _:
                del text[place:]
    return bytes(text)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.timeout(1800)
def test_no_damage_breaks_a_reader_or_loses_a_span_in_silence(name: str, rounds: int) -> None:
    form = [json.dumps(DOCUMENTS[name](), indent=indent).encode() for indent in (None, 2)]

    @settings(max_examples=rounds, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def attack(data: st.DataObject) -> None:
        raw = damaged(data.draw(st.sampled_from(form)), data)
        if raw.strip():
            check(name, raw)

    attack()


def check(name: str, raw: bytes) -> None:
    items = read_all(raw)
    fine(items)
    traces = [item for item in items if isinstance(item, Trace) and item.format == name]
    if not traces or name not in SPAN_KEYS:
        return
    try:
        whole = json.loads(raw, strict=False)
    except (ValueError, RecursionError):
        return
    there = counted(whole, SPAN_KEYS[name])
    read = sum(len(trace.spans) for trace in traces)
    told = [warning for trace in traces for warning in trace.all_warnings]
    assert read >= there or told or len(traces) < len(items), (there, read)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.NAME)
@pytest.mark.timeout(1800)
def test_any_bytes_given_to_a_reader_end_in_traces_or_words(reader: Any, rounds: int) -> None:
    @settings(max_examples=rounds, deadline=None, suppress_health_check=list(HealthCheck))
    @given(raw=st.one_of(st.binary(min_size=1, max_size=300), ANY_JSON))
    def attack(raw: bytes) -> None:
        if raw.strip():
            fine(read_all(raw, format=reader.NAME))

    attack()
