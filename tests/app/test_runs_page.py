"""The Runs page: what ran, what it cost, what failed; and a run started, paused and resumed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from sqlalchemy import select, update
from streamlit.testing.v1 import AppTest
from tests.app.conftest import OpenPage
from tests.app.marks import choose, click, drawn, texts
from tests.app.workspaces import REPEATED, hold_blind
from tests.fake_provider import verdict
from tests.judging.grid import Counting, planned

from tracejury.app.cli import main
from tracejury.app.components import drilldown
from tracejury.app.estimating import EstimateError, estimate
from tracejury.app.run_processes import RUNS
from tracejury.app.views.runs import costs
from tracejury.app.views.runs import start as start_form
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.judges.model import ModelError, Prices
from tracejury.judging.runs.run_control import run_spec, watch
from tracejury.judging.runs.run_spec import RunSpec
from tracejury.judging.store import Workspace, open_workspace
from tracejury.judging.store.tables import cell


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The runs for which the page asks for a process; none is started, and each counts as at work."""
    runs: list[int] = []
    monkeypatch.setattr(RUNS, "start", lambda _home, run_key: runs.append(run_key))
    monkeypatch.setattr(RUNS, "is_at_work", lambda _home, run_key: run_key in runs)
    return runs


def test_an_empty_workspace_says_how_to_start(empty: Workspace, open_page: OpenPage) -> None:
    assert "This workspace holds no runs" in open_page("runs").info[0].value


