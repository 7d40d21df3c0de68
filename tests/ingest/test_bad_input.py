"""Whatever the bytes: no traceback, no hang, no span that is missing in silence; messages name file, place, remedy."""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import lzma
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import assert_linear
from tests.ingest import export_files as made
from tests.ingest.trail_files import document, read_all, read_one, span

from tracejury.ingest import bounded
from tracejury.ingest.readers import READERS, read_bytes, read_traces
from tracejury.ingest.trace import IngestError, Rejected, Trace

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def otlp_request() -> dict[str, Any]:
    def attribute(key: str, value: str) -> dict[str, Any]:
        return {"key": key, "value": {"stringValue": value}}

    spans = [
        {
            "traceId": made.TRACE, "spanId": own, "parentSpanId": parent, "name": "s", "kind": 1,
            "startTimeUnixNano": str(made.ns(number)), "endTimeUnixNano": str(made.ns(number + 1)),
            "attributes": [attribute("openinference.span.kind", "CHAIN"), attribute("input.value", f"in {number}")],
            "status": {"code": 1},
        }
        for number, (own, parent) in enumerate([(made.ROOT, ""), (made.CALL, made.ROOT), (made.TOOL, made.CALL)])
    ]  # fmt: skip
    return {
        "resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]
    }


def sdk_lines() -> list[dict[str, Any]]:
    return [
        {
            "name": "s", "context": {"trace_id": "0x" + made.TRACE, "span_id": "0x" + own, "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL", "parent_id": parent and "0x" + parent, "start_time": made.iso(0),
            "end_time": made.iso(1), "status": {"status_code": "OK"}, "attributes": {"input.value": "x"}, "events": [],
            "links": [], "resource": {"attributes": {}, "schema_url": ""},
        }
        for own, parent in [(made.ROOT, None), (made.CALL, made.ROOT)]
    ]  # fmt: skip


def trail_document() -> dict[str, Any]:
    call = span(
        "c" * 16,
        {
            "openinference.span.kind": "LLM", "llm.token_count.prompt": "3",
            "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi",
            "input.value": '{"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}',
            "output.value": '{"role": "assistant", "content": "ho"}',
        },
        events=[{"Timestamp": "2025-03-19T16:00:00.1", "Name": "exception", "Attributes": {"a": "b"}}],
        logs=[{"body": {"x": 1}}],
    )  # fmt: skip
    return document(span("a" * 16, {"openinference.span.kind": "AGENT"}, children=[span("b" * 16, children=[call])]))


DOCUMENTS: dict[str, Callable[[], Any]] = {
    "trail": trail_document,
    "otlp": otlp_request,
    "otel_sdk": sdk_lines,
    "phoenix": made.phoenix_rows,
    "langfuse": made.langfuse_trace,
    "mlflow": made.mlflow_trace,
    "trulens": made.trulens_rows,
    "inspect": made.inspect_log,
}
SPANS = {"trail": 3, "otlp": 3, "otel_sdk": 2, "phoenix": 3, "langfuse": 3, "mlflow": 3, "trulens": 3, "inspect": 6}


def fine(found: list[Trace | Rejected]) -> None:
    """What every outcome must be: traces whose spans stand in order, or rejections that say all four things."""
    assert found, "nothing came out: input was swallowed in silence"
    for item in found:
        if isinstance(item, Rejected):
            assert item.file
            assert item.reason
            assert item.remedy
            assert not item.reason.startswith("the reader failed"), item
        else:
            assert [s.seq for s in item.spans] == list(range(len(item.spans)))
            assert len({s.span_id for s in item.spans}) == len(item.spans)
            repr((item.spans, item.messages, item.logs, item.attributes)).encode("utf-8")  # no lone surrogate
            assert "\x00" not in repr(item.messages)


def test_each_document_here_is_read_as_its_format() -> None:
    for name, make in DOCUMENTS.items():
        (trace,) = read_all(make())
        assert isinstance(trace, Trace), trace
        assert (trace.format, len(trace.spans)) == (name, SPANS[name])


@pytest.mark.parametrize("name", DOCUMENTS)
@QUICK
@given(data=st.data())
def test_a_file_cut_off_anywhere_is_rejected_with_its_place(name: str, data: st.DataObject) -> None:
    raw = json.dumps(DOCUMENTS[name]()).encode()
    cut = data.draw(st.integers(1, len(raw) - 1))
    found = read_all(raw[:cut])
    fine(found)
    assert all(isinstance(item, Rejected) for item in found)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    for key, item in items:
        found.extend(places(item, (*path, key)))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=20), st.just("\x00"),
    st.just("\ud800"), st.just([]), st.just({}), st.just([1, "x", {}]), st.just({"a": {"b": []}}), st.just("9" * 30),
    st.just("PT1S"), st.just("2025-13-45T99:00:00Z"), st.just("[" * 2000), st.just(-1), st.just(10**18),
)  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
@settings(parent=QUICK, max_examples=80)
@given(data=st.data())
def test_a_value_of_another_type_anywhere_never_breaks_a_reader(name: str, data: st.DataObject) -> None:
    value = copy.deepcopy(DOCUMENTS[name]())
    for _ in range(data.draw(st.integers(1, 3))):
        put(value, data.draw(st.sampled_from(places(value))), copy.deepcopy(data.draw(JUNK)))
    raw = json.dumps(value).encode("utf-8", "surrogatepass")
    fine(list(read_bytes(raw, file="t.json", format=name)))
    fine(read_all(raw))


