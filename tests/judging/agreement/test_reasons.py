"""Every empty estimate of every table has its reason beside it, whatever the data lack."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest
from tests.judging.agreement.test_tables import small_inputs

from tracejury.judging.agreement.estimate import joined_reasons
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.tables import TABLES, tables_from_frames

LISTED = ("trail_correlations", "annotator_test", "compared_errors", "compared_scores")
"""One reason a row, of all that is empty in it."""


def one_trace(frame: pd.DataFrame) -> pd.DataFrame:
    """Of what is listed by trace only the first."""
    for name in ("trace_id", "unit"):
        if name in frame.columns:
            return frame[frame[name] == frame[name].iloc[0]]
    return frame


def all_alike(frame: pd.DataFrame) -> pd.DataFrame:
    """Every score the same, nothing caught."""
    same = {name: 2 for name in ("judge_score", "reference_score", "value", "first", "second") if name in frame.columns}
    if "relevant" in frame.columns:
        same |= dict.fromkeys(("caught", "localized"), False)
    return frame.assign(**same)


def nothing_answered(frame: pd.DataFrame) -> pd.DataFrame:
    """Every judgement failed."""
    gone = {name: float("nan") for name in ("judge_score", "value") if name in frame.columns}
    if "relevant" in frame.columns:
        gone |= dict.fromkeys(("caught", "localized"), False)
    return frame.assign(**gone, state="failed")


def nothing_found(frame: pd.DataFrame) -> pd.DataFrame:
    """One finding, unmatched, without a citation."""
    return frame.head(1).assign(matched=False, review=None, citations=0, invalid_citations=0)


JUDGED = ("error_pairs", "score_pairs", "ratings", "other_error_pairs", "other_score_pairs")
SCORED = (*JUDGED, "repeats")
EVERY = (
    *("error_pairs", "score_pairs", "ratings", "findings", "rationales", "repeats", "person_pairs", "match_decisions"),
    *(
        "finding_decisions",
        "other_error_pairs",
        "other_score_pairs",
        "trail_reference",
        "trail_predictions",
        "trail_traces",
    ),
    "trail_scores",
)


def changed(inputs: Inputs, names: tuple[str, ...], change: Callable[[pd.DataFrame], pd.DataFrame]) -> Inputs:
    return replace(inputs, **{name: change(getattr(inputs, name)) for name in names})


CASES: dict[str, tuple[tuple[str, ...], Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "whole": (EVERY, lambda frame: frame),
    "one trace": (EVERY, one_trace),
    "all alike": (SCORED, all_alike),
    "nothing answered": (JUDGED, nothing_answered),
    "nothing found": (("findings",), nothing_found),
    "no predictions": (("trail_predictions",), lambda frame: frame.head(0)),
    "no reference": (("trail_reference",), lambda frame: frame.head(0)),
}


@pytest.mark.parametrize("case", CASES)
def test_every_empty_estimate_says_why(case: str) -> None:
    names, change = CASES[case]
    touched = [table.name for table in TABLES if set(table.needs) & set(names)]
    made = tables_from_frames(changed(small_inputs(), names, change), touched)
    silent = {f"{name}.{column}" for name, table in made.items() for column in unexplained(name, table)}
    assert silent == set()


def unexplained(name: str, table: pd.DataFrame) -> set[str]:
    """Columns of numbers with an empty cell that the row's reason does not name."""
    estimates = [str(c) for c in table.columns if pd.api.types.is_numeric_dtype(table[c].dtype) and c != "hits"]
    return {
        column
        for row in table.to_dict("records")
        for column in estimates
        if pd.isna(row[column]) and not is_told(column, row.get("reason"), is_listed=name in LISTED)
    }


def is_told(column: str, reason: object, *, is_listed: bool) -> bool:
    if not isinstance(reason, str):
        return False
    if is_listed or column in {"value", "low", "high"} or reason.startswith("no units"):
        return True
    base = column.removesuffix("_low").removesuffix("_high").removesuffix("_ci95")
    names = [base, f"{base}_interval", f"{base}_share", f"{base}_low"]
    said = {name.strip() for part in reason.split(";") for name in part.split(":")[0].split(",")}
    return any(name in said or f"{name} interval" in said for name in names)


def test_names_with_one_reason_stand_together() -> None:
    said = joined_reasons({"f1": "no positives", "ac2": "no variation", "f2": "no positives"})
    assert said == "f1, f2: no positives; ac2: no variation"
    assert joined_reasons({}) is None


def test_rates_of_zero_without_bounds_say_so_and_no_interval_is_missed_that_was_not_asked_for() -> None:
    inputs = changed(small_inputs(), ("findings",), lambda frame: frame.assign(matched=True, review=None))
    (table,) = tables_from_frames(inputs, ["findings"]).values()
    assert (table["unmatched_per_trace"] == 0).all()
    assert table["unmatched_per_trace_low"].isna().all()
    assert table["reason"].str.fullmatch("unmatched_per_trace interval.*: traces do not vary").all()
    (table,) = tables_from_frames(replace(inputs, draws=0), ["findings"]).values()
    assert table["reason"].isna().all()


def test_errors_that_a_judge_was_not_asked_about_are_told_from_those_it_failed_on() -> None:
    rows = [("t", "e", "low", "LC", True, True, True, "scored"), ("t", "e", "low", "EE", False, False, False, "failed"),
            ("t", "f", "low", "LC", False, False, False, "not_applicable")]  # fmt: skip
    columns = ["trace_id", "error_id", "impact", "dimension", "relevant", "caught", "localized", "state"]
    inputs = Inputs(error_pairs=pd.DataFrame(rows, columns=columns))
    (grid,) = tables_from_frames(inputs, ["coverage_grid"]).values()
    assert list(grid["reason"]) == ["EE: failed", "LC: not applicable; EE: not asked"]
