"""The registries: every table builds, empty or not, every metric is defined and shown."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement import raters, scores
from tracejury.judging.agreement.findings import FINDING_REVIEWS
from tracejury.judging.agreement.inputs import COLUMNS, Inputs
from tracejury.judging.agreement.juries import JURY_VOTES
from tracejury.judging.agreement.metric import Metric
from tracejury.judging.agreement.metrics import METRICS
from tracejury.judging.agreement.tables import TABLES, Table, printed, tables_from_frames
from tracejury.judging.reports.export import csv_text

ROOT = Path(__file__).resolve().parents[3]

TABLE = {table.name: table for table in TABLES}


def small_inputs() -> Inputs:
    """Every input, small and varied, so that every table has rows."""
    rng = np.random.default_rng(1)
    traces = [f"t{i}" for i in range(12)]
    errors = pd.DataFrame(
        [
            {
                "trace_id": trace,
                "error_id": f"e{error}",
                "impact": ("low", "medium", "high")[error],
                "split": "test",
                "dimension": dimension,
                "relevant": bool((i + error) % 2),
                "caught": bool(rng.random() < 0.6),
                "localized": False,
            }
            for i, trace in enumerate(traces)
            for error in range(3)
            for dimension in ("LC", "EE")
        ]
    )
    errors["localized"] = errors["caught"] & (rng.random(len(errors)) < 0.5)
    scores = pd.DataFrame(
        [
            {
                "trace_id": trace,
                "dimension": dimension,
                "reference_score": int(rng.integers(4)),
                "judge_score": int(rng.integers(4)),
            }
            for trace in traces
            for dimension in ("LC", "EE")
        ]
    )
    ratings = pd.DataFrame(
        [
            {"unit": trace, "rater": rater, "dimension": "LC", "value": int(rng.integers(4)), "rater_kind": kind}
            for trace in traces
            for kind, names in (("judge", ("repeat 0", "repeat 1")), ("annotator", ("ann", "bob", "cat")))
            for rater in names
        ]
    )
    flipped = errors.assign(caught=~errors["caught"], localized=False)
    labels = pd.DataFrame(
        {
            "dimension": "LC",
            "unit": traces,
            "judge_label": [True, False] * 6,
            "reference_label": [True, False, False, True, True, False, *[None] * 6],
        }
    )
    gold = pd.DataFrame({"trace_id": traces, "category": "Goal Deviation", "location": "s1"})
    return Inputs(
        error_pairs=errors,
        score_pairs=scores,
        ratings=ratings,
        findings=pd.DataFrame(
            {
                "trace_id": traces,
                "dimension": "LC",
                "finding_id": "f1",
                "matched": [True, False] * 6,
                "review": [None, "valid new error"] * 6,
                "citations": 2,
                "invalid_citations": 1,
            }
        ),
        rationales=pd.DataFrame(
            [
                {"dimension": "LC", "trace_id": trace, "repeat": run, "text": f"Step {run + 1} of {trace} fails."}
                for trace in traces
                for run in range(2)
            ]
        ),
        judged=pd.DataFrame({"trace_id": traces, "dimension": "LC"}),
        repeats=pd.DataFrame({"rater": "ann", "unit": traces, "first": 1, "second": [1, 2] * 6}),
        unit_labels=labels,
        periods=pd.DataFrame({"trace_id": traces, "by": "week", "period": ["2026-W01", "2026-W02"] * 6}),
        evidence_pairs=pd.DataFrame(
            {"trace_id": traces, "error_id": traces, "dimension": "LC", "evidence": "compared", "iou": [0.25, 0.75] * 6}
        ),
        slices=pd.DataFrame({"trace_id": traces, "by": "agent", "slice": ["a", "b"] * 6}),
        costs=pd.DataFrame({"trace_id": traces, "judge_model": "", "cost_usd": [0.1, 0.2] * 6, "tokens": 900}),
        person_pairs=pd.DataFrame(
            [
                {
                    "trace_id": trace,
                    "error_id": f"{author}1",
                    "impact": "low",
                    "author": author,
                    "other": other,
                    "reviewers": 2,
                    "dimension": dimension,
                    "relevant": True,
                    "caught": i % 2 == 0,
                    "localized": False,
                }
                for i, trace in enumerate(traces)
                for author, other in (("ann", "bob"), ("bob", "ann"))
                for dimension in ("LC", "any")
            ]
        ),
        match_decisions=pd.DataFrame(
            [
                {
                    "trace_id": trace,
                    "label_id": "l",
                    "finding_id": i,
                    "matcher": matcher,
                    "status": "confirmed" if i % (n + 2) else "rejected",
                }
                for i, trace in enumerate(traces)
                for n, matcher in enumerate(("ann", "bob"))
            ]
        ),
        finding_decisions=pd.DataFrame(
            [
                {"trace_id": trace, "finding_id": i, "reviewer": who, "review": FINDING_REVIEWS[(i + (i > 8) * n) % 3]}
                for i, trace in enumerate(traces)
                for n, who in enumerate(("ann", "bob", "cat"))
            ]
        ),
        votes=pd.DataFrame(
            [
                {"trace_id": trace, "about": about, "people": 3, "votes": 2, "outcome": "majority"}
                for trace in traces
                for about in ("LC", "errors")
            ]
        ),
        jury_votes=pd.DataFrame(
            [("LC", "a + b · jury majority", trace, 2, 2, 1, 0) for trace in traces], columns=list(JURY_VOTES)
        ),
        other_error_pairs=flipped,
        other_score_pairs=scores.assign(judge_score=3 - scores["judge_score"]),
        trail_reference=gold,
        trail_predictions=gold.iloc[:6],
        trail_traces=pd.DataFrame({"trace_id": traces, "state": ["scored"] * 11 + ["failed"]}),
        trail_scores=pd.DataFrame(
            {"trace_id": traces, "scale": "overall", "reference_score": range(12), "judge_score": range(12)}
        ),
        draws=30,
    )


@pytest.fixture(scope="module")
def full() -> dict[str, pd.DataFrame]:
    return tables_from_frames(small_inputs())


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_table_has_rows_and_prints(table: Table, full: dict[str, pd.DataFrame]) -> None:
    frame = full[table.name]
    assert len(frame) > 0
    again = pd.read_csv(io.StringIO(csv_text(frame, table)), dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(again, printed(frame, table), check_dtype=False)
    assert not again.isin(["nan", "NaN", "None", "<NA>", "inf"]).any().any()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_a_table_without_its_input_is_empty_and_typed(table: Table, full: dict[str, pd.DataFrame]) -> None:
    empty = table.frame(Inputs())
    assert len(empty) == 0
    if table.name == "coverage_grid":  # its columns are the judges
        return
    assert list(empty.columns) == list(full[table.name].columns)
    assert list(map(str, empty.dtypes)) == list(map(str, full[table.name].dtypes))


def test_tables_come_in_the_order_of_the_registry(full: dict[str, pd.DataFrame]) -> None:
    names = [table.name for table in TABLES]
    assert list(full) == names
    assert list(tables_from_frames(Inputs(), ["score_flags", "findings"])) == ["findings", "score_flags"]
    assert tables_from_frames(Inputs()) == {}
    assert len(set(names)) == len(names)


def test_only_tables_whose_input_is_there_are_made() -> None:
    made = tables_from_frames(Inputs(score_pairs=small_inputs().score_pairs, draws=0))
    assert "table_04_scores" in made
    assert "table_03_caught" not in made


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(ValueError, match="no table is called 'table_99'"):
        tables_from_frames(Inputs(), ["table_99"])


def test_all_tables_of_the_paper_are_registered() -> None:
    papers = {table.paper for table in TABLES}
    assert {f"Table {number}" for number in range(1, 18)} <= papers


def test_every_input_is_needed_by_a_table_or_known_to_be_optional() -> None:
    needed = {name for table in TABLES for name in table.needs}
    assert set(COLUMNS) - needed == {"judged", "rule_rates"}


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_every_metric_names_its_source_and_stands_in_its_table(metric: Metric, full: dict[str, pd.DataFrame]) -> None:
    assert "Source" in (metric.function.__doc__ or "")
    frame = full[metric.table]
    assert metric.column in frame.columns
    if "metric" in frame.columns:
        assert metric.name in set(frame["metric"])


def test_metric_names_are_one_each() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_a_cell_that_a_spreadsheet_would_run_is_quoted() -> None:
    pairs = pd.DataFrame(
        {"trace_id": ["a", "b"], "dimension": "=1+1", "reference_score": [3, 2], "judge_score": [2, 0]}
    )
    text = csv_text(tables_from_frames(Inputs(score_pairs=pairs, draws=0))["score_flags"], TABLE["score_flags"])
    assert ",'=1+1," in text


def test_negative_estimates_are_numbers_not_formulas() -> None:
    pairs = pd.DataFrame({"trace_id": ["a", "b"], "dimension": "LC", "reference_score": [3, 2], "judge_score": [2, 0]})
    text = csv_text(tables_from_frames(Inputs(score_pairs=pairs, draws=0))["score_flags"], TABLE["score_flags"])
    assert ",-1.5000," in text


def test_people_and_runs_are_told_apart(full: dict[str, pd.DataFrame]) -> None:
    assert full["table_07_consistency"].iloc[0]["repeats"] == 2
    assert full["human_ceiling"].iloc[0]["raters"] == 3
    assert len(full["rater_pairs"]) == 10


def test_another_kind_of_rater_is_refused() -> None:
    ratings = pd.DataFrame({"unit": ["t"], "rater": ["x"], "value": [1], "rater_kind": ["robot"]})
    with pytest.raises(ValueError, match="expected judge, annotator or gold"):
        tables_from_frames(Inputs(ratings=ratings))


def test_importing_the_registry_loads_no_heavy_library() -> None:
    code = (
        "import sys, tracejury.judging.agreement.tables; "
        "print([m for m in ('sklearn', 'scipy.stats', 'streamlit', 'plotly', 'sqlalchemy', "
        "'tracejury.ingest', 'tracejury.judging.store') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    heavy = ("numpy", "pandas", "krippendorff")
    light = f"import sys, tracejury.judging.agreement; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", light], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_metric_of_scores_has_its_columns_its_row_and_its_ceiling_by_its_record() -> None:
    estimates = scores.score_estimates(
        pd.DataFrame([{"trace_id": "a", "dimension": "LC", "reference_score": 1, "judge_score": 3}]), draws=0
    )
    names = [metric.name for metric in scores.SCORE_METRICS]
    assert list(estimates["metric"]) == names
    wide = scores.wide_scores(estimates)
    assert {f"{name}{end}" for name in names for end in ("", "_low", "_high")} <= set(wide.columns)
    assert wide["mae"].tolist() == [2.0]
    with_ceiling = {metric.name for metric in scores.SCORE_METRICS if metric.has_ceiling}
    assert with_ceiling == {*raters.CEILING_METRICS, "pair_alpha"} == set(names) - {"bias"}
    undefined = estimates[estimates["value"].isna()]
    assert set(undefined["reason"]) == {"fewer than two units"}


def test_one_more_rate_of_errors_is_a_function_and_a_record() -> None:
    """In a process of its own: the records are read as modules load."""
    module = "tests.judging.agreement.one_more_rate"
    done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