@pytest.mark.parametrize("name", DOCUMENTS)
@settings(parent=QUICK, max_examples=60)
@given(data=st.data())
def test_a_key_that_is_gone_loses_no_span_in_silence(name: str, data: st.DataObject) -> None:
    value = copy.deepcopy(DOCUMENTS[name]())
    leaves = [p for p in places(value) if isinstance(p[-1], str)]
    path = data.draw(st.sampled_from(leaves))
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    removed = holder.pop(path[-1])
    found = list(read_bytes(json.dumps(value).encode(), file="t.json", format=name))
    fine(found)
    kept = sum(len(item.spans) for item in found if isinstance(item, Trace))
    told = any(isinstance(item, Rejected) or item.all_warnings for item in found)
    held_spans = isinstance(removed, (list, dict)) and path[-1] not in ("context", "trace", "record", "status")
    assert kept >= SPANS[name] or told or held_spans


@pytest.mark.parametrize("format", [reader.NAME for reader in READERS])
@QUICK
@given(raw=st.binary(max_size=400))
def test_bytes_of_any_kind_are_answered(format: str, raw: bytes) -> None:
    fine(list(read_bytes(raw, file="t.bin", format=format)))
    fine(list(read_bytes(raw, file="t.bin")))


@pytest.mark.parametrize("depth", [200, 900, pytest.param(200_000, marks=pytest.mark.soak)])
def test_deep_nesting_is_read_or_named(depth: int) -> None:
    read_nested(depth)


def test_deep_nesting_takes_no_quadratic_time() -> None:
    assert_linear(read_nested, 10_000)


def read_nested(depth: int) -> None:
    for text in (
        b"[" * depth,
        b"[" * depth + b"]" * depth,
        b'{"a":' * depth + b"1" + b"}" * depth,
        json.dumps(document(span("a" * 16)))
        .encode()
        .replace(b'"links": []', b'"links": ' + b"[" * depth + b"]" * depth),
        json.dumps(document(span("a" * 16, {"input.value": "[" * depth + "]" * depth}))).encode(),
    ):
        fine(read_all(text))


def test_a_deep_attribute_is_kept_as_text() -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    trace = read_one(document(span("a" * 16, {"deep": deep})))
    assert trace.spans[0].attributes["deep"] == "[" * 300 + '"x"' + "]" * 300


def test_a_tree_of_400_levels_keeps_every_span() -> None:
    inner = span("0" * 16)
    for number in range(1, 400):
        inner = span(f"{number:016x}", children=[inner])
    trace = read_one(document(inner))
    assert len(trace.spans) == 400
    assert trace.spans[-1].depth == 399


