"""The same workspace on PostgreSQL, as a team runs it: a real server, started for these tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import func, insert, select
from tests.build import TRACE, small_trace, span_id
from tests.ingest import test_one_of as lists
from tests.judging.grid import Counting, planned

from tracejury.app.cli import main
from tracejury.ingest.batch import store
from tracejury.ingest.check import check_store
from tracejury.ingest.store import load, read_transaction, search, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.trace import Source, SpanDraft
from tracejury.ingest.tree import assemble
from tracejury.judging.labels.apply_ops import Applied, apply_ops
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.labels.ops import Op
from tracejury.judging.records import DIMENSIONS, Call, Dimension, Verdict
from tracejury.judging.runs.offline import judge_all
from tracejury.judging.runs.run_owner import RunHeldError, RunTakenError
from tracejury.judging.runs.run_store import RunStore
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.locks import labels_of
from tracejury.judging.store.people import sign_in


@pytest.fixture
def opened(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("TRACEJURY_DATABASE", server)
    workspace = open_workspace(tmp_path)
    yield workspace
    with workspace.engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    workspace.engine.dispose()


def test_a_trace_comes_back_and_is_found_by_its_words(opened: Workspace) -> None:
    assert store(opened.engine, [small_trace()]).traces == 1
    assert store(opened.engine, [small_trace()]).duplicates == 1
    with read_transaction(opened.engine) as connection:
        assert load(connection, TRACE).spans == small_trace().spans
        assert [hit.seq for hit in search(connection, "careful cler")] == [1]
        assert search(connection, "'; drop & | !") == []
    assert [problem for problem in check_store(opened.engine) if problem.subject == "search"] == []


def test_a_search_gives_the_first_spans_however_many_hold_the_word(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Block after block: a word of all spans, of some, of the last."""
    monkeypatch.setenv("TRACEJURY_DATABASE", database)
    monkeypatch.setattr(import_module("tracejury.ingest.store.search"), "SPANS_A_BLOCK", 20)
    said = {n: "harbour" + " often" * (n % 5 == 0) + " seldom" * (n % 9 == 0) + " last" * (n > 295) for n in range(300)}
    drafts = [SpanDraft(span_id=f"{n:016}", name="span", input=said[n], start_time=n) for n in said]
    engine = open_workspace(tmp_path).engine
    store(engine, [assemble(drafts, trace_id="0" * 32, format="otlp", source=Source(file="f", data=b"f"))])
    with read_transaction(engine) as connection:
        for query in ("harb", "oft", "seld", "harbour sel", "las", "often last", "none"):
            right = [n for n, words in said.items() if all(f" {w}" in f" {words}" for w in query.split())]
            assert [int(hit.span_id) for hit in search(connection, query, limit=10)] == right[:10], query


