"""Judges that answered different traces are compared on those that all answered, and the difference is said."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.build import error_label, finding
from tests.judging.team import many_traces, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.errors import suite_coverage
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.records import Call, Failure, Review, ScoreLabel, Verdict
from tracejury.judging.reports.estimates import Sources, differences, summary
from tracejury.judging.reports.export import facts_of, inputs_of, manifest_of
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import Frames, load_frames
from tracejury.judging.reports.same_traces import shared_cells
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace

DESCRIPTION = "The tool is called with a day it does not know."
CALL = Call(model="m", raw_reply="raw")
TRACES = 10


def verdict(number: int, *, caught: bool, rubric: str = "TC", score: int = 1) -> Verdict:
    findings = (finding(DESCRIPTION, 2),) if caught else ()
    return Verdict(
        rubric=rubric, trace_id=trace_id(number), state="scored", score=score, criteria="c", rationale="r",
        findings=findings, call=CALL,
    )  # fmt: skip


def failure(number: int, rubric: str = "TC") -> Failure:
    return Failure(rubric=rubric, trace_id=trace_id(number), state="unparsable", reason="no JSON", call=CALL)


@pytest.fixture
def labelled(tmp_path: Path) -> Workspace:
    """Ten traces with one error of TC each, the reference ada's."""
    space = many_traces(tmp_path, TRACES)
    ids = [trace_id(number) for number in range(TRACES)]
    errors = [
        replace(error_label(number, spans=(2,), trace_id=one, evidence=()), annotator="ada")
        for number, one in enumerate(ids)
    ]
    with write_transaction(space.engine) as connection:
        put_labels(
            connection,
            errors=errors,
            scores=[ScoreLabel(trace_id=one, annotator="ada", dimension="TC", value=1) for one in ids],
            reviews=[Review(trace_id=one, annotator="ada", status="submitted") for one in ids],
            author="test",
        )
    return space


@pytest.fixture
def unlike(labelled: Workspace) -> Workspace:
    """broad answered all ten traces and caught 6; narrow answered six, caught 3, and failed on a seventh."""
    broad = [verdict(number, caught=number in {0, 1, 6, 7, 8, 9}) for number in range(TRACES)]
    narrow = [verdict(number, caught=number in {0, 1, 2}) for number in range(6)]
    import_outcomes(labelled.engine, broad, model="broad", author="test")
    import_outcomes(labelled.engine, [*narrow, failure(6)], model="narrow", author="test")
    propose_matches(labelled.engine)
    return labelled


def framed(space: Workspace, **filters: Any) -> Frames:
    with read_transaction(space.engine) as connection:
        return load_frames(connection, Filters(**filters))


def coverage(frames: Frames, missing: str = "drop") -> dict[str, tuple[int, int]]:
    table = suite_coverage(frames.error_pairs, missing=missing).query("impact == 'all' and kind == 'caught'")  # type: ignore[arg-type]
    return {row.judge_model: (row.hits, row.n) for row in table.itertuples()}


def test_the_order_turns_on_the_traces_that_both_answered(unlike: Workspace) -> None:
    """Of its own ten broad catches .6, narrow .5 of six; of the six that both answered, broad catches 2, narrow 3."""
    assert coverage(framed(unlike, same_traces=False)) == {"broad": (6, 10), "narrow": (3, 6)}
    assert coverage(framed(unlike)) == {"broad": (2, 6), "narrow": (3, 6)}


def test_the_difference_is_said_with_its_counts(unlike: Workspace) -> None:
    assert framed(unlike).overlap.words() == (
        "2 judge models answered different traces: compared on the 6 of 10 that all answered (fewest: narrow, 6)"
    )
    assert framed(unlike, same_traces=False).overlap.words() == (
        "2 judge models answered different traces (6 of 10 in common): each is compared on its own"
    )
    assert framed(unlike, judge_models=("narrow",)).overlap.words() is None