@pytest.mark.parametrize("size", [2, 3, 500])
def test_parents_in_a_circle_lose_no_span(size: int) -> None:
    spans = [span(f"{n:016x}", parent_span_id=f"{(n + 1) % size:016x}") for n in range(size)]
    trace = read_one(document(*spans))
    assert len(trace.spans) == size
    assert sum(w.startswith("cycle") for w in trace.all_warnings) == 1


def test_a_long_chain_without_agents_takes_no_quadratic_time() -> None:
    def read_chain(size: int) -> None:
        spans = [span(f"{n:016x}", parent_span_id=f"{n - 1:016x}" if n else None) for n in range(size)]
        assert len(read_one(document(*spans)).spans) == size

    assert_linear(read_chain, 1_500)


def test_a_message_number_beyond_reason_makes_no_flood_of_messages() -> None:
    attributes = {"openinference.span.kind": "LLM", "llm.input_messages.999999.message.role": "user"}
    trace = read_one(document(span("a" * 16, attributes)))
    assert len(trace.messages) <= 2


def test_a_string_of_20_mb_is_read_whole() -> None:
    trace = read_one(document(span("a" * 16, {"output.value": "x" * 20_000_000})))
    assert len(trace.spans[0].output or "") == 20_000_000


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        (b'{"x": NaN}', "NaN"), (b'{"x": -Infinity}', "-Infinity"), (b'{"x": "\\ud83d"}', "\\ud83d"),
        (b'{"x": "a\\u0000b"}', "a\\u0000b"), (b'{"x": "a\x00b"}', "a\\u0000b"), (b'{"x": "a\xffb"}', "a\\xffb"),
    ],
)  # fmt: skip
def test_what_json_cannot_hold_is_kept_readable_and_said(raw: bytes, seen: str) -> None:
    text = json.dumps(document(span("a" * 16, {"k": "HERE"}))).encode()
    trace = read_one(text.replace(b'{"k": "HERE"}', raw))
    assert trace.spans[0].attributes["x"] == seen
    assert trace.warnings


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_every_unicode_encoding_gives_the_same_trace(encoding: str) -> None:
    text = json.dumps(document(span("a" * 16, {"output.value": "naïve 𒀀"})), ensure_ascii=False)
    assert read_one(text.encode(encoding)).spans == read_one(text.encode()).spans


def test_windows_line_ends_change_nothing() -> None:
    lines = [json.dumps(line) for line in sdk_lines()]
    one, other = read_all("\n".join(lines).encode()), read_all("\r\n".join(lines).encode())
    assert isinstance(one[0], Trace)
    assert isinstance(other[0], Trace)
    assert one[0].spans == other[0].spans


def test_a_broken_line_is_rejected_by_number_and_the_rest_goes_on() -> None:
    lines = [json.dumps(line) for line in sdk_lines()]
    bad, trace = read_all(f"{lines[0]}\n{{broken\n{lines[1]}\n".encode())
    assert isinstance(bad, Rejected)
    assert bad.place.startswith("line 2")
    assert isinstance(trace, Trace)
    assert len(trace.spans) == 2


def test_console_output_with_other_text_between_is_read() -> None:
    printed = "Starting up\n" + "\nsome log line\n".join(json.dumps(line, indent=4) for line in sdk_lines())
    found = read_all(printed.encode())
    traces = [item for item in found if isinstance(item, Trace)]
    assert [len(trace.spans) for trace in traces] == [2]
    assert next(item.place for item in found if isinstance(item, Rejected)) == "line 1"


def test_a_span_that_is_no_object_is_named_and_the_others_stay() -> None:
    trace = read_one(document(span("a" * 16), "not a span"))  # type: ignore[arg-type]
    assert len(trace.spans) == 1
    assert trace.warnings[0] == "unreadable_span: spans[1] is 'not a span', not an object"


def test_a_trace_without_spans_is_rejected() -> None:
    (found,) = read_all(document())
    assert isinstance(found, Rejected)
    assert "holds no span" in found.reason


