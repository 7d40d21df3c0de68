"""The store: what goes in comes out, once, whole, and never half."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, func, insert, select
from tests.build import LONG_TEXT, TRACE, small_trace, span_id, workspace

from tracejury.ingest import ready, workers
from tracejury.ingest.batch import ingest, store
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.store import (
    Packed,
    StoreError,
    load,
    load_source,
    load_span,
    open_engine,
    pack,
    read_transaction,
    schema,
    search,
    trace_ids,
    write,
    write_transaction,
)
from tracejury.ingest.store.search import make_index
from tracejury.ingest.table import SCHEMA, span_frame, span_table, trace_frame, write_csv, write_parquet
from tracejury.ingest.texts import TextRefs, restore
from tracejury.ingest.trace import SPAN_COLUMNS, Message, Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble
from tracejury.judging.store import open_workspace

WORDS = st.sampled_from(["h", "ha", "har", "harb", "harbour", "harbours", "haven", "have", "lamp", "lamps", "la", "x"])


def bare(trace: Trace) -> Trace:
    return replace(trace, source=Source(file=""))


def test_a_trace_comes_back_as_it_went_in(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    with read_transaction(opened.engine) as connection:
        assert bare(load(connection, TRACE)) == bare(small_trace())


def test_one_span_comes_back_alone(tmp_path: Path) -> None:
    opened, trace = workspace(tmp_path), small_trace()
    with read_transaction(opened.engine) as connection:
        assert load_span(connection, TRACE, 3) == trace.spans[3]
        with pytest.raises(KeyError):
            load_span(connection, TRACE, 99)


def test_source_bytes_are_kept_to_the_byte(tmp_path: Path) -> None:
    with read_transaction(workspace(tmp_path).engine) as connection:
        assert load_source(connection, TRACE).data == TRACE.encode()


def test_a_long_text_is_stored_once_however_often_it_stands(tmp_path: Path) -> None:
    opened = workspace(tmp_path, small_trace(), small_trace("cd" * 16))
    with read_transaction(opened.engine) as connection:
        assert len(trace_ids(connection)) == 2
        stored = connection.scalar(select(func.count()).select_from(schema.text))
    texts = {m.content for m in small_trace().messages if m.content and len(m.content) >= 256} | {LONG_TEXT}
    assert stored == len(texts)


def test_ingesting_again_changes_nothing(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    again = store(opened.engine, [small_trace()])
    assert (again.traces, again.duplicates, again.rejected) == (0, 1, [])


def test_the_same_id_with_other_content_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    other = replace(small_trace(), goal="something else")
    with pytest.raises(StoreError, match="other content"), write_transaction(opened.engine) as connection:
        write(connection, pack(other))
    report = store(opened.engine, [other, small_trace("cd" * 16)])
    assert (report.traces, len(report.rejected)) == (1, 1)
    assert "other content" in report.rejected[0].reason
    with read_transaction(opened.engine) as connection:
        assert load(connection, TRACE).goal == small_trace().goal


def test_a_failed_transaction_leaves_nothing_behind(tmp_path: Path) -> None:
    opened = workspace(tmp_path)

    def fail_after_writing() -> None:
        with write_transaction(opened.engine) as connection:
            write(connection, pack(small_trace("cd" * 16)))
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        fail_after_writing()
    with read_transaction(opened.engine) as connection:
        assert trace_ids(connection) == [TRACE]
        assert connection.scalar(select(func.count()).select_from(schema.span)) == 5


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ids = [f"{n:032x}" for n in range(40)]

    def add(some: list[str]) -> None:
        for trace_id in some:
            store(opened.engine, [small_trace(trace_id)])

    threads = [threading.Thread(target=add, args=(ids[n::8],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with read_transaction(opened.engine) as connection:
        assert set(trace_ids(connection)) == {TRACE, *ids}


def test_search_finds_the_span_where_a_word_was_first_said(tmp_path: Path) -> None:
    with read_transaction(workspace(tmp_path).engine) as connection:
        assert [hit.seq for hit in search(connection, "careful clerk")] == [1]
        assert [hit.seq for hit in search(connection, "KeyErr")] == [3]
        assert search(connection, '"; DROP TABLE span; --') == []
        assert search(connection, "  ") == []


def test_a_search_of_words_that_the_index_cuts_finds_them_all(tmp_path: Path) -> None:
    with read_transaction(workspace(tmp_path).engine) as connection:
        assert [hit.seq for hit in search(connection, "careful_clerk")] == [1]
        assert search(connection, "page_down ?q=final_answer") == []


@given(st.lists(st.lists(WORDS, max_size=5).map(" ".join), max_size=12), st.lists(WORDS, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_a_search_gives_the_first_spans_that_hold_all_words_and_a_prefix(bodies: list[str], words: list[str]) -> None:
    """Short prefixes, long ones, and one that more words begin with than a query spells out."""
    bodies = [*bodies, *(f"harbour {n:04}" for n in range(101)), *(f"haven{n:03}" for n in range(101))]
    right = [
        number
        for number, body in enumerate(bodies)
        if set(words[:-1]) <= set(body.split()) and any(word.startswith(words[-1]) for word in body.split())
    ]
    assert searched(bodies, " ".join(words)) == right[:20]


def test_a_word_that_the_index_cut_within_a_letter_hides_no_other() -> None:
    long = "harb" + "世" * 20_000  # FTS5 keeps 32,768 bytes of it: a third of its last letter
    assert searched([f"harbour {long}", "harb一", "harb界", "harm"], "harb") == [0, 1, 2]


def searched(bodies: Sequence[str], query: str) -> list[int]:
    """The places of the first 20 spans that a search gives, of one trace whose spans hold these texts."""
    drafts = [SpanDraft(span_id=f"{n:016}", name="span", input=body, start_time=n) for n, body in enumerate(bodies)]
    trace = assemble(drafts, trace_id="0" * 32, format="otlp", source=Source(file="f", data=b"f"))
    engine = open_engine("sqlite://")
    with engine.begin() as connection:
        schema.metadata.create_all(connection, schema.TRACE_TABLES)
        make_index(connection)
        write(connection, pack(trace))
        return [int(hit.span_id) for hit in search(connection, query, limit=20)]


def test_rows_that_give_their_keys_back_are_stored_with_nul_escaped(tmp_path: Path) -> None:
    rows = [{"trace_id": name, "body": b"\0", "has_root": 0, "received_at": 1} for name in ("a", "b\0")]
    with write_transaction(workspace(tmp_path).engine) as connection:
        keys = connection.scalars(insert(schema.inbox).returning(schema.inbox.c.inbox_key), rows).all()
        stored = connection.execute(select(schema.inbox.c.trace_id, schema.inbox.c.body)).all()
    assert len(set(keys)) == 2
    assert sorted(stored) == [("a", b"\0"), ("b\\u0000", b"\0")]


@pytest.mark.parametrize("name", ["$text", "$json", "$plain"])
def test_an_attribute_named_like_a_reference_comes_back(tmp_path: Path, name: str) -> None:
    trace = assemble(
        [SpanDraft(span_id="s", attributes={name: "word"})], trace_id="0" * 32, format="otlp", source=Source(file="f")
    )
    opened = workspace(tmp_path)
    store(opened.engine, [trace])
    with read_transaction(opened.engine) as connection:
        assert load(connection, "0" * 32).spans == trace.spans


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=40))
@settings(max_examples=60, deadline=None)
def test_any_text_is_a_valid_search(small: Engine, query: str) -> None:
    with read_transaction(small) as connection:
        assert len(search(connection, query)) <= 5


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return workspace(tmp_path_factory.mktemp("small")).engine


def test_the_summary_counts_tokens_of_leaf_llm_spans_only(tmp_path: Path) -> None:
    with read_transaction(workspace(tmp_path).engine) as connection:
        row = trace_frame(connection).iloc[0]
    assert (row["spans"], row["llm_spans"], row["error_spans"], row["total_tokens"]) == (5, 3, 1, 40)
    assert row["duration_s"] == 8.0


def test_the_span_table_has_the_same_columns_when_empty() -> None:
    assert span_table([]).schema == SCHEMA == span_table([small_trace()]).schema
    assert list(span_frame([]).columns) == [column.name for column in SPAN_COLUMNS]


def test_parquet_gives_back_the_table(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    traces = [small_trace(), small_trace("cd" * 16)]
    assert write_parquet(traces, tmp_path / "spans.parquet") == 10
    assert pq.read_table(tmp_path / "spans.parquet").equals(span_table(traces))


def test_the_frame_gives_messages_back_whole() -> None:
    frame = span_frame([small_trace()])
    assert frame["input_messages"][1][0]["content"] == small_trace().messages[0].content


def test_csv_cells_cannot_run_as_formulas(tmp_path: Path) -> None:
    trace = small_trace()
    spans = tuple(replace(span, name="=HYPERLINK(1)") for span in trace.spans)
    write_csv(span_frame([replace(trace, spans=spans)]), tmp_path / "spans.csv")
    text = (tmp_path / "spans.csv").read_text(encoding="utf-8")
    assert "'=HYPERLINK(1)" in text
    assert ",=HYPERLINK" not in text


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
keys = st.sampled_from(["$text", "$json", "$plain", "a"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(json_values)
def test_any_json_comes_back_from_its_references(value: object) -> None:
    refs = TextRefs()
    assert restore(refs.json(value), refs.texts.__getitem__) == value  # type: ignore[arg-type]


def test_a_missing_path_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    opened = workspace(tmp_path / "home")
    samples = Path(__file__).resolve().parents[2] / "data" / "samples" / "trail"
    report = ingest(opened.engine, [tmp_path / "nowhere.json", samples])
    assert report.traces == len(list(samples.glob("*.json")))
    assert [rejected.file for rejected in report.rejected] == [str(tmp_path / "nowhere.json")]


def test_workers_store_the_same_as_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "START_BYTES", 1)
    samples = Path(__file__).resolve().parents[2] / "data" / "samples" / "trail"
    alone, shared_out = workspace(tmp_path / "a"), workspace(tmp_path / "b")
    one = ingest(alone.engine, [samples])
    two = ingest(shared_out.engine, [samples], workers=2)
    assert (one.traces, one.spans, one.warnings) == (two.traces, two.spans, two.warnings)
    with read_transaction(alone.engine) as a, read_transaction(shared_out.engine) as b:
        for trace_id in trace_ids(a):
            assert bare(load(a, trace_id)) == bare(load(b, trace_id))


@pytest.mark.shared
def test_the_shared_trail_traces_are_all_taken_and_come_back_equal(shared: Path, tmp_path: Path) -> None:
    from tracejury.ingest.readers import read_traces

    opened = workspace(tmp_path)
    report = ingest(opened.engine, [shared / "trail" / "traces"])
    assert (report.traces, report.spans, report.rejected) == (69, 2029, [])
    assert report.warnings["duplicate_span"] == 1
    again = ingest(opened.engine, [shared / "trail" / "traces"])
    assert (again.traces, again.duplicates) == (0, 69)
    with read_transaction(opened.engine) as connection:
        for trace in read_traces(shared / "trail" / "traces" / "swe_bench"):
            assert isinstance(trace, Trace)
            assert bare(load(connection, trace.trace_id)) == bare(trace)


def test_the_samples_are_all_taken_and_come_back_equal(tmp_path: Path) -> None:
    from tracejury.ingest.readers import read_traces

    samples = Path(__file__).resolve().parents[2] / "data" / "samples"
    folders = [samples / name for name in ("trail", "otlp", "openai_agents", "langfuse", "codex", "zipkin", "gaia2")]
    traces = {trace.trace_id: trace for trace in read_traces(samples / "trail") if isinstance(trace, Trace)}
    opened = workspace(tmp_path)
    report = ingest(opened.engine, folders)
    assert report.rejected == []
    again = ingest(opened.engine, folders)
    assert (again.traces, again.duplicates) == (0, report.traces + report.duplicates)
    with read_transaction(opened.engine) as connection:
        assert len(trace_ids(connection)) == report.traces + 1  # and that of every workspace of these tests
        for trace_id, trace in traces.items():
            assert bare(load(connection, trace_id)) == bare(trace)


@pytest.mark.shared
def test_the_database_is_an_eighth_of_the_json_it_holds(shared: Path, tmp_path: Path) -> None:
    folder = shared / "trail" / "traces"
    opened = workspace(tmp_path)
    ingest(opened.engine, [folder])
    with read_transaction(opened.engine) as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    size = sum(file.stat().st_size for file in folder.rglob("*.json"))
    assert (tmp_path / "tracejury.db").stat().st_size <= size / 8


def test_span_ids_of_the_small_trace() -> None:
    assert [span.span_id for span in small_trace().spans] == [span_id(n) for n in range(1, 6)]


def test_a_trace_after_a_rejected_one_keeps_the_text_they_share(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    shared_text = "said by both, and by nobody before. " * 20
    rejected_one = with_output(small_trace(), shared_text)
    later = with_output(small_trace("cd" * 16), shared_text)
    report = store(opened.engine, [rejected_one, later])
    assert (report.traces, len(report.rejected)) == (1, 1)
    with read_transaction(opened.engine) as connection:
        assert load(connection, "cd" * 16).spans[0].output == shared_text


def test_a_long_text_of_many_traces_is_kept_once(tmp_path: Path) -> None:
    opened = open_workspace(tmp_path)
    prompt = "".join(f"{number:x}" for number in range(20_000))  # does not compress
    traces = [with_output(small_trace(f"{number:032x}"), prompt) for number in range(20)]
    own = [replace(trace, spans=(*trace.spans[:-1], replace(trace.spans[-1], output=f"own {number} " * 60)))
           for number, trace in enumerate(traces)]  # fmt: skip
    store(opened.engine, own)
    with read_transaction(opened.engine) as connection:
        assert sum(map(len, connection.scalars(select(schema.text_pack.c.body)))) < 2 * len(prompt)
        for trace in own:
            assert bare(load(connection, trace.trace_id)) == bare(trace)


def test_a_trace_that_refers_to_a_text_that_is_nowhere_is_refused_whole(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    broken = replace(pack(small_trace("cd" * 16)), references=("00" * 16,))
    with pytest.raises(StoreError, match="lacks 1 text"), write_transaction(opened.engine) as connection:
        write(connection, broken)
    with read_transaction(opened.engine) as connection:
        assert trace_ids(connection) == [TRACE]


def with_output(trace: Trace, output: str) -> Trace:
    first, *others = trace.spans
    return replace(trace, spans=(replace(first, output=output), *others))


def test_the_bytes_of_a_file_are_packed_once_for_all_its_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[bytes] = []
    pack_bytes = ready.pack_bytes
    monkeypatch.setattr(ready, "pack_bytes", lambda data: packed.append(data) or pack_bytes(data))
    shared = b"the bytes of a file"
    traces = [replace(small_trace(f"{n:032x}"), source=Source(file="f", data=shared)) for n in range(5)]
    assert store(open_workspace(tmp_path).engine, traces).traces == 5
    assert packed.count(shared) == 1


def test_a_trace_that_cannot_be_written_as_rows_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    opened = open_workspace(tmp_path)
    first = small_trace("cd" * 16)
    odd = replace(first, attributes={"number": 2**70})
    report = store(opened.engine, [odd, small_trace()])
    assert (report.traces, len(report.rejected)) == (1, 1)
    assert "cannot be stored" in report.rejected[0].reason
    assert report.rejected[0].file == first.source.file


@pytest.mark.parametrize("wrong", [{"turn": 2**70}, {"name": "lone \ud800"}, {"name": None}])
def test_a_trace_that_the_database_refuses_is_named_and_its_batch_is_kept(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    opened = open_workspace(tmp_path)
    refused = small_trace("cd" * 16)
    rows = [small_trace(f"{n:032x}") for n in range(3)]
    spoilt = ready.pack

    def pack_spoilt(trace: Trace, **more: object) -> Packed:
        packed = spoilt(trace, **more)  # type: ignore[arg-type]
        return packed if trace is not refused else replace(packed, spans=[{**packed.spans[0], **wrong}])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ready, "pack", pack_spoilt)
        report = store(opened.engine, [rows[0], refused, *rows[1:]])
    assert (report.traces, report.spans) == (3, 15)
    (rejected,) = report.rejected
    assert "cannot be stored" in rejected.reason
    with read_transaction(opened.engine) as connection:
        assert trace_ids(connection) == [trace.trace_id for trace in rows]
        assert connection.scalar(select(func.count()).select_from(schema.span)) == 15


def test_tokens_whose_sum_no_integer_column_holds_are_unknown_not_fatal(tmp_path: Path) -> None:
    trace = small_trace()
    spans = tuple(replace(span, prompt_tokens=2**63 - 1) if span.kind == "LLM" else span for span in trace.spans)
    opened = workspace(tmp_path, replace(trace, spans=spans))
    with read_transaction(opened.engine) as connection:
        assert connection.scalar(select(schema.trace.c.prompt_tokens)) is None
        assert load(connection, TRACE).spans == spans


@pytest.mark.parametrize("reasoning", ["Ask the sonar.", "Ask the sonar. " * 40])
def test_what_a_model_thought_comes_back_as_it_went_in(reasoning: str, tmp_path: Path) -> None:
    table = MessageTable()
    said = table.place(Message("assistant", "Nine.", (), None, None, reasoning))
    made = assemble([SpanDraft(span_id="a" * 16, kind="LLM", output_messages=[said])], trace_id="t", format="otlp",
                    source=Source(file="x", data=b"x"), messages=table)  # fmt: skip
    opened = open_workspace(tmp_path / "w")
    store(opened.engine, [made])
    with read_transaction(opened.engine) as connection:
        assert load(connection, "t").messages == made.messages
        assert [hit.seq for hit in search(connection, "sonar")] == [0]
