"""Damaged files: nothing is made of their parts, what could be read says what is missing, and the whole file wins."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ingest import export_files as made
from tests.ingest.test_bad_input import DOCUMENTS, otlp_request, sdk_lines
from tests.ingest.trail_files import TRACE_ID, document, read_all, span

from tracejury.ingest.batch import ingest
from tracejury.ingest.damage import is_damaged
from tracejury.ingest.formats.rows import read_rows
from tracejury.ingest.readers import read_bytes
from tracejury.ingest.store import content_digest, load, read_transaction
from tracejury.ingest.trace import Rejected, Trace
from tracejury.judging.store import open_workspace

DATA = Path(__file__).parents[2] / "data" / "samples" / "trail"
SHARED = Path(os.environ.get("TRACEJURY_SHARED", Path(__file__).parents[3] / "shared")) / "trail" / "traces"
FILES = [*sorted(DATA.glob("*.json")), *sorted(SHARED.rglob("*.json"))[::20]]
QUICK = 4
CUTS = 12


def spans_in(value: Any) -> Iterator[dict[str, Any]]:
    """The spans of a TRAIL document, counted apart from the reader: every object with a span's own name."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict) and "span_name" in node:
            yield node
        if isinstance(node, (dict, list)):
            stack.extend(node.values() if isinstance(node, dict) else node)


def mutants(raw: bytes) -> Iterator[bytes]:
    """The file cut at many places, and with one byte of its structure damaged at others."""
    for number in range(1, CUTS):
        place = len(raw) * number // CUTS
        yield raw[:place]
        for mark in (b"{", b"}", b"[", b"]", b'"', b",", b":"):
            at = raw.find(mark, place)
            if at >= 0:
                yield raw[:at] + b"#" + raw[at + 1 :]


