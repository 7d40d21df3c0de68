"""Benchmark executions in the app: the view Benchmark of Agreement, and the live rows of the Runs page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.app.conftest import OpenPage
from tests.app.workspaces import hold_blind
from tests.build import workspace

from tracejury.app.views import benchmark_rates
from tracejury.ingest.batch import ingest
from tracejury.ingest.readers import read_traces
from tracejury.ingest.store import read_transaction, trace_ids
from tracejury.ingest.trace import Trace
from tracejury.judging.gaia2.folders import execution_folder, execution_states, hold_folder, is_done, write_state
from tracejury.judging.gaia2.live import last_words, live_trace
from tracejury.judging.labels.sightings import sightings
from tracejury.judging.reports.benchmark_outcomes import executions_of
from tracejury.judging.reports.benchmark_scores import (
    beside_scores,
    disagreements,
    execution_frame,
    expected_and_done,
    mean_scores,
    score_summary,
)
from tracejury.judging.reports.columns import load_columns
from tracejury.judging.runs.offline import judge_all
from tracejury.judging.store import Workspace

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "data" / "samples" / "gaia2"
GUI = ROOT / "tests" / "ingest" / "gaia2" / "gui" / "scenario_ficus_run_1_0a1b2c3d.json"


@pytest.fixture
def judged(tmp_path: Path) -> Workspace:
    home = workspace(tmp_path / "home")
    ingest(home.engine, [SAMPLES])
    judge_all(home.engine)
    return home


def started(home: Workspace, name: str = "plant", lines: int = 12) -> Path:
    """The folder of an execution under way: the scenario, its job, and the first entries of its log."""
    export = json.loads(GUI.read_text(encoding="utf-8"))
    folder = execution_folder(home.home, "0a1b2c3d", "time", name, 1, 1)
    folder.mkdir(parents=True)
    (folder / "live.jsonl").write_text("".join(line + "\n" for line in export["world_logs"][:lines]) + '{"half')
    scenario = {**export, "world_logs": [], "completed_events": []}
    (folder / "scenario.json").write_text(json.dumps(scenario), encoding="utf-8")
    job = {"name": f"{name}_run_1_0a1b2c3d", "repeat": 1, "capability": "time", "model": "script:one"}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    (folder / "log.txt").write_text("first\nMemoryError\n", encoding="utf-8")
    state = {"trace_id": job["name"], "scenario": name, "capability": "time", "model": "script:one", "repeat": 1}
    write_state(folder, {**state, "attempt": 1, "status": "running", "step": 2, "clock": 1_700_000_000.0})
    return folder


def test_an_execution_under_way_is_read_as_a_trace_that_grows(tmp_path: Path) -> None:
    home = workspace(tmp_path / "home")
    few, more = started(home, "few", 6), started(home, "more", 20)
    short, long = live_trace(few), live_trace(more)
    assert isinstance(short, Trace)
    assert isinstance(long, Trace)
    whole = next(one for one in read_traces(GUI) if isinstance(one, Trace))
    assert 1 < len(short.spans) < len(long.spans) < len(whole.spans)


def test_an_execution_whose_process_is_gone_is_shown_so_with_its_last_words(tmp_path: Path) -> None:
    home = workspace(tmp_path / "home")
    folder = started(home)
    assert [one.status for one in execution_states(home.home)] == ["gone"]
    assert last_words(folder).endswith("MemoryError")
    with hold_folder(folder) as is_mine:
        assert is_mine
        assert [one.status for one in execution_states(home.home)] == ["running"]
    assert not is_done(folder)


def test_the_runs_page_shows_each_execution_with_its_step_and_clock(empty: Workspace, open_page: OpenPage) -> None:
    folder = started(empty)
    with hold_folder(folder):
        at = open_page("runs")
        table = at.dataframe[0].value
        assert table[["scenario", "status", "step"]].values.tolist() == [["plant", "running", 2]]
        assert table["simulated time"].tolist() == ["2023-11-14 22:13:20"]
        at.button(key="stop-all").click().run()
    assert (folder / "stop").exists()


def test_stop_ends_the_execution_that_was_chosen_whichever_wrote_last(empty: Workspace, open_page: OpenPage) -> None:
    first, second = started(empty, "first"), started(empty, "second")
    with hold_folder(first), hold_folder(second):
        at = open_page("runs")
        at.selectbox(key="benchmark-execution").select("first_run_1_0a1b2c3d").run()
        (first / "state.json").touch()
        at.button(key="stop-one").click().run()
    assert ((first / "stop").exists(), (second / "stop").exists()) == (True, False)


def test_how_an_execution_ended_is_hidden_while_its_trace_is_labelled_blind_and_noted_when_it_was_seen(
    full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJURY_USER", "me")
    with read_transaction(full.engine) as connection:
        blind, other = list(trace_ids(connection))[:2]
    for name in (blind, other):
        folder = started(full, name)
        write_state(folder, {"trace_id": name, "scenario": name, "status": "success"})
    hold_blind(full, "me", blind)
    at = open_page("runs")
    assert at.dataframe[0].value["scenario"].tolist() == [other]
    assert "1 execution left out" in at.info[0].value
    with read_transaction(full.engine) as connection:
        assert [len(sightings(connection, annotator="me", trace_id=name)) for name in (blind, other)] == [0, 1]


def test_rates_have_a_row_a_capability_and_model_and_one_of_all(judged: Workspace) -> None:
    with read_transaction(judged.engine) as connection:
        executions = executions_of(connection)
    rows = benchmark_rates.rate_rows(executions, is_judged=False)
    assert rows["n"].sum() == 2 * sum(one.score is not None for one in executions)
    labels = rows.loc[rows["dimension"] == "all", "label"]
    assert labels.str.contains("scripted/harbour-1|script:boat_", regex=True).all()
    assert len(set(labels)) == len(labels)
    assert (rows["low"].fillna(0) <= rows["value"].fillna(0)).all()


def test_scores_of_judges_stand_beside_the_executions(judged: Workspace) -> None:
    with read_transaction(judged.engine) as connection:
        frame, cells = execution_frame(executions_of(connection)), load_columns(connection).cells
    beside = beside_scores(frame, mean_scores(cells))
    assert set(beside["trace_id"]) == set(frame["trace_id"])
    assert beside["mean_score"].between(0, 3).all()
    summary = score_summary(beside)
    assert (
        summary["succeeded_executions"].sum() + summary["failed_executions"].sum()
        == beside["judge_score"].notna().sum()
    )


def test_a_success_with_a_low_score_and_a_failure_with_a_high_one_are_disagreements(judged: Workspace) -> None:
    with read_transaction(judged.engine) as connection:
        frame = execution_frame(executions_of(connection)).head(3)
    beside = frame.assign(scorer="checks", mean_score=[0.5, 2.5, 2.9], scores=5, judge_score=[1.0, 0.0, 1.0])
    found = disagreements(beside)
    assert found["why"].tolist() == ["failed, high score", "succeeded, low score"]


def test_expected_events_stand_beside_the_calls_that_matched_them() -> None:
    trace = next(one for one in read_traces(GUI) if isinstance(one, Trace))
    rows = expected_and_done(trace)
    expected = rows[rows["expected"] != ""]
    assert len(expected) == len(trace.expected_events)
    assert set(expected["matched"]) <= {"yes", "unknown"}


def test_the_view_benchmark_shows_rates_beside_scores(full: Workspace, open_page: OpenPage) -> None:
    ingest(full.engine, [SAMPLES])
    judge_all(full.engine)
    at = open_page("agreement", view="Benchmark")
    assert not at.exception
    assert "Success by capability and model" in [one.value for one in at.subheader]
    assert "Beside the judges' scores" in [one.value for one in at.subheader]
