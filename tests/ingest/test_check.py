"""`verify`: what it finds, what it mends, and how often it reads."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from sqlalchemy import Connection, select, update
from tests.build import TRACE, span_id

from tracejury.ingest import check
from tracejury.ingest.batch import ingest
from tracejury.ingest.check import Problem, check_store
from tracejury.ingest.store import (
    load,
    load_source,
    pack,
    read_transaction,
    remove,
    schema,
    trace_ids,
    write,
    write_transaction,
)
from tracejury.judging.store import Workspace, open_workspace

OTHER = "cd" * 16
SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"


def from_file(home: Path) -> Workspace:
    """A workspace of two traces that stand in one file."""
    opened = open_workspace(home / "home")
    file = home / "two.jsonl"
    file.write_bytes(b"\n".join(map(one_trace, (TRACE, OTHER))))
    report = ingest(opened.engine, [file])
    assert (report.traces, report.rejected) == (2, [])
    return opened


def one_trace(trace_id: str) -> bytes:
    attributes = {"openinference.span.kind": "LLM", "llm.token_count.prompt": "7", "llm.token_count.completion": "2"}
    span = {"span_id": span_id(1), "span_name": "call", "span_attributes": attributes, "child_spans": []}
    return orjson.dumps({"trace_id": trace_id, "spans": [span]})


def problems_of(opened: Workspace, *, repair: bool = False) -> list[Problem]:
    return check_store(opened.engine, repair=repair)


def summary_of(opened: Workspace, trace_id: str) -> tuple[str, int, int | None]:
    trace = schema.trace.c
    with read_transaction(opened.engine) as connection:
        row = connection.execute(
            select(trace.name, trace.spans, trace.prompt_tokens).where(trace.trace_id == trace_id)
        ).one()
    return row.name, row.spans, row.prompt_tokens


def spoil_summary(opened: Workspace) -> None:
    with write_transaction(opened.engine) as connection:
        of_trace = schema.trace.c.trace_id == TRACE
        connection.execute(update(schema.trace).where(of_trace).values(name="other", spans=9, prompt_tokens=None))


def test_a_whole_store_has_no_problem(tmp_path: Path) -> None:
    assert problems_of(from_file(tmp_path)) == []


def test_a_long_source_of_a_format_that_goes_by_the_file_s_name_has_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_workspace(tmp_path)
    assert ingest(opened.engine, [SAMPLES / "gaia2"]).traces
    monkeypatch.setattr(check, "LONG_BYTES", 1)
    assert problems_of(opened) == []


def test_a_wrong_summary_is_named_with_what_the_spans_give(tmp_path: Path) -> None:
    opened = from_file(tmp_path)
    spoil_summary(opened)
    (problem,) = problems_of(opened)
    assert problem.subject == f"trace {TRACE}"
    assert "spans is 9, but 1 by its spans" in problem.problem
    assert "prompt_tokens is None, but 7 by its spans" in problem.problem
    assert problem.remedy == "tracejury verify --repair"
    assert summary_of(opened, TRACE) == ("other", 9, None), "only --repair changes anything"


def test_repair_makes_a_wrong_summary_again_from_the_spans(tmp_path: Path) -> None:
    opened = from_file(tmp_path)
    spoil_summary(opened)
    (problem,) = problems_of(opened, repair=True)
    assert problem.remedy.startswith("repaired")
    assert summary_of(opened, TRACE) == ("call", 1, 7)
    assert problems_of(opened) == []


def test_no_summary_is_made_from_spans_that_are_not_as_ingested(tmp_path: Path) -> None:
    opened = from_file(tmp_path)
    with write_transaction(opened.engine) as connection:
        connection.execute(update(schema.span).values(name="changed"))
    problems = problems_of(opened, repair=True)
    assert [problem.problem for problem in problems] == ["what is stored differs from what was ingested"] * 2
    assert summary_of(opened, TRACE) == ("call", 1, 7)


def test_source_bytes_that_changed_are_found(tmp_path: Path) -> None:
    from tracejury.ingest.texts import compress

    opened = from_file(tmp_path)
    with write_transaction(opened.engine) as connection:
        connection.execute(update(schema.source).values(body=compress(one_trace(TRACE))))
    (problem,) = problems_of(opened)
    assert (problem.subject, problem.problem) == (
        f"trace {OTHER}",
        "its stored source, read again, no longer holds this trace",
    )


def test_source_bytes_that_cannot_be_unpacked_are_a_problem_of_each_trace(tmp_path: Path) -> None:
    opened = from_file(tmp_path)
    with write_transaction(opened.engine) as connection:
        connection.execute(update(schema.source).values(body=b"no zstd"))
    problems = problems_of(opened)
    assert [problem.subject for problem in problems] == [f"trace {TRACE}", f"trace {OTHER}"]
    assert all("cannot be read" in problem.problem for problem in problems)


def test_the_bytes_of_a_file_are_read_again_once_for_all_its_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, reads = from_file(tmp_path), []
    read_bytes = check.read_bytes
    monkeypatch.setattr(check, "read_bytes", lambda data, **more: reads.append(data) or read_bytes(data, **more))
    assert problems_of(opened) == []
    assert len(reads) == 1
    with read_transaction(opened.engine) as connection:
        assert trace_ids(connection) == [TRACE, OTHER]
        assert load_source(connection, OTHER).data == reads[0]


def grown(connection: Connection) -> None:
    """Another writer stores a further span of the trace."""
    before = load(connection, TRACE)
    spans = (*before.spans, replace(before.spans[0], span_id=span_id(2), seq=1, name="more"))
    write(connection, pack(replace(before, spans=spans)), replaces=pack(before))


def removed(connection: Connection) -> None:
    remove(connection, TRACE)


@pytest.mark.parametrize(("change", "right"), [(grown, ("call", 2, 14)), (removed, None)])
def test_repair_goes_by_what_stands_there_when_it_writes(
    change: Callable[[Connection], None], right: tuple[str, int, int] | None, tmp_path: Path
) -> None:
    """Between reading all traces, which takes minutes, and the repair, others write."""
    opened = from_file(tmp_path)
    spoil_summary(opened)

    def meanwhile(checked: int, total: int) -> None:
        if checked == total:
            with write_transaction(opened.engine) as connection:
                change(connection)

    (problem,) = check_store(opened.engine, repair=True, progress=meanwhile)
    assert "its summary is wrong" in problem.problem
    with read_transaction(opened.engine) as connection:
        assert (TRACE in trace_ids(connection)) == (right is not None)
    assert right is None or summary_of(opened, TRACE) == right


def test_a_trace_that_is_removed_while_others_are_checked_is_no_problem(tmp_path: Path) -> None:
    opened = from_file(tmp_path)
    file = tmp_path / "three.jsonl"
    file.write_bytes(one_trace("ef" * 16))
    assert ingest(opened.engine, [file]).traces == 1

    def meanwhile(checked: int, total: int) -> None:
        if checked < total:
            with write_transaction(opened.engine) as connection:
                remove(connection, "ef" * 16)

    assert check_store(opened.engine, progress=meanwhile) == []