def test_each_run_is_listed_with_its_states_and_cost(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("runs")
    table = at.dataframe[0].value.set_index("name")
    steady = table.loc["three runs"]
    # 6 traces by 3 repeats at 0.25 dollars each; one reply was no JSON
    assert (steady["cells"], steady["scored"], steady["failed"], steady["cost_usd"]) == (18, 17, 1, 4.5)
    assert table.loc["imported: careful-judge", "failed"] == 1


def test_failed_judgements_are_rows_with_their_reason(full: Workspace, open_page: OpenPage) -> None:
    with read_transaction(full.engine):
        at = open_page("runs", run="4 · three runs")
    assert "1 failed of 18 cells" in [s.value for s in at.subheader]
    failed = at.dataframe[1].value
    assert list(failed["reason"]) == ["the reply is no JSON"]
    assert {metric.label: metric.value for metric in at.metric}["Cost, US$"] == "4.5000"


def test_a_run_without_prices_costs_unknown_not_zero(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("runs", run="3 · imported: hasty-judge")
    assert {metric.label: metric.value for metric in at.metric}["Cost, US$"] == "unknown"


def start(at: AppTest) -> None:
    """Estimate the run of the form, then start it."""
    at.button[0].click().run()
    at.button(key="start_run").click().run()


@pytest.fixture
def no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tokens are counted: the cost stays unknown."""

    def refuse(_spec: RunSpec, _home: Path) -> pd.DataFrame:
        raise EstimateError("nothing was counted")

    monkeypatch.setattr(start_form, "estimate", refuse)


@pytest.mark.usefixtures("no_price")
def test_nothing_starts_before_cost_and_budget_are_shown_and_one_press_starts_one(
    full: Workspace, open_page: OpenPage, started: list[int]
) -> None:
    at = open_page("runs")
    at.text_input(key="new_model").set_value(REPEATED)
    at.number_input(key="new_budget").set_value(5.0)
    at.button[0].click().run()
    assert started == []
    assert any("42 cells on 6 traces, budget US$ 5.00" in text.value for text in at.text)
    assert "nothing was counted" in at.error[0].value
    at.button(key="start_run").click().run()
    assert started == [5]
    assert "start_run" not in [button.key for button in at.button]  # nothing is left to press a second time


@pytest.mark.usefixtures("no_price")
def test_a_second_run_like_the_first_is_asked_for(full: Workspace, open_page: OpenPage, started: list[int]) -> None:
    at = open_page("runs")
    at.text_input(key="new_model").set_value(REPEATED)
    at.button[0].click().run()
    assert not at.warning
    at.button(key="start_run").click().run()
    at.button[0].click().run()
    assert "Run 5 asks the same" in at.warning[0].value
    assert at.button(key="start_run").label == "Start the same run again"
    assert started == [5]


@pytest.mark.usefixtures("no_price")
def test_a_run_gets_its_process_and_is_paused_resumed_and_cancelled(
    full: Workspace, open_page: OpenPage, started: list[int]
) -> None:
    at = open_page("runs")
    at.text_input(key="new_model").set_value(REPEATED)
    start(at)
    assert "Run 5 starts: 42 cells" in at.success[0].value  # 6 traces by 7 rubrics
    assert (started, watch(full.engine, 5)["status"]) == ([5], "queued")
    at = open_page("runs")
    at.button(key="pause").click().run()
    assert watch(full.engine, 5)["status"] == "paused"
    at.button(key="resume").click().run()
    assert (started, watch(full.engine, 5)["status"]) == ([5, 5], "queued")
    at.button(key="cancel").click().run()
    assert watch(full.engine, 5)["status"] == "cancelled"


@pytest.mark.usefixtures("no_price")
def test_a_run_without_a_process_says_so_and_how_it_ended_and_can_go_on(
    full: Workspace, open_page: OpenPage, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_page("runs")
    at.text_input(key="new_model").set_value(REPEATED)
    start(at)
    started.clear()  # it is gone
    monkeypatch.setattr(RUNS, "end_of", lambda _home, key: f"The process of this run was ended by signal {key + 4}.")
    at = open_page("runs")
    assert "was ended by signal 9" in at.warning[0].value
    assert any("No process works on this run" in text for text in texts(at.caption))
    at.button(key="resume").click().run()
    assert started == [5]
    assert not any("No process works on this run" in text for text in texts(at.caption))


def test_a_run_that_its_budget_stopped_says_so_and_can_be_resumed(
    tmp_path: Path, clean_caches: None, open_page: OpenPage, started: list[int]
) -> None:
    grid = planned(tmp_path / "home", rubrics=("LC",), budget_usd=0.0)
    assert grid.run(Counting()).status == "out of budget"
    at = open_page("runs")
    assert at.dataframe[0].value["status"].tolist() == ["out of budget"]
    at.button(key="resume").click().run()
    assert (started, grid.watch()["status"]) == ([1], "queued")


def test_answers_without_a_score_stand_in_states_of_their_own(
    shown: Workspace, open_page: OpenPage, tmp_path: Path
) -> None:
    table = open_page("runs").dataframe[0].value.set_index("name").loc["imported: careful-judge"]
    assert (table["scored"], table["not_applicable"]) == (0, 0)
    assert table["errors_only"] + table["failed"] == table["cells"] > table["failed"]


def test_a_tie_of_a_jury_is_tied_and_not_inapplicable(tmp_path: Path, clean_caches: None, open_page: OpenPage) -> None:
    grid = planned(tmp_path / "home", models=("one", "two"), mode="jury", rubrics=("LC",))
    grid.run(Counting(), Counting(script=lambda n, _: verdict(3 if n else 2)))
    table = open_page("runs").dataframe[0].value.set_index("run").loc[2]
    assert (table["scored"], table["tied"], table["not_applicable"]) == (1, 2, 0)


def test_a_broken_rubric_is_left_out_by_name(full: Workspace, open_page: OpenPage) -> None:
    (full.home / "rubrics").mkdir()
    (full.home / "rubrics" / "safe.toml").write_text('key = "SAFE"\n', encoding="utf-8")
    at = open_page("runs")
    assert "safe.toml: title: is missing. Try: write it" in at.warning[0].value.replace("\\", "")
    assert "LC" in at.multiselect(key="new_dimensions").options
    (full.home / "rubrics" / "safe.toml").unlink()


@pytest.mark.usefixtures("no_price")
def test_pace_prices_and_what_may_be_asked_again_go_into_the_run(
    full: Workspace, open_page: OpenPage, started: list[int]
) -> None:
    at = open_page("runs")
    at.text_input(key="new_model").set_value("private/one, private/two")
    at.selectbox(key="new_mode").set_value("jury")
    at.number_input(key="new_rpm").set_value(60)
    at.text_input(key="new_price").set_value("3,15,0.3")
    at.checkbox(key="new_ask").uncheck()
    at.checkbox(key="new_cache").uncheck()
    start(at)
    assert "Run 5 starts" in at.success[0].value
    spec = run_spec(full.engine, started[0])
    assert (spec.models, spec.mode, spec.rpm, spec.tpm) == (("private/one", "private/two"), "jury", 60, None)
    assert spec.prices == dict.fromkeys(spec.models, Prices(prompt=3e-6, completion=15e-6, cache_read=0.3e-6))
    assert (spec.ask_again, spec.use_cache, spec.batch) == (False, False, False)


def test_what_is_no_price_is_refused_on_the_page(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("runs")
    at.text_input(key="new_model").set_value("private/one")
    at.text_input(key="new_price").set_value("cheap")
    at.button[0].click().run()
    assert "per million tokens, not 'cheap'" in at.error[0].value


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of an estimate runs here: a process of its own imports litellm for seconds; two tests start one."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        assert command[:4] == [sys.executable, "-P", "-m", "tracejury.app.cli"]
        done = CliRunner().invoke(main, command[4:])
        return subprocess.CompletedProcess(command, done.exit_code, done.stdout_bytes, done.stderr_bytes)

    monkeypatch.setattr(subprocess, "run", run)


def test_a_given_price_reaches_the_estimate(full: Workspace, in_this_process: None) -> None:
    prices = {"openai/private": Prices(prompt=3e-6, completion=15e-6)}
    spec = RunSpec(rubrics=("LC",), models=("openai/private",), prices=prices)
    total = estimate(spec, full.home).iloc[-1]
    assert total["naive"] > total["deduplicated"] > 0


def test_a_jury_s_ties_and_what_was_perhaps_paid_are_told(
    tmp_path: Path, clean_caches: None, open_page: OpenPage
) -> None:
    errors = iter([ModelError("timeout", "no answer")])
    grid = planned(tmp_path / "home", models=("one", "two"), mode="jury", rubrics=("LC",))
    grid.run(
        Counting(script=lambda n, _: next(errors, verdict(1))), Counting(script=lambda n, _: verdict(1 if n else 3))
    )
    at = open_page("runs", run=f"{grid.run_key} · LC by one, two")
    captions = " ".join(caption.value for caption in at.caption)
    assert "3 cells, 1 tied" in captions
    assert "1 request sent without a known answer" in captions
    table = next(frame.value for frame in at.dataframe if "missing" in frame.value.columns)
    assert sorted(table["tied"]) == ["", "", "1, 3"]
    trace_id = table["trace_id"].iloc[0]
    hold_blind(open_workspace(tmp_path / "home"), "me", trace_id)
    at.run()
    left = next(frame.value for frame in at.dataframe if "missing" in frame.value.columns)
    assert set(table["trace_id"]) - set(left["trace_id"]) == {trace_id}


def test_the_votes_of_a_jury_stand_by_judge_and_each_share_opens_what_it_counts(
    tmp_path: Path, clean_caches: None, open_page: OpenPage
) -> None:
    errors = iter([ModelError("bad_request", "odd")])
    grid = planned(tmp_path / "home", models=("one", "two"), mode="jury", rubrics=("LC",))
    grid.run(
        Counting(script=lambda n, _: next(errors, verdict(1))), Counting(script=lambda n, _: verdict(1 if n else 3))
    )  # one trace: a failure and a vote; another: 1 and 3, a tie, or 1 and 1
    at = open_page("runs", run=f"{grid.run_key} · LC by one, two")
    votes = next(frame.value for frame in at.dataframe if "unanimous" in frame.value.columns).iloc[0]
    assert (votes["dimension"], votes["n"]) == ("LC", 3)
    for share, n in (("unanimous", 2), ("tied", 3), ("absent", 6)):
        assert votes[share].endswith(f"n {n}"), share
        choose(at, "votes", (0, share))
        assert not at.exception
        assert any(text.startswith(f"{n} row") for text in texts(at.caption)), share
    choose(at, "rows-votes", 0)
    assert at.button(key="votes-open").label == "Open in Compare"


def test_each_part_of_a_bar_of_outcomes_lists_as_many_judgements_as_it_counts(
    full: Workspace, open_page: OpenPage
) -> None:
    at = open_page("runs", run="4 · three runs")
    seen = []
    for bars in drawn(at, "outcomes"):
        for mark in bars["customdata"]:
            click(at, "chart-outcomes", {"customdata": mark})
            assert not at.exception
            assert any(text.startswith(f"{mark[2]} row") for text in texts(at.caption)), mark
            seen.append(mark[2])
    assert sum(seen) == 18
    rows = next(frame.value for frame in at.dataframe if "seconds" in frame.value.columns)
    assert set(rows["judge_model"]) == {REPEATED}


def measure(space: Workspace, **values: list[float | None]) -> list[tuple[str, int]]:
    """Give the judgements of the run of three these values; trace and repeat of each, in the order of the values."""
    with write_transaction(space.engine) as connection:
        cells = connection.execute(select(cell).where(cell.c.run_key == 4).order_by(cell.c.cell_key)).all()
        for place, one in enumerate(cells):
            new = {name: numbers[place] if place < len(numbers) else None for name, numbers in values.items()}
            connection.execute(update(cell).where(cell.c.cell_key == one.cell_key).values(new))
    return [(one.trace_id, one.repeat) for one in cells]


def listed(at: AppTest) -> pd.DataFrame:
    """The rows behind a mark."""
    return next(frame.value for frame in at.dataframe if "completion_tokens" in frame.value.columns)


def test_a_box_of_seconds_lists_all_its_judgements_slowest_first_and_a_mark_its_own(
    full: Workspace, open_page: OpenPage
) -> None:
    cells = measure(full, latency_s=[2.0, 1.0, 3.0, 2.5, 60.25, 1.5])
    at = open_page("runs", run="4 · three runs")
    reach, beyond = drawn(at, "latency")[-2:]
    click(at, "chart-latency", {"customdata": reach["customdata"][0]})
    assert any(text.startswith(f"{reach['customdata'][0][1]} row") for text in texts(at.caption))
    assert list(listed(at)["seconds"]) == [60.25, 3.0, 2.5, 2.0, 1.5, 1.0]
    click(at, "chart-latency", {"customdata": beyond["customdata"][0]})
    (row,) = listed(at).to_dict("records")
    assert ((row["trace_id"], row["repeat"]), row["seconds"]) == (cells[4], 60.25)
    choose(at, "rows-seconds", 0)
    assert at.button(key="seconds-open").label == "Open in Compare"


def test_the_tiles_list_what_was_dearest_and_longest_of_all_that_they_sum(full: Workspace, open_page: OpenPage) -> None:
    cells = measure(full, cost_usd=[0.5, 0.125, 2.0], prompt_tokens=[10, 40, 30, 20])
    at = open_page("runs", run="4 · three runs")
    assert not any("this point" in text for text in texts(at.caption))
    for words, column, most in (("dearest", "cost_usd", [2.0, 0.5, 0.125]),
                                ("longest prompts", "prompt_tokens", [40, 30, 20, 10])):  # fmt: skip
        at.segmented_control(key="costly").set_value(words).run()
        assert list(listed(at)[column]) == most
        assert any(text.startswith(f"{len(most)} row") for text in texts(at.caption))
    assert {metric.label: metric.value for metric in at.metric} == {"Cost, US$": "2.6250", "Prompt tokens": "100"}
    hold_blind(full, "me", cells[1][0])  # all three repeats of the first trace
    at.run()
    assert list(listed(at)["prompt_tokens"]) == [20]


def test_of_many_judgements_the_first_are_read_and_all_are_counted(
    full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (drilldown, costs):
        monkeypatch.setattr(module, "MOST_ROWS", 4)
    at = open_page("runs", run="4 · three runs")
    at.segmented_control(key="costly").set_value("dearest").run()
    assert len(listed(at)) == 4
    assert any(text.startswith("18 rows for this point, the first 4 shown") for text in texts(at.caption))


def test_a_tile_of_which_nothing_is_known_lists_nothing(full: Workspace, open_page: OpenPage) -> None:
    measure(full, cost_usd=[], prompt_tokens=[10])
    assert open_page("runs", run="4 · three runs").segmented_control(key="costly").options == ["longest prompts"]


def test_a_failed_judgement_opens_in_compare(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("runs", run="4 · three runs")
    choose(at, "failed-4", 0)
    assert at.button(key="failed-open").label == "Open in Compare"


def test_a_run_without_a_model_is_refused(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("runs")
    at.button[0].click().run()
    assert "at least one dimension and one model" in at.error[0].value


def test_the_cost_of_a_run_is_estimated_in_four_ways_before_it_is_started(
    full: Workspace, open_page: OpenPage, started: list[int]
) -> None:
    at = open_page("runs")
    at.text_input(key="new_model").set_value("gpt-4.1")
    at.button[0].click().run()
    table = next(frame.value for frame in at.dataframe if "naive" in frame.value.columns)
    total = table.iloc[-1]
    assert (total["dimension"], total["calls"]) == ("total", 42)  # 6 traces by 7 judges
    assert total["naive"] > total["deduplicated"] >= total["cached"] > total["batch"] > 0
    assert started == []


def test_an_estimate_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    open_workspace(tmp_path)
    with pytest.raises(EstimateError, match="no trace"):
        estimate(RunSpec(rubrics=("LC",), models=("gpt-4.1",)), tmp_path)
