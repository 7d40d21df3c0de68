"""The Plan page and the command `plan`: a pilot of the workspace, its plan, and what is not known."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from sqlalchemy import delete
from tests.app.conftest import OpenPage
from tests.app.workspaces import REPEATED

from tracejury.app.cli import main
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.planning import design
from tracejury.judging.reports.columns import load_columns
from tracejury.judging.reports.estimate_worker import Estimator
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import LazyFrames
from tracejury.judging.reports.pilots import dollars_a_trace, load_pilot, pilot_in
from tracejury.judging.store import Workspace, tables


def planned(space: Workspace, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, ["plan", "--home", str(space.home), *words])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else " ".join(done.output.split())


def test_a_pilot_of_one_judge_has_the_rate_of_the_tables(full: Workspace) -> None:
    with read_transaction(full.engine) as connection:
        measured = load_pilot(connection, Filters(draws=50), ["careful-judge"])
    assert measured.pilot.mean == pytest.approx(10 / 17)  # as in Table 3
    assert (measured.pilot.errors, measured.costs.dollars) == (17, None)  # imported: nobody knows its cost
    assert measured.reliability is not None


@pytest.mark.parametrize("judge_models", [("careful-judge",), ("careful-judge", "hasty-judge"), ("checks",)])
def test_the_pilot_that_the_page_keeps_is_that_of_the_command(full: Workspace, judge_models: tuple[str, ...]) -> None:
    with read_transaction(full.engine) as connection:
        measured = load_pilot(connection, Filters(), judge_models)
    assert pilot_in(Estimator(full.engine).estimate(Filters(), "pilot", *judge_models)) == measured


def test_recorded_dollars_are_those_of_one_repeat(full: Workspace) -> None:
    """Three repeats on each trace at 0.25 dollars a cell; checks cost nothing."""
    with read_transaction(full.engine) as connection:
        spent = LazyFrames(connection, load_columns(connection), Filters()).costs_of_repeats
    assert dollars_a_trace(spent, [REPEATED]) == pytest.approx(0.25)
    assert dollars_a_trace(spent, [REPEATED, "checks"]) == pytest.approx(0.25)
    assert dollars_a_trace(spent, [REPEATED, "hasty-judge"]) is None


def test_the_command_plans_the_difference_of_two_judges(full: Workspace) -> None:
    words = ("--judge-model", "careful-judge", "--judge-model", "hasty-judge", "--difference", "20")
    told = json.loads(planned(full, *words, "--minutes", "30", "--people", "2", "--json"))
    (row,) = told["plan"]
    spread = design.Spread(**told["assumed"]["spread"])
    assert row["traces"] == design.traces_for_difference(spread, 0.2)
    assert (row["hours"], row["dollars"]) == (row["traces"], None)
    assert told["pilot"]["pilot"]["discordant"] > 0


def test_the_command_says_what_it_lacks(full: Workspace) -> None:
    assert "nothing to plan from" in planned(full, "--width", "10", code=2)
    assert "nothing to plan. Try: --difference 5" in planned(full, "--judge-model", "checks", code=2)
    assert "at least as many" in planned(full, "--discordant", "0.01", "--difference", "5", code=2)
    assert "correlation of repeats is unknown" in planned(full, "--rate", "0.4", "--width", "10", "--repeats", "3")
    with write_transaction(full.engine) as connection:
        connection.execute(delete(tables.matching))
        connection.execute(delete(tables.match))
    assert "no matches proposed yet" in planned(full, "--judge-model", "checks", "--width", "10", code=2)


def test_the_page_plans_from_a_pilot_and_from_assumed_rates(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("plan")
    assert not at.exception
    assert {metric.label for metric in at.metric} >= {"Caught errors", "Design effect", "ICC"}
    assert set(at.dataframe[0].value["Goal"]) == {"see", "width", "agreement"}
    at.selectbox(key="plan-judge").set_value("assumed rates").run()
    assert "Nothing to plan from" in at.info[0].value
    at.number_input(key="plan-rate-None").set_value(50.0).run()
    table = at.dataframe[0].value
    assert table.loc[table["Goal"] == "width", "Traces"].tolist() == ["385", "385"]
    assert set(table["Hours"]) == {"unknown"}