def zipped(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


def tarred(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


COMPRESSIONS: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, zstandard.compress, bz2.compress, lzma.compress)
ONE = json.dumps(document(span("a" * 16))).encode()


@pytest.mark.parametrize(
    "packed",
    [
        zipped(**{"in/a.json": ONE}), tarred(**{"in/a.json": ONE}), *(pack(ONE) for pack in COMPRESSIONS),
        gzip.compress(zipped(**{"a.json": ONE})), lzma.compress(tarred(**{"a.json": ONE})),
        zipped(**{"a.json.zst": zstandard.compress(ONE)}),
    ],
    ids=["zip", "tar.gz", "gz", "zst", "bz2", "xz", "zip in gz", "tar.xz", "zst in zip"],
)  # fmt: skip
def test_archives_are_opened(packed: bytes) -> None:
    (trace,) = read_all(packed, "x")
    assert isinstance(trace, Trace)
    assert trace.source.data == ONE


@pytest.mark.parametrize("name", ["../../evil.json", "/etc/evil.json", "..\\evil.json", "C:/evil.json"])
def test_a_name_that_leads_out_of_its_archive_is_rejected_and_nothing_written(name: str, tmp_path: Path) -> None:
    for make in (zipped, tarred):
        file = tmp_path / "a.zip"
        file.write_bytes(make(**{name: ONE, "good.json": ONE}))
        bad, good = list(read_traces(file))
        assert isinstance(bad, Rejected)
        assert "leads out of the archive" in bad.reason
        assert isinstance(good, Trace)
        assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_zip_bomb_is_refused_by_what_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "RATIO_FREE_BYTES", 1_000_000)
    zeros = b"0" * 5_000_000
    for packed in (zipped(**{"a.json": zeros}), *(pack(zeros) for pack in COMPRESSIONS)):
        (found,) = read_all(packed, "bomb")
        assert isinstance(found, Rejected)
        assert "zip bomb" in found.reason


def test_a_bomb_that_is_refused_is_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "RATIO_FREE_BYTES", 4_000_000)
    zeros = b"0" * 60_000_000
    for packed in (zipped(**{"a.json": zeros}), *(pack(zeros) for pack in COMPRESSIONS)):
        tracemalloc.start()
        (found,) = read_all(packed, "bomb")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert isinstance(found, Rejected)
        assert peak < 20_000_000


