"""The majority of people in the place of one person: scores, errors, matches, all by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.build import finding, small_trace, span_id, workspace
from tests.judging.team import submit, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.adjudication import decisions as desk
from tracejury.judging.adjudication.majority_errors import most_say
from tracejury.judging.agreement.errors import error_table
from tracejury.judging.agreement.findings import finding_table
from tracejury.judging.agreement.majority import ERRORS, MAJORITY, ReferenceKind, vote_table
from tracejury.judging.agreement.scores import score_table
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.deciding import decide
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.records import Call, Finding, ScoreLabel, Verdict
from tracejury.judging.reports.arm_frames import trail_scores
from tracejury.judging.reports.arms import Arm, arm_pairs
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import Frames, load_frames
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace

WRONG_TOOL = "The timetable tool is called with a day that it does not know."
NO_CHECK = "The final answer is given without checking the winter timetable."


def error(label_id: str, description: str, *spans: int, dimensions: tuple[str, ...] = ("TC",), impact: str = "high"):
    return {
        "label_id": label_id, "description": description, "span_ids": [span_id(n) for n in spans],
        "dimensions": list(dimensions), "impact": impact,
    }  # fmt: skip


def judged(opened: Workspace, *findings: Finding, score: int, trace: int) -> None:
    verdict = Verdict(
        rubric="TC", trace_id=trace_id(trace), state="scored", score=score, criteria="", rationale="",
        findings=findings, call=Call(model="m"),
    )  # fmt: skip
    import_outcomes(opened.engine, [verdict], model="m", author="test")


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """Three people on trace 0, two on trace 1, one on trace 2; a judge of TC on all."""
    opened = workspace(tmp_path / "home", *(small_trace(trace_id(number)) for number in range(3)))
    submit(opened, "ada", trace_id(0), scores={"TC": 1, "PA": 0, "TS": None},
           errors=[error("a1", WRONG_TOOL, 4), error("a2", NO_CHECK, 5, dimensions=("PA",))])  # fmt: skip
    submit(opened, "ben", trace_id(0), scores={"TC": 1, "PA": 1, "TS": None},
           errors=[error("b1", f"{WRONG_TOOL} It fails.", 4, dimensions=("TC", "TS"), impact="low")])  # fmt: skip
    submit(opened, "cat", trace_id(0), scores={"TC": 2, "PA": 2, "TS": 3})
    submit(opened, "ada", trace_id(1), scores={"TC": 3, "PA": 2}, errors=[error("a3", WRONG_TOOL, 4)])
    submit(opened, "ben", trace_id(1), scores={"TC": 2, "PA": 2})
    submit(opened, "ada", trace_id(2), scores={"TC": 0}, errors=[error("a4", WRONG_TOOL, 4)])
    wrong_tool = finding(WRONG_TOOL, 4)
    judged(opened, wrong_tool, score=1, trace=0)
    judged(opened, wrong_tool, score=3, trace=1)
    judged(opened, wrong_tool, score=0, trace=2)
    propose_matches(opened.engine)
    return opened


def frames(opened: Workspace, **more: Any) -> Frames:
    with read_transaction(opened.engine) as connection:
        return load_frames(connection, Filters(**({"reference": "majority"} | more)))


def finding_on(opened: Workspace, trace: int) -> int:
    return int(frames(opened).findings.set_index("trace_id").loc[trace_id(trace), "finding_id"])


def say(opened: Workspace, label_id: str, status: str, author: str, trace: int = 0) -> None:
    with write_transaction(opened.engine) as connection:
        key = finding_on(opened, trace)
        decide(connection, label_id=label_id, finding_key=key, status=status, author=author)  # type: ignore[arg-type]


def test_scores_that_more_than_half_gave_stand_and_the_others_are_missing_and_counted(space: Workspace) -> None:
    loaded = frames(space)
    assert loaded.reference == MAJORITY
    pairs = loaded.score_pairs.set_index("trace_id")
    assert pairs.loc[trace_id(0), ["reference_score", "judge_score"]].tolist() == [1, 1]
    assert np.isnan(pairs.loc[trace_id(1), "reference_score"])  # 3 and 2: a tie, neither
    assert trace_id(2) not in pairs.index  # one person is no majority
    row = score_table(loaded.score_pairs, draws=0).iloc[0]
    assert row[["n", "missing", "failed", "exact"]].tolist() == [1, 1, 0, 1.0]


def test_an_error_that_more_than_half_saw_stands_with_what_most_of_them_say(space: Workspace) -> None:
    (row,) = frames(space).error_pairs.to_dict("records")
    assert (row["error_id"], row["annotator"], row["trace_id"]) == ("a1", "ada", trace_id(0))
    assert (row["dimensions"], row["impact"]) == ("TC", "high")  # TC by both, TS by one; of low and high the graver
    assert (row["caught"], row["localized"], row["match_status"]) == (True, True, "proposed")
    rates = error_table(frames(space).error_pairs, draws=0).set_index(["impact", "kind"])
    assert rates.loc[("all", "caught"), ["tp", "fp", "fn", "tn"]].tolist() == [1, 0, 0, 0]


def test_ties_and_lone_voices_are_said(space: Workspace) -> None:
    by = vote_table(frames(space).votes).set_index("about")
    assert by.loc[ERRORS, ["n", "majority", "tied", "minority", "one_person"]].tolist() == [3, 1, 1, 1, 0]
    assert by.loc["TC", ["n", "unanimous", "majority", "tied"]].tolist() == [2, 0, 1, 1]
    assert by.loc["PA", ["n", "unanimous", "majority", "minority"]].tolist() == [2, 1, 1, 1]
    assert by.loc["TS", ["n", "majority"]].tolist() == [1, 1]  # not applicable is an answer too
    assert frames(space, reference=None).votes.empty


def test_the_other_frames_follow_the_majority(space: Workspace) -> None:
    loaded = frames(space)
    assert set(loaded.judged["trace_id"]) == {trace_id(0), trace_id(1)}
    assert loaded.findings.set_index("trace_id")["matched"].to_dict() == {trace_id(0): True, trace_id(1): False}
    units = loaded.unit_labels.set_index("unit")["reference_label"]
    assert units[[trace_id(0), trace_id(1)]].tolist() == [True, False]
    assert units[trace_id(2)] is None  # nobody's majority: not "no error"
    assert loaded.trail_reference["trace_id"].tolist() == [trace_id(0)]


def test_a_finding_that_matches_a_tied_error_alone_is_unmatched(space: Workspace) -> None:
    """Under the majority nobody's error stands there; a person's verdict on the finding decides what it is."""
    ones = frames(space, reference="ada").findings.set_index("trace_id")
    assert ones.loc[trace_id(1), "matched"]  # a3, which ada saw and ben did not
    loaded = frames(space).findings
    assert not loaded.set_index("trace_id").loc[trace_id(1), "matched"]
    row = finding_table(loaded, frames(space).judged, draws=0).iloc[0]
    assert row[["findings", "matched", "unmatched", "reviewed"]].tolist() == [2, 1, 1, 0]  # nobody reviewed any


def test_the_words_of_people_on_any_label_of_the_error_decide_its_match(space: Workspace) -> None:
    say(space, "b1", "rejected", "dora")
    assert not frames(space).error_pairs["caught"].any()  # a person's word outweighs the proposal for Ada's label
    say(space, "a1", "confirmed", "dora")
    assert not frames(space).error_pairs["caught"].any()  # one word each: a tie is no majority
    say(space, "b1", "confirmed", "dora")
    assert frames(space, matches="confirmed").error_pairs["match_status"].tolist() == ["confirmed"]


def test_only_confirmed_matches_where_those_are_asked_for(space: Workspace) -> None:
    assert not frames(space, matches="confirmed").error_pairs["caught"].any()


def test_one_finding_catches_one_error_of_the_majority(tmp_path: Path) -> None:
    """Ada's first label and Ben's second are both matched with the one finding: two errors, one of them caught."""
    opened = workspace(tmp_path / "home", small_trace(trace_id(0)))
    for who in ("ada", "ben"):
        submit(opened, who, trace_id(0), errors=[error(f"{who}1", WRONG_TOOL, 4), error(f"{who}2", NO_CHECK, 5)])
    judged(opened, finding(WRONG_TOOL, 4), score=1, trace=0)
    say(opened, "ada1", "confirmed", "dora")
    say(opened, "ben2", "confirmed", "dora")
    pairs = frames(opened).error_pairs.set_index("error_id")
    assert sorted(pairs.index) == ["ada1", "ada2"]
    assert pairs["caught"].sum() == 1


def test_what_most_name_stands_and_of_a_tie_all() -> None:
    assert most_say([("a",), ("a", "b"), ("c",)]) == ("a",)
    assert most_say([("a",), ("b",)]) == ("a", "b")
    assert most_say([("a", "b"), ("b", "a")]) == ("a", "b")
    assert most_say([(), ("b",), ()]) == ("b",)
    assert most_say([(), ()]) == ()


def test_one_person_alone_is_no_majority_on_trails_scales_either(space: Workspace) -> None:
    scores_given = {"ada": {"overall": 4, "security": 5}, "ben": {"overall": 4}}  # cat gave none
    labels = [
        ScoreLabel(trace_id=trace_id(0), annotator=who, dimension=f"trail.{scale}", value=value)
        for who, scales in scores_given.items()
        for scale, value in scales.items()
    ]
    alone = ScoreLabel(trace_id=trace_id(1), annotator="ada", dimension="trail.overall", value=2)
    with write_transaction(space.engine) as connection:
        put_labels(connection, errors=(), scores=[*labels, alone], reviews=(), author="test")
        cells = pd.DataFrame(
            [(n, trace_id(n), "m", "trail") for n in range(2)],
            columns=["cell_key", "trace_id", "judge_model", "dimension"],
        )
        several = pd.DataFrame(
            [("ada", 0), ("ben", 0), ("cat", 0), ("ada", 1), ("ben", 1)], columns=["annotator", "trace_id"]
        )
        several["trace_id"] = several["trace_id"].map(trace_id)
        of_most = trail_scores(connection, cells, several)
        of_ada = trail_scores(connection, cells, several[several["annotator"] == "ada"])
    rows = {(row.trace_id, row.scale): row.reference_score for row in of_most.itertuples()}
    assert rows.pop((trace_id(0), "overall")) == 4
    assert len(rows) == 2
    assert np.isnan(list(rows.values())).all()  # neither one's security nor one's overall
    assert sorted(of_ada["reference_score"]) == [2, 4, 5]


def test_gold_is_no_voter_and_may_be_the_reference(space: Workspace) -> None:
    with write_transaction(space.engine) as connection:
        for dimension, value in {"TC": 3, "PA": 2}.items():
            desk.set_score(connection, trace_id(1), dimension, value, by="root", reason="read again")
        desk.reject(connection, ["a3"], by="root", reason="no error")
        desk.close(connection, trace_id(1), by="root", seed="s")
    assert frames(space).votes["people"].max() == 3
    assert np.isnan(frames(space).score_pairs.set_index("trace_id").loc[trace_id(1), "reference_score"])
    kinds: dict[ReferenceKind | None, str] = {
        None: "gold",
        "adjudicated": "gold",
        "single": "ada",
        "majority": MAJORITY,
    }
    assert {kind: frames(space, reference=kind).reference for kind in kinds} == kinds


def test_without_adjudication_there_is_no_adjudicated_gold(space: Workspace) -> None:
    with pytest.raises(ValueError, match="nothing is adjudicated"):
        frames(space, reference="adjudicated")


def test_sides_stand_against_the_majority_and_no_voter_beside_it(space: Workspace) -> None:
    with read_transaction(space.engine) as connection:
        side = arm_pairs(connection, Filters(reference="majority"), Arm(judge_model="m"))
        assert side.error_pairs["error_id"].tolist() == ["a1"]
        with pytest.raises(ValueError, match="part of the majority"):
            arm_pairs(connection, Filters(reference="majority"), Arm(person="ben"))


def test_a_workspace_where_nobody_shares_a_trace_has_frames_without_rows(tmp_path: Path) -> None:
    opened = workspace(tmp_path / "home", small_trace(trace_id(0)))
    submit(opened, "ada", trace_id(0), scores={"TC": 1}, errors=[error("a1", WRONG_TOOL, 4)])
    judged(opened, finding(WRONG_TOOL, 4), score=1, trace=0)
    propose_matches(opened.engine)
    loaded = frames(opened)
    assert loaded.error_pairs.empty
    assert loaded.score_pairs.empty
    assert loaded.votes.empty
    assert vote_table(loaded.votes).empty
