"""A jury's joint verdict: one score, findings united, ties and absent votes said; one more judge in all tables."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.fake_provider import verdict
from tests.judging.grid import Counting, Grid, planned
from tests.judging.traces import SPAN_IDS

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.juries import jury_table
from tracejury.judging.judges.jury import jury_score, on_scale
from tracejury.judging.judges.model import ModelError
from tracejury.judging.juries.joint import Member, joint_verdict, united
from tracejury.judging.juries.joint_verdicts import keep_joint_verdicts
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.comparison import compare_trace, undecided
from tracejury.judging.matching.deciding import decide
from tracejury.judging.matching.finding_reviews import finding_reviews, review_finding
from tracejury.judging.matching.rule import TextLikeness
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.matching.standing import decisions
from tracejury.judging.queues.queue_store import judge_spread
from tracejury.judging.records import (
    Call,
    Citation,
    ErrorLabel,
    Failure,
    FailureState,
    Finding,
    Review,
    ScoreLabel,
    Verdict,
)
from tracejury.judging.reports.estimates import Sources, bias_lines, summary
from tracejury.judging.reports.exploring import finding_places
from tracejury.judging.reports.export import inputs_of
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import Frames, load_frames
from tracejury.judging.runs.paid_costs import paid_elsewhere
from tracejury.judging.runs.run_control import want_failed_again
from tracejury.judging.runs.verdict_imports import export_outcomes
from tracejury.judging.store.judge_models import judge_models
from tracejury.judging.store.people import ensure_annotator

ROOT, PLAN, TOOL, CLAIM = SPAN_IDS
PARENTS = {ROOT: None, PLAN: ROOT, TOOL: ROOT, CLAIM: ROOT}
TRACE = f"{1:032x}"
JURY = "a + b + c · jury majority"
NO_SEARCH = "The answer claims a bridge length that no search returned."
IGNORED = "The failed search is never acknowledged."


def found(description: str, *spans: str, **more: Any) -> Finding:
    citations = tuple(Citation(cite=span, span_id=span) for span in spans)
    return Finding(description=description, evidence="", citations=citations, **{"dimension": "LC", **more})


def said(model: str, score: int | None, *findings: tuple[int, Finding]) -> Member:
    outcome = Verdict(rubric="LC", trace_id=TRACE, state="not_applicable" if score is None else "scored", score=score,
                      criteria="", rationale=f"{model} thinks so", findings=tuple(f for _, f in findings),
                      call=Call(model=model), reason="no plan" if score is None else None)  # fmt: skip
    return Member(model=model, outcome=outcome, findings=findings)


def failed(model: str, state: FailureState = "refused") -> Member:
    return Member(
        model=model,
        outcome=Failure(rubric="LC", trace_id=TRACE, state=state, reason="", call=Call(model=model)),
    )


def joint(*members: Member, rule: Any = "majority") -> Any:
    likeness = TextLikeness()
    return joint_verdict(members, rule, parents=PARENTS, likeness=likeness)


class TestScore:
    @pytest.mark.parametrize(
        ("scores", "score", "tied"),
        [([1, 2, 2], 2.0, ()), ([0, 0, 1], 0.0, ()), ([1, 2], None, (1, 2)), ([None, 3], 3.0, ()), ([None], None, ())],
    )
    def test_a_mean_is_the_nearest_score_and_halfway_a_tie(
        self, scores: list[int | None], score: float | None, tied: tuple[int, ...]
    ) -> None:
        result = on_scale(jury_score(scores, "mean"))
        assert (result.score, result.tied) == (score, tied)

    def test_a_tie_is_a_verdict_without_a_score_that_says_so(self) -> None:
        outcome = joint(said("a", 0), said("b", 3)).outcome
        assert isinstance(outcome, Verdict)
        assert (outcome.state, outcome.score) == ("tied", None)
        assert outcome.reason == "tie: 0 and 3; ties are reported, not resolved"

    def test_failed_members_are_counted_and_have_no_vote(self) -> None:
        outcome = joint(said("a", 0), failed("b"), failed("c", "error")).outcome
        assert (outcome.score, outcome.notes) == (
            0,
            ("jury: a 0, b refused, c error", "jury: 2 of 3 models failed"),
        )

    def test_a_rubric_that_applies_to_no_member_applies_to_the_jury_neither(self) -> None:
        outcome = joint(said("a", None), said("b", None)).outcome
        assert (outcome.state, outcome.reason) == ("not_applicable", "no plan")

    def test_where_nobody_answered_the_jury_failed(self) -> None:
        outcome = joint(failed("a"), failed("b", "unparsable")).outcome
        assert isinstance(outcome, Failure)
        assert outcome.reason == "no model answered: a refused, b unparsable"


class TestFindings:
    def test_one_error_in_several_words_is_one_finding_with_every_citation_once(self) -> None:
        one = found(NO_SEARCH, CLAIM, impact="low", category="Language-only")
        other = found("A bridge length is claimed that no search returned.", TOOL, CLAIM, impact="high")
        extra = found("The plan is not followed in its second step.", PLAN)
        outcome = joint(said("a", 1, (1, one)), said("b", 1, (2, extra), (3, other)), said("c", 1))
        first, second = outcome.findings
        assert (first.member_keys, second.member_keys) == ((1, 3), (2,))
        assert first.finding.description == f"2 of 3 models: {NO_SEARCH}"
        assert [citation.span_id for citation in first.finding.citations] == [CLAIM, TOOL]
        assert (first.finding.impact, first.finding.category) == ("high", "Language-only")
        assert outcome.outcome.findings == (first.finding, second.finding)

    def test_two_findings_of_one_member_stay_two(self) -> None:
        twice = [(1, found(NO_SEARCH, CLAIM)), (2, found(NO_SEARCH, CLAIM))]
        groups = united([said("a", 1, *twice)], parents=PARENTS, likeness=TextLikeness())
        assert [group.member_keys for group in groups] == [(1,), (2,)]

    def test_errors_that_share_a_span_and_no_word_are_two(self) -> None:
        outcome = joint(
            said("a", 1, (1, found(NO_SEARCH, CLAIM))), said("b", 1, (2, found("Tasks repeat needlessly.", CLAIM)))
        )
        assert [group.member_keys for group in outcome.findings] == [(1,), (2,)]

    def test_a_span_that_is_not_there_stays_unresolved(self) -> None:
        lost = Finding(
            description=NO_SEARCH, evidence="", citations=(Citation(cite="S99", span_id=None),), dimension="LC"
        )
        (one,) = joint(said("a", 1, (1, lost)), said("b", 1, (2, found(NO_SEARCH, CLAIM)))).findings
        assert [(c.cite, c.span_id) for c in one.finding.citations] == [("S99", None), (CLAIM, CLAIM)]


def says(score: int, *findings: tuple[str, str]) -> Counting:
    listed = [{"description": text, "evidence": "", "citations": [cite]} for text, cite in findings]
    return Counting(script=lambda _, __: verdict(score, findings=listed))


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    """Two traces; a and b score 1 and both see the unfounded claim, c scores 3 and sees the ignored failure."""
    made = planned(tmp_path, traces=2, rubrics=("LC",), models=("a", "b", "c"), mode="jury")
    made.run(
        says(1, (NO_SEARCH, "S4")),
        says(1, ("A bridge length is claimed that no search returned.", "S1")),
        says(3, (IGNORED, "S3")),
    )
    return made


def label(grid: Grid, *, score: float = 1.0) -> None:
    """Ada scores the first trace and marks the unfounded claim at its span."""
    error = ErrorLabel(label_id="e1", trace_id=TRACE, annotator="ada", span_ids=(CLAIM,), dimensions=("LC",),
                       impact="high", description="A bridge length is claimed that no search returned.")  # fmt: skip
    with write_transaction(grid.engine) as connection:
        ensure_annotator(connection, "ada")
        put_labels(
            connection,
            errors=[error],
            scores=[ScoreLabel(trace_id=TRACE, annotator="ada", dimension="LC", value=score)],
            reviews=[Review(trace_id=TRACE, annotator="ada", status="submitted")],
            author="ada",
        )


def frames(grid: Grid, **chosen: Any) -> Frames:
    with read_transaction(grid.engine) as connection:
        return load_frames(connection, Filters(**chosen))


def jury_keys(connection: Connection) -> list[int]:
    compared = compare_trace(connection, trace_id=TRACE, reference="ada", judge_model=JURY)
    keys = {pair.finding.description: pair.finding_key for pair in compared.pairs if pair.finding is not None}
    return [keys[f"2 of 3 models: {NO_SEARCH}"], keys[f"1 of 3 models: {IGNORED}"]]  # type: ignore[list-item]


class TestStore:
    def test_the_jury_stands_beside_its_members_in_every_frame(self, grid: Grid) -> None:
        label(grid)
        assert propose_matches(grid.engine)["matches"] == 2  # the members' alone
        made = frames(grid)
        scores = made.score_pairs.set_index("judge_model")["judge_score"]
        assert scores.to_dict() == {"a · jury": 1, "b · jury": 1, "c · jury": 3, JURY: 1}
        caught = made.error_pairs.set_index("judge_model")[["caught", "localized"]]
        assert caught.loc[JURY].tolist() == [True, True]
        assert caught.loc["b · jury"].tolist() == [True, False]  # its citation is another span: the jury's has both
        assert made.findings["judge_model"].value_counts()[JURY] == 2

    def test_a_jury_asked_for_no_more_than_its_members(self, grid: Grid) -> None:
        assert grid.watch()["states"] == {"scored": 6}
        (cost,) = grid.rows("select sum(cost_usd) from cell")
        assert cost == (pytest.approx(0.06),)
        with read_transaction(grid.engine) as connection:
            assert list(paid_elsewhere(connection).values()) == [pytest.approx(0.03)] * 2  # as its three members
        listed = grid.rows("select name, status from run order by run_key")
        assert listed[1:] == [("joint verdicts of run 1: LC by a, b, c", "done")]

    def test_where_judges_are_taken_together_the_jury_is_no_further_one(self, grid: Grid) -> None:
        label(grid)
        with read_transaction(grid.engine) as connection:
            assert judge_spread(connection)[TRACE] == pytest.approx(4 / 3)  # of 1, 1 and 3
            assert finding_places(connection)["count"].sum() == 6

    def test_an_estimate_of_all_judges_counts_each_score_once(self, grid: Grid) -> None:
        label(grid)
        made = frames(grid)
        (line,) = bias_lines(Sources(frames=made, inputs=inputs_of(made, Filters(), {}))).to_dict("records")
        assert (line["n"], line["mean"]) == (3, pytest.approx(2 / 3))  # not the jury's own 1 beside 1, 1, 3
        alone = frames(grid, judge_models=(JURY,))
        assert bias_lines(Sources(frames=alone, inputs=inputs_of(alone, Filters(), {})))["n"].tolist() == [1]
        broken = replace(made, error_pairs=made.error_pairs.assign(state="failed"))
        assert summary(Sources(frames=broken, inputs=inputs_of(broken, Filters(), {})))["failed_cells"].tolist() == [3]

    def test_a_word_on_a_member_s_finding_holds_for_the_jury_and_its_own_word_is_last(self, grid: Grid) -> None:
        label(grid)
        propose_matches(grid.engine)
        with write_transaction(grid.engine) as connection:
            first, other = jury_keys(connection)
            by_member = {d.finding_key: d for d in decisions(connection) if d.finding_key not in (first, other)}
            decide(connection, label_id="e1", finding_key=min(by_member), status="confirmed", author="ada")
            assert statuses(connection)[first] == "confirmed"
            decide(connection, label_id="e1", finding_key=first, status="rejected", author="ada")
            assert statuses(connection)[first] == "rejected"
            assert statuses(connection)[min(by_member)] == "confirmed"

    def test_one_member_s_rejected_pair_does_not_refute_the_other_s(self, grid: Grid) -> None:
        label(grid)
        propose_matches(grid.engine)
        with write_transaction(grid.engine) as connection:
            first, _ = jury_keys(connection)
            member = next(d for d in decisions(connection) if d.finding_key != first)
            decide(connection, label_id="e1", finding_key=member.finding_key, status="rejected", author="ada")
            assert statuses(connection)[first] == "proposed"

    def test_a_review_of_a_members_unmatched_finding_holds_for_the_jury(self, grid: Grid) -> None:
        label(grid)
        with write_transaction(grid.engine) as connection:
            compared = compare_trace(connection, trace_id=TRACE, reference="ada", judge_model="c · jury")
            key = next(pair.finding_key for pair in compared.pairs if pair.finding_key is not None)
            review_finding(connection, finding_key=key, review="false alarm", author="ada")
            reviewed = finding_reviews(connection)
            first, other = jury_keys(connection)
            assert sorted(reviewed.values()) == ["false alarm", "false alarm"]
            assert (first in reviewed, other in reviewed) == (False, True)
            assert undecided(connection, reference="ada", judge_model=JURY) == {TRACE: 1}

    def test_compare_and_the_export_show_it_as_a_jury(self, grid: Grid) -> None:
        label(grid)
        with read_transaction(grid.engine) as connection:
            assert JURY in judge_models(connection)
            (cell,) = compare_trace(connection, trace_id=TRACE, reference="ada", judge_model=JURY).cells
            exported = export_outcomes(connection).decode()
        assert cell.outcome.call.cost_usd == 0.0
        assert isinstance(cell.outcome, Verdict)
        assert cell.outcome.notes == ("jury: a 1, b 1, c 3",)
        assert exported.count('"mode": "jury majority"') == 2

    def test_failed_cells_judged_again_make_the_verdict_anew_and_nothing_else_twice(self, tmp_path: Path) -> None:
        made = planned(tmp_path, traces=2, rubrics=("LC",), models=("a", "b", "c"), mode="jury")
        broken = Counting(script=lambda n, _: ModelError("bad_request", "no") if n == 0 else verdict(3))
        made.run(says(1), says(3), broken)
        kept = "select score, reason like 'tie%' from cell where cost_usd = 0 order by cell_key"
        assert made.rows(kept) == [(None, 1), (3, None)]
        assert want_failed_again(made.engine, made.run_key) == 1
        made.run(says(1), says(3), says(3))
        assert made.rows(kept) == [(None, 1), (3, None), (3, None)]
        label(made, score=3.0)
        assert frames(made, judge_models=(JURY,)).score_pairs["judge_score"].tolist() == [3]

    def test_a_paused_jury_speaks_where_all_its_members_did(self, tmp_path: Path) -> None:
        made = planned(tmp_path, traces=2, rubrics=("LC",), models=("a", "b"), mode="jury", concurrency=1)
        stopped = Counting(script=lambda n, _: ModelError("auth", "expired") if n == 1 else verdict(2))
        assert made.run(says(2), stopped).status == "paused"
        assert made.rows("select trace_id, score from cell where cost_usd = 0") == [(TRACE, 2)]
        made.run(says(2), says(2))
        assert made.rows("select trace_id, score from cell where cost_usd = 0") == [(TRACE, 2), (f"{2:032x}", 2)]

    def test_ties_and_votes_are_counted_by_judge(self, tmp_path: Path) -> None:
        made = planned(tmp_path, traces=3, rubrics=("LC",), models=("a", "b", "c"), mode="jury", concurrency=1)
        broken = ModelError("bad_request", "odd")
        made.run(
            Counting(script=lambda n, _: verdict(2)),
            Counting(script=lambda n, _: verdict(2 if n == 0 else 1)),
            Counting(script=lambda n, _: verdict(2) if n == 0 else broken if n == 1 else verdict(1)),
        )  # trace 1: 2 2 2; trace 2: 2 1 and a failure, a tie; trace 3: 2 1 1
        with read_transaction(made.engine) as connection:
            votes = load_frames(connection, Filters()).jury_votes
        table = jury_table(votes).set_index("dimension")
        assert table.loc["LC", ["n", "members", "voted", "absent", "several", "unanimous", "tied"]].tolist() == [
            3, 9, 8, 1, 3, 1, 1,
        ]  # fmt: skip
        assert table.loc["LC", ["unanimous_share", "tied_share", "absent_share"]].tolist() == [1 / 3, 1 / 3, 1 / 9]

    def test_the_rule_of_the_run_is_that_of_its_verdicts(self, tmp_path: Path) -> None:
        made = planned(tmp_path, traces=1, rubrics=("LC",), models=("a", "b", "c"), mode="jury", jury_rule="mean")
        made.run(says(0), says(1), says(1))
        with read_transaction(made.engine) as connection:
            assert "a + b + c · jury mean" in judge_models(connection)
        assert made.rows("select score from cell where cost_usd = 0") == [(1,)]

    def test_another_rule_speaks_in_a_run_of_its_own(self, grid: Grid) -> None:
        assert keep_joint_verdicts(grid.engine, grid.run_key, "mean") == 2
        said = """select run.spec ->> 'mode', judge_version.mode, count(*)
            from cell join run using (run_key) join judge_version using (judge_version)
            where judge_version.mode like 'jury %' group by 1, 2 order by 1"""
        assert grid.rows(said) == [("jury majority", "jury majority", 2), ("jury mean", "jury mean", 2)]

    def test_a_jury_that_cannot_speak_leaves_a_run_that_can_be_paused_and_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = planned(tmp_path, traces=1, rubrics=("LC",), models=("a", "b"), mode="jury")

        def fails(*_: Any, **__: Any) -> Any:
            raise ValueError("no such finding")

        with monkeypatch.context() as broken:
            broken.setattr("tracejury.judging.juries.joint.joint_verdict", fails)
            with pytest.raises(ValueError, match="no such finding"):
                made.run(says(2), says(2))
        told = "its verdicts could not be put together: ValueError: no such finding"
        assert made.rows("select status, message from run where run_key = 1") == [("paused", told)]
        assert made.run(says(2), says(2)).status == "done"
        assert made.rows("select score from cell where cost_usd = 0") == [(2,)]

    def test_texts_are_compared_once_and_while_others_may_write(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = planned(tmp_path, traces=2, rubrics=("LC",), models=("a", "b"), mode="jury")
        compared = 0

        def compare(*members: Any, **options: Any) -> Any:
            nonlocal compared
            compared += 1
            with closing(sqlite3.connect(tmp_path / "tracejury.db", timeout=0)) as other:
                other.execute("BEGIN IMMEDIATE")  # raises where somebody is writing
            return joint_verdict(*members, **options)

        monkeypatch.setattr("tracejury.judging.juries.joint.joint_verdict", compare)
        made.run(says(2), says(2))
        assert keep_joint_verdicts(made.engine, made.run_key, "majority") == 0
        assert compared == 2


def statuses(connection: Connection) -> dict[int, str]:
    return {d.finding_key: d.status for d in decisions(connection)}
