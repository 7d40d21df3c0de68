"""Tables for a reader: intervals in their cells, words for names, what never varies said once."""

import pandas as pd
import pytest
from tests.judging.agreement.test_tables import small_inputs

from tracejury.judging.agreement.tables import TABLES, Table, tables_from_frames
from tracejury.judging.reports.typeset import typeset

MADE = {
    "reference": "ada", "selection": {"matches": "proposed"}, "bootstrap_draws": 2000,
    "seed": 7, "missing": "disagree", "missing_rule": "failed judgements count as disagreement",
}  # fmt: skip
RATES = next(table for table in TABLES if table.name == "table_03_caught")


@pytest.fixture(scope="module")
def made() -> dict[str, pd.DataFrame]:
    return tables_from_frames(small_inputs())


def test_intervals_stand_in_the_cell_of_their_estimate(made: dict[str, pd.DataFrame]) -> None:
    shown = typeset(made[RATES.name], RATES, MADE)
    assert shown.cells["recall"].str.fullmatch(r"|[01]\.\d{4} \[[01]\.\d{4}, [01]\.\d{4}\]").all()
    assert {"recall", "F1", "TP"} <= set(shown.cells.columns) & set(shown.numeric)
    assert not [name for name in shown.cells.columns if name.endswith(("low", "high"))]


def test_what_never_varies_is_said_once_with_who_is_compared(made: dict[str, pd.DataFrame]) -> None:
    shown = typeset(made[RATES.name], RATES, MADE)
    assert not {"kind", "split", "impact"} & set(shown.cells.columns)
    assert shown.caption.startswith("as the paper's Table 3; reference: ada; matches: proposed and confirmed; ")
    assert "kind: caught" in shown.caption
    assert "LC Logical Consistency" in shown.notes[0]
    assert (
        "In brackets 95 % intervals: Wilson's with the effective number of units by trace and Student's t."
        in shown.notes
    )
    assert shown.notes[-1] == "Here failed judgements count as disagreement."


def test_a_note_says_how_the_bounds_are_made() -> None:
    frame = pd.DataFrame({"dimension": ["LC"], "difference": [0.1], "low": [-0.1], "high": [0.3]})
    table = Table(name="odd", title="Odd", needs=(), build=lambda _: frame, interval="of a kind")
    assert "In brackets 95 % intervals: of a kind." in typeset(frame, table, MADE).notes


def test_a_bound_goes_to_its_own_estimate_where_names_differ() -> None:
    frame = pd.DataFrame({
        "dimension": ["LC"], "alpha_interval": [0.5], "alpha_low": [0.4], "alpha_high": [0.6],
        "alpha_jackknife_low": [0.3],
        "alpha_jackknife_high": [0.7], "tied": [3], "tied_share": [0.25], "tied_low": [0.1], "tied_high": [0.5],
        "coverage": [0.5], "coverage_low": [0.25], "coverage_high": [0.75],
    })  # fmt: skip
    percents = ("coverage", "coverage_low", "coverage_high")
    table = Table(name="odd", title="Odd", needs=(), build=lambda _: frame, digits=2, percents=percents)
    (row,) = typeset(frame, table).cells.to_dict("records")
    assert row == {
        "alpha (interval)": "0.50 [0.40, 0.60]", "tied": "3", "tied share": "0.25 [0.10, 0.50]",
        "coverage, %": "50.00 [25.00, 75.00]", "alpha jackknife 95 % interval": "[0.30, 0.70]",
    }  # fmt: skip


def test_counts_of_what_is_left_out_that_are_0_throughout_are_said_once() -> None:
    frame = pd.DataFrame({"dimension": ["LC", "EE"], "n": [0, 0], "failed": [0, 0], "not_applicable": [0, 1]})
    shown = typeset(frame, Table(name="odd", title="Odd", needs=(), build=lambda _: frame))
    assert list(shown.cells.columns) == ["dimension", "n", "not applicable"]
    assert "Failed: 0 in every row." in shown.notes


def test_a_small_p_is_not_printed_as_zero() -> None:
    frame = pd.DataFrame({"dimension": ["LC", "EE", "TC"], "p_exact": [0.00001, 0.25, float("nan")]})
    shown = typeset(frame, Table(name="odd", title="Odd", needs=(), build=lambda _: frame))
    assert list(shown.cells["p (exact)"]) == ["<0.0001", "0.2500", ""]


def test_metrics_are_named_in_words_and_the_reason_comes_last(made: dict[str, pd.DataFrame]) -> None:
    table = next(table for table in TABLES if table.name == "score_estimates")
    shown = typeset(made[table.name], table, MADE)
    assert {"off by one", "quadratic kappa"} <= set(shown.cells["metric"])
    assert shown.cells.columns[-1] == "empty because"


def test_only_tables_of_judges_against_people_name_whose_labels_they_are(made: dict[str, pd.DataFrame]) -> None:
    table = next(table for table in TABLES if table.name == "table_07_consistency")
    assert "reference" not in typeset(made[table.name], table, MADE).caption


def test_two_sides_are_named_and_a_table_without_rows_says_so(made: dict[str, pd.DataFrame]) -> None:
    table = next(table for table in TABLES if table.name == "compared_errors")
    shown = typeset(made[table.name].head(0), table, {**MADE, "compared": ["checks", "person=ben"]})
    assert "left: checks; right: person=ben" in shown.caption
    assert shown.notes[0] == "No row: the filters select nothing for this table."


def test_lowest_and_highest_scores_are_no_interval(made: dict[str, pd.DataFrame]) -> None:
    table = next(table for table in TABLES if table.name == "trace_spread")
    assert {"low", "high"} <= set(typeset(made[table.name], table).cells.columns)


def test_reasons_are_in_the_words_of_the_heads() -> None:
    frame = pd.DataFrame(
        {"dimension": ["LC"], "f1": [0.1], "reason": ["f1, mean_sd interval: no units; ac1: no pairs"]}
    )
    table = Table(name="odd", title="Odd", needs=(), build=lambda _: frame)
    shown = typeset(frame, table)
    assert list(shown.cells["empty because"]) == ["F1, mean SD of 0..1 interval: no units; AC1: no pairs"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_keeps_its_rows_and_has_no_head_twice(table: Table, made: dict[str, pd.DataFrame]) -> None:
    shown = typeset(made[table.name], table, MADE)
    assert len(shown.cells) == len(made[table.name])
    assert shown.cells.columns.is_unique
    assert set(shown.numeric) <= set(shown.cells.columns)