def test_archives_in_an_archive_unpack_to_no_more_together_than_one_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each below the free size, of an archive so small that all of them would take hours."""
    monkeypatch.setattr(bounded, "RATIO_FREE_BYTES", 1_000_000)
    inner = zipped(blank=b" " * 900_000)
    found = read_all(zipped(**{f"{number}.zip": inner for number in range(40)}), "nested.zip")
    reasons = [one.reason for one in found if isinstance(one, Rejected)]
    assert len(reasons) == 40
    assert sum("zip bomb" in reason for reason in reasons) > 30


def test_a_large_input_that_is_no_bomb_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "RATIO_FREE_BYTES", 1_000)
    text = json.dumps(document(span("a" * 16, {"x": str(list(range(500_000)))}))).encode()
    for packed in (zipped(**{"a.json": text}), *(pack(text) for pack in COMPRESSIONS)):
        (trace,) = read_all(packed, "large")
        assert isinstance(trace, Trace)
        assert trace.source.data == text


def test_an_input_beyond_the_size_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_BYTES", 1_000)
    (found,) = read_all(gzip.compress(ONE * 3), "big.gz")
    assert isinstance(found, Rejected)
    assert "larger than" in found.reason


def test_a_reader_that_fails_at_recognising_a_file_does_not_stop_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(sample: object) -> bool:
        raise TypeError("unhashable")

    monkeypatch.setattr(READERS[0], "sniff", failing)
    (trace,) = read_all(
        json.dumps([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]).encode(), "x"
    )
    assert isinstance(trace, Trace)


def test_a_workbook_is_refused_as_what_it_is_and_not_by_its_parts() -> None:
    (refused,) = read_all(zipped(**{"[Content_Types].xml": b"<x/>", "xl/workbook.xml": b"<x/>"}), "labels.xlsx")
    assert isinstance(refused, Rejected)
    assert (refused.reason, refused.remedy) == ("an Excel workbook", "save its sheet as CSV, in UTF-8")


def test_the_list_of_an_archive_is_read_once_however_many_files_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *args: Any, **options: Any) -> None:
            opened.append(self)
            super().__init__(*args, **options)

    packed = zipped(**{f"{number}.json": ONE.replace(b"01", b"%02d" % number) for number in range(10, 60)})
    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    traces = read_all(packed, "many.zip")
    assert len(traces) == 50
    assert all(isinstance(trace, Trace) for trace in traces)
    assert len(opened) <= 1 + len(READERS)  # and each reader may look whether it is its own


def test_an_archive_of_too_many_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_MEMBERS", 2)
    for pack in (zipped, tarred):
        (found,) = read_all(pack(**dict.fromkeys(("a.json", "b.json", "c.json", "d.json"), ONE)), "many")
        assert isinstance(found, Rejected)
        assert "more than 2 files" in found.reason


def test_files_of_an_archive_may_not_unpack_beyond_reason_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "RATIO_FREE_BYTES", 5_000)
    monkeypatch.setattr(bounded, "MAX_RATIO", 3)
    traces = {f"{number}.json": ONE + b" " * 2_000 for number in range(12)}
    found = read_all(zipped(**traces), "bomb.zip")
    assert any(isinstance(one, Rejected) and "zip bomb" in one.reason for one in found)


@QUICK
@given(data=st.data())
def test_a_damaged_archive_is_named(data: st.DataObject) -> None:
    make = data.draw(
        st.sampled_from(
            [lambda: zipped(**{"a.json": ONE}), made.inspect_zip, *(partial(one, ONE) for one in COMPRESSIONS)]
        )
    )
    raw = bytearray(make())
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.integers(0, 255))
    fine(read_all(bytes(raw), "x"))


@pytest.mark.parametrize("offset", [None, 356])
def test_an_archive_with_no_file_in_it_is_named(offset: int | None) -> None:
    raw = bytearray(zipped() if offset is None else zipped(**{"a.json": ONE}))
    if offset is not None:
        raw[offset] = 0  # the size of its directory
    (found,) = read_all(bytes(raw), "a.zip")
    assert isinstance(found, Rejected)
    assert (found.file, found.reason) == ("a.zip", "an archive with no file in it")


def test_an_archive_with_an_entry_without_a_name_is_named() -> None:
    raw = bytearray(zipped(**{"a.json": ONE}))
    raw[raw.index(b"PK\x01\x02") + 46] = 0  # the first character of the name in its directory
    (found,) = read_all(bytes(raw), "a.zip")
    assert isinstance(found, Rejected)
    assert found.reason == "damaged archive: an entry without a name"


def test_a_folder_names_the_bad_files_and_reads_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(ONE)
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "note.txt").write_bytes(b"hello")
    (tmp_path / ".DS_Store").write_bytes(b"x")
    found = list(read_traces(tmp_path))
    fine(found)
    assert [Path(item.file).name for item in found if isinstance(item, Rejected)] == ["empty.json", "note.txt"]
    assert sum(isinstance(item, Trace) for item in found) == 1


def test_a_glob_and_standard_input_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_bytes(ONE)
    (tmp_path / "b.json").write_bytes(ONE)
    assert len(list(read_traces(tmp_path / "*.json"))) == 2
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ONE), encoding="utf-8"))
    (trace,) = read_traces("-")
    assert isinstance(trace, Trace)
    assert trace.source.file == "-"


@pytest.mark.parametrize("path", ["no/such/file.json", "no/such/*.json"])
def test_a_path_where_nothing_is_is_an_error(path: str) -> None:
    with pytest.raises(IngestError, match=r"no file or folder|nothing matches"):
        list(read_traces(path))


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(IngestError) as caught:
        list(read_bytes(ONE, file="a", format="nope"))
    assert "trail" in caught.value.remedy