def test_a_search_finds_on_both_databases_what_its_words_stand_in(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names with hyphens and points, addresses, letters of many alphabets, words too long, signs of a query."""
    long, odd = "long" + "w" * 3000, " ".join(map(chr, range(0x4E00, 0x4E00 + 20_000)))
    bodies = [
        "gpt-4o-mini asked https://example.com/a_b?q=12e5f",
        "ÉTÉ İstanbul ß 世界",
        long,
        odd,
        "'# \\ \0 zz %s :* & |",
    ]
    queries = {"gpt-4": [0], "GPT 4o": [0], "example.com a": [0], "12e5f": [0], "été": [1], "İstanbul ß": [1],
               "世": [1, 3], long: [2], "longw": [2], chr(0x4E00 + 19_999): [3], "zz %s span": [4], "'": [],
               "# & | ! :* \\ \0": [], "\ud800": [], "gpt " * 3000: [0], "none": []}  # fmt: skip
    drafts = [SpanDraft(span_id=f"{n:016}", name="span", input=body, start_time=n) for n, body in enumerate(bodies)]
    trace = assemble(drafts, trace_id="0" * 32, format="otlp", source=Source(file="f", data=b"f"))
    for url in (database, f"sqlite:///{tmp_path / 'other.db'}"):
        monkeypatch.setenv("TRACEJURY_DATABASE", url)
        engine = open_workspace(tmp_path).engine
        assert store(engine, [trace]).traces == 1
        with read_transaction(engine) as connection:
            for query, right in queries.items():
                assert [int(hit.span_id) for hit in search(connection, query)] == right, (url, query[:40])
        engine.dispose()


def test_doctor_names_the_server_its_schema_and_the_programs_for_backups(opened: Workspace) -> None:
    done = CliRunner().invoke(main, ["doctor", "--home", str(opened.home), "--json"])
    checks = {one["subject"]: one for one in json.loads(done.stdout)["checks"]}
    assert done.exit_code == 0, done.output
    assert checks["database"]["message"].startswith("PostgreSQL 1")
    assert "backup" in checks
    assert "reads the data" in checks["estimates"]["message"]


def test_lists_are_longer_than_the_server_takes_parameters_and_hold_what_it_cannot_store(opened: Workspace) -> None:
    with opened.engine.begin() as connection:
        lists.fill(connection)
        lists.assert_long_lists(connection)
        assert lists.chosen(connection, is_one_of(lists.THINGS.c.key, [2**80, 2**40])) == ["a"]
        assert lists.chosen(connection, is_one_of(lists.THINGS.c.name, ["\x00", "\ud800", *lists.NAMES])) == [
            *lists.NAMES
        ]


def test_texts_with_nul_are_stored_as_on_sqlite(opened: Workspace) -> None:
    assert sign_in(opened.engine, "ro\0ot", "a long enough word") is None
    with opened.engine.begin() as connection:
        lists.fill(connection)
        rows = [{"key": key, "name": f"{key}\0"} for key in range(2)]
        connection.execute(insert(lists.THINGS), rows)
        assert lists.chosen(connection, lists.THINGS.c.key < 2) == ["0\\u0000", "1\\u0000"]
        assert lists.chosen(connection, lists.THINGS.c.name == "1\0") == ["1\\u0000"]


def test_writers_at_once_apply_each_operation_once(opened: Workspace) -> None:
    store(opened.engine, [small_trace()])
    payload = {"span_ids": [span_id(4)], "dimensions": ["TC"], "impact": "high"}

    def work(who: int) -> None:
        for number in range(8):
            label = {"label_id": f"{who}-{number}", **payload}
            op = Op(op_id=f"operation-{who}-{number}", kind="error.put", payload=label)
            for _ in range(2):
                done = apply_ops(opened.engine, annotator=f"p{who}", trace_id=TRACE, base_revision=number, ops=[op])
                assert isinstance(done, Applied)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with read_transaction(opened.engine) as connection:
        assert len(error_labels(connection)) == 48
        assert connection.scalar(select(func.count()).select_from(tables.op)) == 48


def their_verdict(dimension: Dimension) -> Verdict:
    call = Call(model="theirs", raw_reply=f"2 for {dimension}")
    return Verdict(
        rubric=dimension, trace_id=TRACE, state="scored", score=2, criteria="", rationale="so", findings=(), call=call
    )


def test_runs_and_imports_begin_while_an_annotator_writes(opened: Workspace, tmp_path: Path) -> None:
    store(opened.engine, [small_trace()])
    outcome = their_verdict("EE")

    def work() -> tuple[int, int]:
        imports = [import_outcomes(opened.engine, [outcome], model="theirs", author="ada").new for _ in range(2)]
        return sum(imports), judge_all(opened.engine).cells

    with ThreadPoolExecutor(1) as pool, write_transaction(opened.engine, labels_of(TRACE)):
        assert pool.submit(work).result(timeout=60) == (1, 7)


def test_imports_at_once_store_each_outcome_once(opened: Workspace) -> None:
    store(opened.engine, [small_trace()])
    outcomes = [their_verdict(name) for name in DIMENSIONS]
    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(import_outcomes, opened.engine, outcomes, model="theirs", author=f"p{n}") for n in range(6)]
    assert sum(one.result().new for one in done) == len(outcomes)


def test_the_offline_judge_keeps_its_verdicts(opened: Workspace) -> None:
    store(opened.engine, [small_trace()])
    assert judge_all(opened.engine).cells == 7
    assert judge_all(opened.engine).cells == 0


def test_a_run_has_one_owner_by_the_server_s_clock(opened: Workspace, tmp_path: Path) -> None:
    grid, model = planned(tmp_path, traces=2), Counting()
    first = RunStore(grid.engine, grid.run_key)
    assert first.take(resumes=True) == "running"
    with pytest.raises(RunHeldError, match="another machine or database client"):
        grid.run(model)
    assert grid.watch()["owner_alive"] is True
    with grid.engine.begin() as connection:
        connection.exec_driver_sql("update run set heartbeat_at = heartbeat_at - 64000000")
    assert grid.run(model).states == {"scored": 4}
    assert len(model.requests) == 4
    with pytest.raises(RunTakenError, match="sends nothing more"):
        first.heartbeat()