def tells_of_spans(warning: str) -> bool:
    return warning.startswith(("unread_spans:", "duplicate_span:", "retyped: child_spans"))


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.soak] * (at >= QUICK), id=path.name[:8]) for at, path in enumerate(FILES)],
)
def test_no_trace_is_made_of_a_part_of_a_damaged_trail_file(path: Path) -> None:
    raw = path.read_bytes()
    for indent in (None, 0, 2):
        text = raw if indent == 2 else json.dumps(json.loads(raw), indent=indent).encode()
        for mutant in mutants(text):
            for item in read_all(mutant):
                if isinstance(item, Trace):  # the damage left it JSON: every span is still there, or told
                    missing = len(list(spans_in(json.loads(mutant, strict=False)))) - len(item.spans)
                    assert missing <= sum(map(tells_of_spans, item.all_warnings))
                else:
                    assert item.reason
                    assert item.remedy


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 0, 4])
def test_a_damaged_document_of_any_format_gives_no_trace_of_its_parts(name: str, indent: int | None) -> None:
    raw = json.dumps(DOCUMENTS[name](), indent=indent).encode()
    for place in range(1, len(raw), max(len(raw) // 60, 1)):
        assert all(isinstance(item, Rejected) for item in read_all(raw[:place])), (name, place)


def test_spans_beside_a_damaged_document_are_no_trace_of_their_own() -> None:
    whole = json.dumps(span("a" * 16))
    items = read_all(f'{{"trace_id": "x", "spans": [\n{whole}\n{whole}\n'.encode())
    assert len(items) == 3
    assert all(isinstance(item, Rejected) for item in items)


def test_a_whole_trace_after_a_damaged_one_is_read() -> None:
    damaged = json.dumps(document(span("a" * 16)), indent=2)[:-40]
    whole = json.dumps(document(span("b" * 16)), indent=2)
    rejected, trace = read_all(f"{damaged}\n{whole}".encode())
    assert isinstance(rejected, Rejected)
    assert rejected.lost == len(damaged) + 1
    assert isinstance(trace, Trace)
    assert trace.trace_id == TRACE_ID


def lines_with_one_damaged() -> tuple[bytes, bytes]:
    """OTLP, one span a line, whole and with the second line cut: its span is the parent of the third's."""
    request = otlp_request()
    spans = request["resourceSpans"][0]["scopeSpans"][0].pop("spans")
    lines = []
    for one in spans:
        request["resourceSpans"][0]["scopeSpans"][0]["spans"] = [one]
        lines.append(json.dumps(request))
    damaged = [lines[0], lines[1][:100], lines[2]]
    return "\n".join(lines).encode(), "\n".join(damaged).encode()


def test_a_trace_of_a_damaged_file_says_what_is_missing() -> None:
    _, damaged = lines_with_one_damaged()
    rejected, trace = list(read_bytes(damaged, file="t.jsonl"))
    assert isinstance(rejected, Rejected)
    assert isinstance(trace, Trace)
    assert [one.span_id for one in trace.spans] == [made.ROOT, made.TOOL]
    (told,) = [one for one in trace.warnings if one.startswith("damaged:")]
    assert told == (
        "damaged: 100 bytes in 1 part of the file could not be read (line 2, line 1 column 101); "
        f"1 span referred to but missing: {made.CALL}"
    )


def test_a_damaged_line_of_whole_traces_damages_no_other() -> None:
    lines = [json.dumps(document(span("a" * 16))), '{"trace_id": "y", "spans": [{"span', json.dumps(sdk_lines()[0])]
    trace = next(item for item in read_all("\n".join(lines).encode()) if isinstance(item, Trace))
    assert not any(one.startswith("damaged:") for one in trace.warnings)


def test_a_whole_file_takes_the_place_of_a_damaged_one_and_not_the_other_way(tmp_path: Path) -> None:
    whole, damaged = lines_with_one_damaged()
    (tmp_path / "whole.jsonl").write_bytes(whole)
    (tmp_path / "damaged.jsonl").write_bytes(damaged)
    engine = open_workspace(tmp_path / "home").engine
    first = ingest(engine, [tmp_path / "damaged.jsonl"])
    assert (first.traces, len(first.rejected)) == (1, 1)
    second = ingest(engine, [tmp_path / "whole.jsonl"])
    assert (second.traces, second.replaced, second.rejected) == (1, [made.TRACE], [])
    third = ingest(engine, [tmp_path / "damaged.jsonl"])
    assert third.traces == 0
    assert (third.duplicates, third.replaced, third.completed) == (1, [], [])
    assert [one.place for one in third.rejected] == [one.place for one in first.rejected]
    with read_transaction(engine) as connection:
        assert [one.span_id for one in load(connection, made.TRACE).spans] == [made.ROOT, made.CALL, made.TOOL]


SAMPLES = [
    path
    for path in sorted(DATA.parent.rglob("*"))
    if path.suffix in {".json", ".jsonl", ".csv"} and path.stat().st_size < 150_000 and "predictions" not in path.parts
]


def cuts(raw: bytes) -> Iterator[bytes]:
    """The file without its second half, its last bytes, its beginning; with half of a line in its middle."""
    lines = raw.split(b"\n")
    middle = len(lines) // 2
    yield from (raw[: len(raw) // 2], raw[:-9], raw[len(raw) // 3 :])
    if len(lines) > 3:
        yield b"\n".join([*lines[:middle], lines[middle][: len(lines[middle]) // 2], *lines[middle + 1 :]])


def traces_of(raw: bytes, path: Path) -> dict[str, Trace]:
    items = read_bytes(raw, file=path.name, format=None)
    return {item.trace_id: item for item in items if isinstance(item, Trace)}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: "/".join(path.relative_to(DATA.parent).parts))
def test_what_a_cut_file_of_any_format_gives_is_whole_or_marked(path: Path) -> None:
    """A trace without the mark would keep the whole file out for ever: it is there already, with other content."""
    raw = path.read_bytes()
    whole = {trace_id: content_digest(trace) for trace_id, trace in traces_of(raw, path).items()}
    for cut in cuts(raw):
        for trace_id, trace in traces_of(cut, path).items():
            assert whole.get(trace_id) == content_digest(trace) or is_damaged(trace.warnings), trace.format


def test_a_quote_in_a_cell_is_no_damage_and_one_that_is_not_closed_is() -> None:
    head = "trace_id,span_id,name,start_time\n"
    for last, is_cut in (('t1,s2,5" pipe,\n', False), ('t1,s2,"5"" pipe",', False), ('t1,s2,a,"2026', True)):
        rows = list(read_rows(f"{head}t1,s1,a,\n{last}".encode()))
        assert [row.error is not None for row in rows] == [False, is_cut]
        assert not is_cut or (rows[1].error is not None and rows[1].error.lost > 0)