def test_a_failure_that_counts_as_a_miss_is_an_answer(unlike: Workspace) -> None:
    """On the seventh trace narrow failed: it misses the error there, which broad caught."""
    frames = framed(unlike, missing="disagree")
    assert coverage(frames, "disagree") == {"broad": (3, 7), "narrow": (3, 7)}


def test_a_failure_left_out_is_still_counted(unlike: Workspace) -> None:
    frames, filters = framed(unlike), Filters()
    counts = summary(Sources(frames=frames, inputs=inputs_of(frames, filters, {}))).iloc[0]
    assert counts[["errors", "traces", "failed_cells"]].tolist() == [6, 6, 1]


def test_scores_and_findings_are_of_the_same_traces_too(unlike: Workspace) -> None:
    frames = framed(unlike)
    scored = frames.score_pairs.query("state == 'scored'")
    assert scored.groupby("judge_model")["trace_id"].nunique().to_dict() == {"broad": 6, "narrow": 6}
    assert set(frames.findings["trace_id"]) == {trace_id(number) for number in range(3)}
    own = framed(unlike, same_traces=False)
    assert own.score_pairs.groupby("judge_model").size().to_dict() == {"broad": 10, "narrow": 7}


def test_two_sides_are_compared_on_all_that_the_two_share(unlike: Workspace) -> None:
    """A third judge that answered one trace narrows the table of all judges, not the comparison of two others."""
    import_outcomes(unlike.engine, [verdict(0, caught=False)], model="tiny", author="test")
    propose_matches(unlike.engine)
    frames = framed(unlike)
    assert coverage(frames) == {"broad": (1, 1), "narrow": (1, 1), "tiny": (0, 1)}
    table = differences(Sources(frames=frames, inputs=inputs_of(frames, Filters(draws=0), {})), "broad", "narrow")
    row = table.query("metric == 'recall' and impact == 'all' and kind == 'caught'").iloc[0]
    assert (row["n"], round(row["difference"], 6)) == (6, round(-1 / 6, 6))


def test_judges_that_share_no_trace_stand_on_their_own_and_it_is_said(labelled: Workspace) -> None:
    import_outcomes(labelled.engine, [verdict(0, caught=True)], model="one", author="test")
    import_outcomes(labelled.engine, [verdict(1, caught=False)], model="two", author="test")
    propose_matches(labelled.engine)
    frames = framed(labelled)
    assert coverage(frames) == {"one": (1, 1), "two": (0, 1)}
    assert frames.overlap.words() == (
        "2 judge models answered different traces and share none: each is compared on its own"
    )


def test_the_manifest_tells_the_switch_and_what_it_did(unlike: Workspace) -> None:
    filters, frames = Filters(), framed(unlike)
    manifest: Any = manifest_of(facts_of(frames), filters, inputs_of(frames, filters, {}))
    assert manifest["selection"]["same_traces"] is True
    assert (manifest["traces"], manifest["reference_errors"]) == (6, 6)
    told = manifest["same_traces"]
    assert (told["is_applied"], told["traces"], told["of"], told["judge_models"]) == (True, 6, 10, 2)
    assert told["words"] == frames.overlap.words()


def test_a_trace_counts_by_dimension_and_whole_suites_keep_the_same_traces() -> None:
    """A failed on LC of trace 2, which B answered in LC alone: neither's suite keeps the trace, though A has TC."""
    rows = [
        ("a", "LC", 1, "scored"), ("a", "TC", 1, "scored"), ("b", "LC", 1, "scored"),
        ("a", "LC", 2, "unparsable"), ("a", "TC", 2, "scored"), ("b", "LC", 2, "scored"),
    ]  # fmt: skip
    cells = pd.DataFrame(rows, columns=["judge_model", "dimension", "trace_id", "state"])
    assert shared_cells(cells, "drop", all_models=True).tolist() == [True, True, True, True, False, False]
    assert shared_cells(cells, "drop", all_models=False).tolist() == [True, True, True, True, True, False]
    assert shared_cells(cells, "disagree", all_models=True).tolist() == [True] * 6
