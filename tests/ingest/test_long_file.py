"""A file of lines too long to be held gives what it gives when read whole, and is kept and checked in parts."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from tests.benchmarks import corpus

from tracejury.ingest import check, long_file, readers, ready
from tracejury.ingest.batch import ingest
from tracejury.ingest.bounded import at_most
from tracejury.ingest.check import check_store
from tracejury.ingest.formats import long_lines
from tracejury.ingest.pack import pack_long
from tracejury.ingest.readers import read_traces
from tracejury.ingest.store import load_source, read_transaction, schema, trace_ids
from tracejury.ingest.trace import Rejected, Source, Trace
from tracejury.judging.store import open_workspace

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"
DIALECTS = Path(__file__).resolve().parent / "dialects"
LINES = [
    path
    for path in sorted([*SAMPLES.glob("ot*/*.jsonl"), *DIALECTS.glob("*.otlp.jsonl")])
    if b"\n" in path.read_bytes().strip()  # one line alone is read whole
]


@pytest.fixture
def as_long(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Every file of lines counts as long, and few of its traces are held at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_file, "LONG_BYTES", 1)
        patch.setattr(check, "LONG_BYTES", 1)
        patch.setattr(long_lines, "AT_ONCE", 4_000)
        yield patch


def read(path: Path, **options: str) -> list[Trace | Rejected]:
    return [item if isinstance(item, Rejected) else replace(item, source=Source(file="")) for item in
            read_traces(path, **options)]  # type: ignore[arg-type]  # fmt: skip


def both_ways(path: Path, patch: pytest.MonkeyPatch) -> list[Trace | Rejected]:
    """What the long way gives, after comparing it with the other."""
    held = {item.source.path for item in read_traces(path) if isinstance(item, Trace)}
    assert held == {str(path)}, "it was read whole"
    long = read(path)
    with patch.context() as other:
        other.setattr(long_file, "LONG_BYTES", 10**9)
        assert read(path) == long
    return long


def requests(count: int, *, spans: int = 5) -> list[dict[str, object]]:
    return [corpus.otlp_request(number, spans=spans) for number in range(count)]


def spans_of(request: dict[str, object]) -> list[dict[str, object]]:
    groups: list[dict[str, list[dict[str, list[dict[str, object]]]]]] = request["resourceSpans"]  # type: ignore[assignment]
    return groups[0]["scopeSpans"][0]["spans"]


def one_request(spans: list[dict[str, object]]) -> dict[str, object]:
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "bench"}, "spans": spans}]}]}


def log(trace_id: str, span_id: str, text: str) -> dict[str, object]:
    record = {
        "traceId": trace_id,
        "spanId": span_id,
        "body": {"stringValue": text},
        "timeUnixNano": "1767323045000000000",
    }
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}


def written(path: Path, lines: list[object]) -> Path:
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else orjson.dumps(line) for line in lines) + b"\n")
    return path


@pytest.mark.parametrize("sample", LINES, ids=lambda path: path.name)
def test_every_sample_of_lines_reads_the_same(sample: Path, as_long: pytest.MonkeyPatch) -> None:
    assert both_ways(sample, as_long)


def test_batches_of_many_traces_and_a_trace_over_the_whole_file(tmp_path: Path, as_long: pytest.MonkeyPatch) -> None:
    spans = [span for request in requests(12) for span in spans_of(request)]
    random.Random(1).shuffle(spans)
    lines: list[object] = [one_request(spans[at : at + 7]) for at in range(0, len(spans), 7)]
    found = both_ways(written(tmp_path / "a.jsonl", lines), as_long)
    assert [len(trace.spans) for trace in found if isinstance(trace, Trace)] == [5] * 12


def test_shuffled_lines_give_the_same_tables(tmp_path: Path, as_long: pytest.MonkeyPatch) -> None:
    lines: list[object] = [one_request([span]) for request in requests(4) for span in spans_of(request)]
    in_order = both_ways(written(tmp_path / "a.jsonl", lines), as_long)
    random.Random(2).shuffle(lines)
    shuffled = both_ways(written(tmp_path / "b.jsonl", lines), as_long)
    by_id = {trace.trace_id: trace for trace in in_order if isinstance(trace, Trace)}
    assert by_id == {trace.trace_id: trace for trace in shuffled if isinstance(trace, Trace)}


def test_lines_that_cannot_be_read_are_named_with_their_number(tmp_path: Path, as_long: pytest.MonkeyPatch) -> None:
    first, second, third = requests(3)
    lines: list[object] = [first, b"", b'{"resourceSpans": [', {"other": 1}, second, b'{"x": NaN}', third]
    found = both_ways(written(tmp_path / "a.jsonl", lines), as_long)
    bad = [item for item in found if isinstance(item, Rejected)]
    assert [item.place.split(",")[0] for item in bad] == ["line 3", "line 4", "line 6"]
    assert len(found) == 6


@pytest.mark.parametrize(("size", "told"), [(20_000, "10 spans"), (26_000, "30 spans")], ids=["bytes", "spans"])
def test_a_trace_too_large_to_be_held_is_named_and_the_others_are_read(
    tmp_path: Path, as_long: pytest.MonkeyPatch, size: int, told: str
) -> None:
    dense: list[dict[str, object]] = [
        {"traceId": "d" * 32, "spanId": f"{number:016x}", "name": "s"} for number in range(1, 31)
    ]
    (verbose,) = requests(1, spans=10)
    large = dense if told == "30 spans" else spans_of(verbose)
    lines: list[object] = [*requests(3)[1:], *(one_request([span]) for span in large)]
    with at_most(size):
        found = read(written(tmp_path / "a.jsonl", lines))
    assert [len(item.spans) for item in found if isinstance(item, Trace)] == [5, 5]
    (refused,) = (item for item in found if isinstance(item, Rejected))
    assert refused.reason.startswith("trace ")
    assert f"has {told} in" in refused.reason
    assert "JSON lines" in refused.remedy


def test_a_document_of_more_spans_than_can_be_held_is_refused_whole(tmp_path: Path) -> None:
    dense: list[dict[str, object]] = [
        {"traceId": "d" * 32, "spanId": f"{number:016x}", "name": "s"} for number in range(1, 31)
    ]
    path = tmp_path / "a.json"
    path.write_bytes(orjson.dumps(one_request(dense)))
    with at_most(20_000):
        (refused,) = read(path)
    assert isinstance(refused, Rejected)
    assert "it has 30 spans" in refused.reason


def test_a_first_line_that_is_cut_off_is_named_and_the_rest_is_read(
    tmp_path: Path, as_long: pytest.MonkeyPatch
) -> None:
    first, *others = requests(4)
    found = both_ways(written(tmp_path / "a.jsonl", [orjson.dumps(first)[:300], *others]), as_long)
    assert [item.place.split(",")[0] for item in found if isinstance(item, Rejected)] == ["line 1"]
    assert len(found) == 4


def test_log_records_without_a_trace_are_named_where_there_are_several(
    tmp_path: Path, as_long: pytest.MonkeyPatch
) -> None:
    of_nobody = log("", "", "whose?")
    for count, codes in ((2, {"unread_logs"}), (1, set())):
        found = both_ways(
            written(tmp_path / f"{count}.jsonl", [*requests(2 * count)[::2], of_nobody, of_nobody]), as_long
        )
        assert {w.partition(":")[0] for trace in found if isinstance(trace, Trace) for w in trace.warnings} == codes


@pytest.mark.parametrize("count", [2, 3])
def test_one_document_of_several_lines_is_read_whole(count: int, tmp_path: Path, as_long: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"[" + b",\n".join(map(orjson.dumps, requests(count))) + b"\n]\n")
    assert [item.source.path for item in read_traces(path) if isinstance(item, Trace)] == [""] * count


def test_ids_warnings_and_logs_are_those_of_the_whole_file(tmp_path: Path, as_long: pytest.MonkeyPatch) -> None:
    first, second, third = requests(3)
    spans_of(second)[3].pop("spanId")
    spans_of(third)[1].pop("traceId")
    spans_of(third)[2].pop("spanId")
    upper = [{**span, "traceId": str(span["traceId"]).upper()} for span in spans_of(first)[3:]]
    ours, own = str(spans_of(first)[0]["traceId"]), str(spans_of(first)[2]["spanId"])
    lines: list[object] = [
        log(ours, own, "before its span"), first, log("", own, "names no trace"), second,
        {"resourceSpans": [7, *third["resourceSpans"]]},  # type: ignore[misc]
        one_request(upper), log(ours.upper(), own, "\u0000"), log("ee" * 16, own, "of a trace that is not here"),
    ]  # fmt: skip
    found = both_ways(written(tmp_path / "a.jsonl", lines), as_long)
    traces = [item for item in found if isinstance(item, Trace)]
    assert [trace.trace_id for trace in traces][-1] == "unnamed"
    assert len(traces[0].logs) == 2
    assert all("unreadable_span: resourceSpans holds 7, not an object" in trace.warnings for trace in traces)


@pytest.mark.parametrize("ids", ["base64", "decimal", "text"])
def test_ids_in_other_writings(ids: str, tmp_path: Path, as_long: pytest.MonkeyPatch) -> None:
    def other(given: object) -> str:
        raw = bytes.fromhex(str(given))
        written = {"base64": base64.b64encode(raw).decode(), "decimal": str(int.from_bytes(raw)), "text": f"id-{given}"}
        return written[ids] if given else ""

    lines: list[object] = requests(3)  # type: ignore[assignment]
    for request in lines:
        for span in spans_of(request):  # type: ignore[arg-type]
            for key in ("traceId", "spanId", "parentSpanId"):
                span[key] = other(span[key])
    found = both_ways(written(tmp_path / "a.jsonl", lines), as_long)
    assert all(isinstance(trace, Trace) and len(trace.spans) == 5 and not trace.all_warnings for trace in found)


@pytest.mark.parametrize("lines", [[{"resourceSpans": []}] * 3, [log("ab" * 16, "cd" * 8, "alone")] * 2])
def test_a_file_without_spans_says_so(lines: list[object], tmp_path: Path, as_long: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.jsonl", lines)
    (long,) = read(path)
    assert isinstance(long, Rejected)
    as_long.setattr(long_file, "LONG_BYTES", 10**9)
    assert read(path) == [long]


def test_its_bytes_are_kept_and_checked_and_it_is_known_again(tmp_path: Path, as_long: pytest.MonkeyPatch) -> None:
    as_long.setattr(long_file, "BLOCK", 5_000)
    path = written(tmp_path / "a.jsonl", [*requests(9)])
    opened = open_workspace(tmp_path / "home")
    assert ingest(opened.engine, [path]).traces == 9
    with read_transaction(opened.engine) as connection:
        assert connection.exec_driver_sql("SELECT count(*), count(DISTINCT source_key) FROM source_part").one()[1] == 1
        for trace_id in trace_ids(connection):
            assert load_source(connection, trace_id).data == path.read_bytes()
    assert check_store(opened.engine) == []
    assert ingest(opened.engine, [path]).duplicates == 9
    as_long.setattr(long_file, "LONG_BYTES", 10**9)
    assert ingest(opened.engine, [path]).duplicates == 9


@pytest.mark.usefixtures("as_long")
def test_what_is_appended_while_it_is_read_waits_for_the_next_time(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [*requests(4)])
    items = read_traces(path)
    taken = [next(items)]
    with path.open("ab") as file:
        file.write(orjson.dumps(corpus.otlp_request(5)) + b"\n")
    taken += items
    assert len(taken) == 4
    assert all(isinstance(trace, Trace) for trace in taken)
    assert len(read(path)) == 5


@pytest.mark.usefixtures("as_long")
def test_a_file_that_changes_while_it_is_read_is_named_and_nothing_of_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "a.jsonl", [*requests(4)])

    def pack_then_change(file: long_file.LongFile) -> object:
        packed = pack_long(file)
        changed = tmp_path / "changed"
        changed.write_bytes(path.read_bytes().replace(b"river", b"RIVER"))
        changed.replace(path)  # at once: the traces are read meanwhile
        return packed

    monkeypatch.setattr(ready, "pack_long", pack_then_change)
    other = SAMPLES / "trail"
    opened = open_workspace(tmp_path / "home")
    report = ingest(opened.engine, [path, other])
    assert len(report.rejected) == 4
    assert {(one.file, one.reason) for one in report.rejected} == {(str(path), "the file changed while it was read")}
    assert report.traces
    with read_transaction(opened.engine) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM source_part").scalar() == 0


@pytest.mark.usefixtures("as_long")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_is_gone_before_its_bytes_are_kept_is_named_and_the_rest_goes_on(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = written(tmp_path / "a.jsonl", [*requests(4)])
    kept = written(tmp_path / "b.jsonl", [corpus.otlp_request(9)])

    def rotate_then_pack(file: long_file.LongFile) -> object:
        gone.unlink(missing_ok=True)
        return pack_long(file)

    monkeypatch.setattr(ready, "pack_long", rotate_then_pack)
    report = ingest(open_workspace(tmp_path / "home").engine, [gone, kept], workers=workers)
    assert {one.file for one in report.rejected} == {str(gone)}
    assert report.rejected[0].reason == "cannot be opened: No such file or directory"
    assert report.traces == 1


def test_a_file_that_is_gone_before_it_is_opened_is_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "a.jsonl", [*requests(2)])
    written(tmp_path / "b.jsonl", [*requests(2)])

    def rotate(path: str) -> long_file.LongFile | None:
        if not path.endswith("a.jsonl"):
            return None
        Path(path).unlink()
        return long_file.LongFile(path, 1)

    monkeypatch.setattr(readers, "long_file", rotate)
    gone, *traces = read(tmp_path)
    assert isinstance(gone, Rejected)
    assert gone.file.endswith("a.jsonl")
    assert len(traces) == 2


@pytest.mark.usefixtures("as_long")
def test_a_file_that_changes_takes_no_other_long_file_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(tmp_path / "a.jsonl", [*requests(2)])
    changing = written(tmp_path / "b.jsonl", [corpus.otlp_request(number) for number in (5, 6)])

    def pack_then_change(file: long_file.LongFile) -> object:
        packed = pack_long(file)
        if file.path == str(changing):
            changing.write_bytes(changing.read_bytes().replace(b"river", b"RIVER"))
        return packed

    monkeypatch.setattr(ready, "pack_long", pack_then_change)
    report = ingest(open_workspace(tmp_path / "home").engine, [whole, changing])
    assert {one.file for one in report.rejected} == {str(changing)}
    assert report.traces == 2


@pytest.mark.usefixtures("as_long")
def test_a_redacted_long_file_keeps_no_bytes_and_says_so(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [*requests(2)])
    opened = open_workspace(tmp_path / "home")
    report = ingest(opened.engine, [path], redact=True)
    assert report.warnings["source_not_kept"] == 2
    with read_transaction(opened.engine) as connection:
        assert connection.scalar(schema.source.select().with_only_columns(schema.source.c.size)) == 0
        assert connection.exec_driver_sql("SELECT count(*) FROM source_part").scalar() == 0
