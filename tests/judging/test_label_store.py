"""The store: operations applied once, current state from history, labels that wait, matches that people decide."""

import threading
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, select, update
from tests.build import TRACE, error_label, finding, small_trace, span_id, workspace
from tests.judging.team import many_traces, submit
from tests.judging.team import trace_id as team_trace

from tracejury.ingest.batch import store
from tracejury.ingest.store import open_engine, read_transaction, write_transaction
from tracejury.ingest.store.search import make_index
from tracejury.judging.agreement.errors import error_estimates, error_table, suite_coverage
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.matchers import matcher_agreement, reviewer_agreement
from tracejury.judging.labels.apply_ops import Applied, Stale, apply_ops
from tracejury.judging.labels.item_state import state
from tracejury.judging.labels.label_store import error_labels, reviews, score_labels
from tracejury.judging.labels.ops import Op, OpError, read_ops
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.compared import matchers_of
from tracejury.judging.matching.comparison import compare_trace
from tracejury.judging.matching.deciding import decide, match_decisions
from tracejury.judging.matching.finding_reviews import CANDIDATES, finding_decisions, finding_reviews, review_finding
from tracejury.judging.matching.rule import RULE
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.matching.standing import decisions
from tracejury.judging.records import Call, Citation, Failure, Finding, FindingReview, Review, ScoreLabel, Verdict
from tracejury.judging.reports.export import facts_of, selected_decisions
from tracejury.judging.reports.filters import Filters, Split, read_split
from tracejury.judging.reports.frames import load_frames, revision
from tracejury.judging.runs.verdict_imports import export_outcomes, import_outcomes, resolve_waiting
from tracejury.judging.runs.verdicts import (
    JudgeVersion,
    add_cells,
    add_run,
    ensure_judge_version,
    findings_of,
    finish_cell,
)
from tracejury.judging.store import WorkspaceError, open_workspace, tables
from tracejury.judging.store.workspace import HEAD, Workspace, alembic_config


def op(kind: str, payload: dict[str, Any], op_id: str = "") -> Op:
    return Op(op_id=op_id or str(uuid.uuid4()), kind=kind, payload=payload)  # type: ignore[arg-type]


def put_error(label_id: str = "e1", **more: Any) -> Op:
    payload = {"label_id": label_id, "span_ids": [span_id(4)], "dimensions": ["TC"], "impact": "high"}
    return op("error.put", payload | more)


def send(opened: Workspace, *ops: Op, base: int = 0, who: str = "ada") -> Applied | Stale:
    return apply_ops(opened.engine, annotator=who, trace_id=TRACE, base_revision=base, ops=ops)


def now(opened: Workspace, who: str = "ada") -> dict[str, Any]:
    return state(opened.engine, annotator=who, trace_id=TRACE)


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    return workspace(tmp_path / "home")


class TestOperations:
    def test_a_label_is_stored_and_read_back(self, opened: Workspace) -> None:
        assert send(opened, put_error(description="wrong day")) == Applied(1, now_ids(opened))
        assert now(opened)["errors"][0]["description"] == "wrong day"

    def test_sending_twice_changes_nothing(self, opened: Workspace) -> None:
        one = put_error()
        send(opened, one)
        again = send(opened, one, base=0)
        assert isinstance(again, Applied)
        assert again.revision == 1
        assert len(now(opened)["errors"]) == 1

    def test_one_operation_twice_in_a_batch_is_applied_once(self, opened: Workspace) -> None:
        one = put_error()
        sent = send(opened, one, one)
        assert isinstance(sent, Applied)
        assert sent.revision == 1

    def test_a_lost_answer_does_not_make_the_resent_batch_stale(self, opened: Workspace) -> None:
        first, second = put_error("e1"), put_error("e2")
        send(opened, first)
        sent = send(opened, first, second, base=0)
        assert isinstance(sent, Applied)
        assert sent.revision == 2

    def test_a_batch_sent_again_is_answered_with_what_others_stored_after_it(self, opened: Workspace) -> None:
        first, second = put_error(description="typed"), put_error(description="theirs")
        send(opened, first)
        send(opened, second, base=1)
        again = send(opened, first, base=0)
        assert isinstance(again, Applied)
        assert again.state is not None
        assert (again.revision, again.state["errors"][0]["description"]) == (2, "theirs")
        stale = send(opened, first, put_error("e2"), base=0)
        assert isinstance(stale, Stale)
        assert stale.applied == (first.op_id,)

    def test_another_tab_makes_it_stale_and_nothing_is_stored(self, opened: Workspace) -> None:
        send(opened, put_error("e1"))
        sent = send(opened, put_error("e2"), base=0)
        assert isinstance(sent, Stale)
        assert (sent.revision, [e["label_id"] for e in sent.state["errors"]]) == (1, ["e1"])

    def test_people_do_not_see_or_disturb_each_other(self, opened: Workspace) -> None:
        send(opened, put_error("e1"))
        assert isinstance(send(opened, put_error("e2"), who="ben"), Applied)
        assert [e["label_id"] for e in now(opened, "ben")["errors"]] == ["e2"]
        with pytest.raises(OpError, match="another annotator or trace"):
            send(opened, put_error("e1"), base=1, who="ben")

    def test_an_edit_is_a_new_revision_and_the_old_one_stays(self, opened: Workspace) -> None:
        send(opened, put_error(impact="high"))
        send(opened, put_error(impact="low"), base=1)
        assert now(opened)["errors"][0]["impact"] == "low"
        with read_transaction(opened.engine) as connection:
            assert connection.scalar(select(func.count()).select_from(tables.error_label)) == 2

    def test_delete_and_undo(self, opened: Workspace) -> None:
        send(opened, put_error(), op("error.delete", {"label_id": "e1"}))
        assert now(opened)["errors"] == []
        send(opened, put_error(), base=2)
        assert len(now(opened)["errors"]) == 1

    def test_scores_of_zero_and_not_applicable_and_none_are_three_things(self, opened: Workspace) -> None:
        send(
            opened,
            op("score.put", {"dimension": "LC", "value": 0}),
            op("score.put", {"dimension": "PQ", "not_applicable": True}),
            op("score.put", {"dimension": "EE", "value": 2}),
            op("score.put", {"dimension": "EE", "value": None}),
        )
        scores = now(opened)["scores"]
        assert (scores["LC"]["value"], scores["PQ"]["not_applicable"], scores["EE"]["value"]) == (0, True, None)
        with read_transaction(opened.engine) as connection:
            assert {s.dimension: s.value for s in score_labels(connection)} == {"LC": 0.0, "PQ": None}

    @pytest.mark.parametrize(
        ("kind", "payload", "message"),
        [
            ("error.put", {"label_id": "e", "span_ids": ["nope"]}, "not in trace"),
            ("error.put", {"label_id": "e", "impact": "HUGE"}, "impact"),
            ("score.put", {"dimension": "LC", "value": 4}, "value"),
            ("score.put", {"dimension": "LC", "value": 2.5}, "value"),
            ("score.put", {"dimension": "LC", "value": True}, "value"),
            ("score.put", {"dimension": "XX", "value": 1}, "dimension"),
            ("score.put", {"dimension": "LC", "value": 1, "not_applicable": True}, "not applicable"),
            ("review.put", {"status": "finished"}, "status"),
            ("reveal", {}, "hidden until you submit"),
        ],
    )
    def test_what_cannot_be_applied_is_refused_with_a_reason_and_nothing_of_its_batch_stays(
        self, opened: Workspace, kind: str, payload: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(OpError, match=message) as caught:
            send(opened, put_error("good"), op(kind, payload))
        assert caught.value.remedy
        assert now(opened) == now(opened, "nobody")

    def test_malformed_bodies_are_refused(self) -> None:
        for raw in (None, {}, [], [{"op_id": "x"}], [{"op_id": "12345678", "kind": "drop", "payload": {}}]):
            with pytest.raises(OpError):
                read_ops(raw)

    def test_an_unknown_trace_is_refused(self, opened: Workspace) -> None:
        with pytest.raises(OpError, match="not in this workspace"):
            apply_ops(opened.engine, annotator="ada", trace_id="f" * 32, base_revision=0, ops=[put_error()])

    def test_labels_are_closed_after_the_reveal_and_new_ones_are_marked(self, opened: Workspace) -> None:
        submitted = op("review.put", {"status": "submitted"})
        send(opened, put_error("blind"), op("score.put", {"dimension": "LC", "value": 1}), submitted, op("reveal", {}))
        with pytest.raises(OpError, match="is blind and cannot change"):
            send(opened, put_error("blind", impact="low"), base=4)
        with pytest.raises(OpError, match="is blind and cannot change"):
            send(opened, op("error.delete", {"label_id": "blind"}), base=4)
        send(opened, put_error("seen", phase="blind"), op("score.put", {"dimension": "LC", "value": 3}), base=4)
        with read_transaction(opened.engine) as connection:
            assert {label.label_id: label.phase for label in error_labels(connection)} == {
                "blind": "blind",
                "seen": "revealed",
            }
            assert sorted((s.phase, s.value) for s in score_labels(connection)) == [("blind", 1.0), ("revealed", 3.0)]

    def test_no_error_said_blind_stays_after_the_reveal(self, opened: Workspace) -> None:
        send(opened, op("review.put", {"status": "submitted", "no_error": True}), op("reveal", {}))
        with pytest.raises(OpError, match="part of the blind answer"):
            send(opened, op("review.put", {"status": "submitted", "no_error": False}), base=2)
        assert isinstance(send(opened, op("review.put", {"status": "open"}), base=2), Applied)
        assert now(opened)["review"]["no_error"] is True

    def test_many_at_once_apply_each_operation_once(self, opened: Workspace) -> None:
        batches = [[put_error(f"{who}-{n}") for n in range(10)] for who in range(6)]

        def work(who: int) -> None:
            for number, one in enumerate(batches[who]):
                for _ in range(2):
                    assert isinstance(send(opened, one, base=number, who=f"p{who}"), Applied)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with read_transaction(opened.engine) as connection:
            assert len(error_labels(connection)) == 60
            assert connection.scalar(select(func.count()).select_from(tables.op)) == 60


def now_ids(opened: Workspace) -> tuple[str, ...]:
    with read_transaction(opened.engine) as connection:
        return tuple(connection.scalars(select(tables.op.c.op_id).order_by(tables.op.c.revision)))


def put(opened: Workspace, who: str = "ada", **labels: Any) -> dict[str, int]:
    content: dict[str, Any] = {
        "errors": [error_label(annotator=who)],
        "scores": [ScoreLabel(trace_id=TRACE, annotator=who, dimension="TC", value=1)],
        "reviews": [Review(trace_id=TRACE, annotator=who, status="submitted")],
    }
    with write_transaction(opened.engine) as connection:
        return put_labels(connection, author="test", keeps_edits=True, **(content | labels)).new


def verdict(rubric: str = "TC", score: int | None = 0, *findings: Any, raw: str = "raw") -> Verdict:
    return Verdict(
        rubric=rubric, trace_id=TRACE, state="not_applicable" if score is None else "scored", score=score, criteria="c",
        rationale="r", findings=findings, call=Call(model="m", raw_reply=raw),
    )  # fmt: skip


class TestImports:
    def test_importing_again_writes_nothing_and_a_change_is_a_revision(self, opened: Workspace) -> None:
        assert put(opened) == {"errors": 1, "scores": 1, "reviews": 1}
        assert put(opened) == {"errors": 0, "scores": 0, "reviews": 0}
        assert put(opened, errors=[error_label(impact="low")]) == {"errors": 1, "scores": 0, "reviews": 0}

    def test_labels_of_an_absent_trace_wait_and_count_once_it_arrives(self, tmp_path: Path) -> None:
        opened = open_workspace(tmp_path)
        put(opened)
        import_outcomes(opened.engine, [verdict()], model="m", author="test")
        with read_transaction(opened.engine) as connection:
            assert load_frames(connection, Filters()).error_pairs.empty
        store(opened.engine, [small_trace()])
        with read_transaction(opened.engine) as connection:
            assert len(load_frames(connection, Filters()).error_pairs) == 1

    def test_importing_again_undoes_nothing_that_a_person_did_since(self, opened: Workspace) -> None:
        put(opened, errors=[error_label(1), error_label(2)])
        edited = put_error("label-1", description="better words")
        send(opened, edited, op("error.delete", {"label_id": "label-2"}))
        again = put(opened, errors=[error_label(1), error_label(2)])
        assert again == {"errors": 0, "scores": 0, "reviews": 0}
        assert [e["description"] for e in now(opened)["errors"]] == ["better words"]
        with write_transaction(opened.engine) as connection:
            changed = put_labels(
                connection,
                errors=[error_label(1, impact="low")],
                scores=(),
                reviews=(),
                author="test",
                keeps_edits=True,
            )
        assert changed.new["errors"] == 0
        assert "does not overwrite it" in changed.kept[0]

    def test_equal_label_ids_of_different_people_or_traces_are_all_kept(self, opened: Workspace) -> None:
        other = "cd" * 16
        labels = [error_label(1), error_label(1, annotator="ben"), error_label(1, trace_id=other)]
        for expected in (3, 0):
            assert put(opened, errors=labels)["errors"] == expected
        with read_transaction(opened.engine) as connection:
            owners = {(label.annotator, label.trace_id) for label in error_labels(connection)}
        assert owners == {("ada", TRACE), ("ben", TRACE), ("ada", other)}

    def test_a_blind_and_a_revealed_score_are_imported_once_each(self, opened: Workspace) -> None:
        blind = ScoreLabel(trace_id=TRACE, annotator="ada", dimension="TC", value=1)
        scores = [blind, replace(blind, value=2, phase="revealed")]
        assert put(opened, scores=scores)["scores"] == 2
        assert put(opened, scores=scores)["scores"] == 0

    def test_an_imported_review_does_not_forget_the_reveal(self, opened: Workspace) -> None:
        send(opened, op("review.put", {"status": "submitted"}), op("reveal", {}))
        with write_transaction(opened.engine) as connection:
            review = Review(trace_id=TRACE, annotator="ada", status="open")
            put_labels(connection, errors=(), scores=(), reviews=[review], author="test")
        assert now(opened)["review"]["revealed"]

    def test_verdicts_that_came_before_their_trace_are_resolved_when_it_comes(self, tmp_path: Path) -> None:
        opened = open_workspace(tmp_path)
        cite = Citation(cite=span_id(4), span_id=None)
        early = Finding(description="d", evidence="KeyError: 'Monday'", citations=(cite,))
        import_outcomes(opened.engine, [verdict("TC", 0, early)], model="m", author="test")
        store(opened.engine, [small_trace()])
        assert resolve_waiting(opened.engine) == 1
        assert resolve_waiting(opened.engine) == 0
        with read_transaction(opened.engine) as connection:
            ((_, reported),) = findings_of(connection, [1])[1]
        assert reported.citations[0].span_id == span_id(4)
        assert (reported.evidence_place, reported.evidence_span_id) == ("verbatim", span_id(4))

    def test_text_that_no_database_takes_is_kept_readable(self, opened: Workspace) -> None:
        odd = verdict("TC", 1, finding("bad \ud83d text \x00", 4, evidence="\udc00"))
        import_outcomes(opened.engine, [replace(odd, rationale="\ud83d")], model="m", author="test")
        with read_transaction(opened.engine) as connection:
            ((_, reported),) = findings_of(connection, [1])[1]
        assert reported.description == "bad \\ud83d text \\u0000"
        send(opened, put_error("odd", description="\ud83d\x00"))
        assert now(opened)["errors"][0]["description"] == "\\ud83d\\u0000"

    def test_an_outcome_is_not_stored_twice(self, opened: Workspace) -> None:
        first = import_outcomes(opened.engine, [verdict()], model="m", author="test")
        again = import_outcomes(opened.engine, [verdict(), verdict(raw="other")], model="m", author="test")
        assert (first.new, again.new, again.duplicates) == (1, 1, 1)

    def test_a_verdict_comes_back_as_it_was(self, opened: Workspace) -> None:
        outcome = verdict("TC", 2, finding("too late", 4, evidence="KeyError", impact="high"))
        import_outcomes(opened.engine, [outcome], model="m", author="test")
        with read_transaction(opened.engine) as connection:
            assert [f for findings in findings_of(connection, [1]).values() for _, f in findings] == list(
                outcome.findings
            )
            assert b'"too late"' in export_outcomes(connection)


def judged(opened: Workspace, outcome: Verdict | Failure, *, rubric_version: str, mode: str = "trace") -> str:
    """The outcome as that of a judge version of model `m`; returns the version."""
    judge = JudgeVersion(rubric="TC", model="m", rubric_version=rubric_version, mode=mode)
    with write_transaction(opened.engine) as connection:
        version = ensure_judge_version(connection, judge)
        run = add_run(connection, name="r", spec={}, author="test")
        add_cells(connection, run, [(version, "TC", outcome.trace_id, 0)])
        cell = tables.cell
        key = connection.scalar(select(cell.c.cell_key).where(cell.c.run_key == run))
        assert key is not None
        finish_cell(connection, key, outcome)
    return version


class TestFrames:
    def test_a_failed_judge_is_counted_and_never_a_score(self, opened: Workspace) -> None:
        put(opened)
        failed = Failure(rubric="TC", trace_id=TRACE, state="unparsable", reason="no JSON", call=Call(model="m"))
        import_outcomes(opened.engine, [failed], model="m", author="test")
        with read_transaction(opened.engine) as connection:
            frames = load_frames(connection, Filters())
        assert frames.score_pairs["state"].tolist() == ["failed"]
        assert frames.score_pairs["judge_score"].isna().all()
        assert frames.error_pairs["state"].tolist() == ["failed"]

    def test_labels_count_only_with_a_submitted_review(self, opened: Workspace) -> None:
        put(opened, reviews=[Review(trace_id=TRACE, annotator="ada", status="open")])
        import_outcomes(opened.engine, [verdict()], model="m", author="test")
        with read_transaction(opened.engine) as connection:
            assert load_frames(connection, Filters(reference="ada")).error_pairs.empty

    def test_errors_that_lack_what_a_judge_could_find_are_in_no_estimate_and_counted(self, opened: Workspace) -> None:
        vague = replace(error_label(2), span_ids=(), impact=None)
        put(opened, errors=[error_label(1), vague])
        import_outcomes(opened.engine, [verdict()], model="m", author="test")
        with read_transaction(opened.engine) as connection:
            frames = load_frames(connection, Filters())
        assert frames.error_pairs["error_id"].tolist() == [error_label(1).label_id]
        left_out = frames.incomplete.to_dict("records")
        assert left_out == [
            {"trace_id": TRACE, "error_id": vague.label_id, "annotator": "ada", "lacks": "span, impact"}
        ]
        facts = facts_of(frames)
        assert (facts.reference_errors, facts.incomplete_errors) == (1, 1)

    def test_relevant_caught_and_localized(self, opened: Workspace) -> None:
        put(opened)
        reported = finding("The tool is called with a day it does not know.", 4)
        near = finding("The tool is called with a day it does not know.", 1)
        import_outcomes(opened.engine, [verdict("TC", 0, reported)], model="exact", author="test")
        import_outcomes(opened.engine, [verdict("TC", 0, near)], model="near", author="test")
        import_outcomes(opened.engine, [verdict("LC", 3)], model="exact", author="test")
        assert propose_matches(opened.engine)["matches"] == 2
        with read_transaction(opened.engine) as connection:
            pairs = load_frames(connection, Filters()).error_pairs.set_index(["judge_model", "dimension"])
        assert pairs.loc[("exact", "TC"), ["relevant", "caught", "localized"]].tolist() == [True, True, True]
        assert pairs.loc[("near", "TC"), ["relevant", "caught", "localized"]].tolist() == [True, True, False]
        assert pairs.loc[("exact", "LC"), ["relevant", "caught", "localized"]].tolist() == [False, False, False]

    def test_a_rubric_of_ones_own_for_a_dimension_is_a_judge_of_its_own(self, opened: Workspace) -> None:
        put(opened)
        body = {"key": "brevity", "dimension": "TC"}
        for rubric, more in (("TC", {}), ("brevity", {"rubric_body": body})):
            judge = JudgeVersion(rubric=rubric, model="m", rubric_version="1", mode="trace", **more)
            with write_transaction(opened.engine) as connection:
                version = ensure_judge_version(connection, judge)
                run = add_run(connection, name=rubric, spec={}, author="test")
                add_cells(connection, run, [(version, rubric, TRACE, repeat) for repeat in (0, 1)])
                own = tables.cell.c.run_key == run
                for key in connection.scalars(select(tables.cell.c.cell_key).where(own)).all():
                    finish_cell(connection, key, verdict(rubric, 1))
        propose_matches(opened.engine)
        with read_transaction(opened.engine) as connection:
            frames = load_frames(connection, Filters())
        names = {"m", "m · rubric brevity"}
        for frame in (frames.error_pairs, frames.score_pairs, frames.ratings.query("rater_kind == 'judge'")):
            assert set(frame["judge_model"]) == names
            assert set(frame["dimension"]) == {"TC"}
        assert frames.error_pairs["relevant"].all()
        consistency = Inputs(ratings=frames.ratings, draws=0).consistency
        assert set(consistency["judge_model"]) == names

    def test_an_error_of_another_dimension_is_not_relevant_to_it(self, opened: Workspace) -> None:
        put(opened, errors=[error_label(dimensions=("EE",))])
        judge = JudgeVersion(
            rubric="brevity", model="m", rubric_version="1", mode="trace", rubric_body={"dimension": "LC"}
        )
        with write_transaction(opened.engine) as connection:
            version = ensure_judge_version(connection, judge)
            run = add_run(connection, name="r", spec={}, author="test")
            add_cells(connection, run, [(version, "brevity", TRACE, 0)])
            finish_cell(connection, 1, verdict("brevity", 1))
        with read_transaction(opened.engine) as connection:
            assert load_frames(connection, Filters()).error_pairs["relevant"].tolist() == [False]

    def test_other_outputs_of_the_same_judge_are_repeats(self, opened: Workspace) -> None:
        put(opened)
        import_outcomes(opened.engine, [verdict(score=3)], model="m", author="test")
        import_outcomes(opened.engine, [verdict(score=1, raw="later")], model="m", author="test")
        with read_transaction(opened.engine) as connection:
            ratings = load_frames(connection, Filters()).ratings
            first = load_frames(connection, Filters()).score_pairs
            second = load_frames(connection, Filters(repeat=1)).score_pairs
        runs = ratings[ratings["judge_model"] == "m"]
        assert dict(zip(runs["rater"], runs["value"], strict=True)) == {"repeat 0": 3.0, "repeat 1": 1.0}
        assert (first["judge_score"].tolist(), second["judge_score"].tolist()) == ([3.0], [1.0])

    def test_a_newer_version_that_only_failed_does_not_hide_the_answers_of_an_older_one(
        self, opened: Workspace
    ) -> None:
        put(opened)
        import_outcomes(opened.engine, [verdict(score=2)], model="m", author="test")
        failed = Failure(rubric="TC", trace_id=TRACE, state="error", reason="wrong key", call=Call(model="m"))
        judged(opened, failed, rubric_version="2")
        with read_transaction(opened.engine) as connection:
            assert load_frames(connection, Filters()).score_pairs["judge_score"].tolist() == [2.0]
        judged(opened, verdict(score=0), rubric_version="3")
        with read_transaction(opened.engine) as connection:
            assert load_frames(connection, Filters()).score_pairs["judge_score"].tolist() == [0.0]

    def test_another_mode_is_another_system_and_versions_can_stand_beside_each_other(self, opened: Workspace) -> None:
        put(opened)
        one = judged(opened, verdict(score=2), rubric_version="1")
        two = judged(opened, verdict(score=3), rubric_version="2")
        judged(opened, verdict(score=0), rubric_version="1", mode="span")
        with read_transaction(opened.engine) as connection:
            pairs = load_frames(connection, Filters()).score_pairs
            beside = load_frames(connection, Filters(versions=(one, two))).score_pairs
        assert dict(zip(pairs["judge_model"], pairs["judge_score"], strict=True)) == {"m": 3.0, "m · span": 0.0}
        assert sorted(beside["judge_score"]) == [2.0, 3.0]

    def test_only_traces_the_person_reviewed_enter_any_frame(self, opened: Workspace) -> None:
        other = "cd" * 16
        store(opened.engine, [small_trace(other)])
        put(opened)
        score = ScoreLabel(trace_id=other, annotator="ada", dimension="TC", value=3)
        absent = ScoreLabel(trace_id="ee" * 16, annotator="ada", dimension="TC", value=3)
        done = Review(trace_id="ee" * 16, annotator="ada", status="submitted")
        put(opened, errors=[], scores=[score, absent], reviews=[done])
        reported = finding("Something else.", 2, category="Goal Deviation")
        there = replace(verdict("TC", 1, reported), trace_id=other)
        import_outcomes(opened.engine, [verdict("TC", 0, reported), there], model="m", author="test")
        with read_transaction(opened.engine) as connection:
            frames = load_frames(connection, Filters())
        for name in ("score_pairs", "findings", "judged", "trail_predictions", "trail_traces"):
            assert set(getattr(frames, name)["trace_id"]) == {TRACE}, name
        people = frames.ratings[frames.ratings["rater_kind"] == "annotator"]
        assert set(people["trace_id"]) == {TRACE}

    def test_the_revision_changes_with_every_word(self, opened: Workspace) -> None:
        seen = set()
        for step in (lambda: None, lambda: put(opened), lambda: put(opened, errors=[error_label(impact="low")])):
            step()
            with read_transaction(opened.engine) as connection:
                seen.add(revision(connection))
        assert len(seen) == 3

    def test_a_store_that_went_another_way_has_another_revision(self, opened: Workspace) -> None:
        """Figures are kept by it, and a restored backup writes other rows under the same keys."""
        put(opened)
        with read_transaction(opened.engine) as connection:
            before = revision(connection)
        with write_transaction(opened.engine) as connection:  # what restoring and labelling anew leaves behind
            connection.execute(update(tables.error_label).values(created_at=tables.error_label.c.created_at + 1))
        with read_transaction(opened.engine) as connection:
            assert revision(connection) != before

    def test_splits_are_read_and_refused_by_name(self) -> None:
        split = read_split(b'{"how": "x", "dev": ["a"], "test": ["b"]}', "s.json", "s")
        assert split.by_trace == {"a": "dev", "b": "test"}
        for bad in (b"[", b"[]", b"{}", b'{"dev": ["a"], "test": ["a"]}', b'{"dev": [{}]}'):
            with pytest.raises(ValueError, match=r"s\.json"):
                read_split(bad, "s.json", "s")


class TestMatches:
    @pytest.fixture
    def matched(self, opened: Workspace) -> Workspace:
        put(opened, errors=[error_label(1), error_label(2, description="Other words entirely.", evidence=())])
        reported = finding("The tool is called with a day it does not know.", 4)
        extra = finding("Pears sorted twice.", 2)
        import_outcomes(opened.engine, [verdict("TC", 0, reported, extra)], model="m", author="test")
        propose_matches(opened.engine)
        return opened

    def pairs(self, opened: Workspace) -> set[tuple[str, int, str, str]]:
        with read_transaction(opened.engine) as connection:
            return {(d.label_id, d.finding_key, d.status, d.author) for d in decisions(connection)}

    def test_proposing_again_writes_nothing(self, matched: Workspace) -> None:
        assert propose_matches(matched.engine)["new"] == 0
        assert self.pairs(matched) == {("label-1", 1, "proposed", "auto")}

    def test_another_judge_or_trace_changes_no_proposal(self, matched: Workspace) -> None:
        def proposals() -> set[tuple[str, int, float, str]]:
            with read_transaction(matched.engine) as connection:
                rows = connection.execute(select(tables.match)).all()
            return {(row.label_id, row.finding_key, row.confidence, row.reasons) for row in rows}

        before = proposals()
        texts = [f"The tool is called with a day that it does not know, number {number}." for number in range(30)]
        said = [finding(text, 1) for text in texts]
        other = f"{7:032x}"
        store(matched.engine, [small_trace(other)])
        put(matched, errors=[error_label(50, trace_id=other, annotator="cleo", description=texts[0])])
        import_outcomes(matched.engine, [verdict("LC", 0, *said)], model="unrelated", author="test")
        counts = propose_matches(matched.engine)
        mine = {row for row in proposals() if row[0] in {"label-1", "label-2"} and row[1] <= 2}
        assert (mine, counts["withdrawn"]) == (before, 0)

    def test_a_person_confirms_and_the_proposal_stays_in_the_history(self, matched: Workspace) -> None:
        with write_transaction(matched.engine) as connection:
            decide(connection, label_id="label-1", finding_key=1, status="confirmed", author="ada")
        assert self.pairs(matched) == {("label-1", 1, "confirmed", "ada")}
        propose_matches(matched.engine)
        assert self.pairs(matched) == {("label-1", 1, "confirmed", "ada")}

    def test_errors_newer_than_the_last_matching_are_not_missed(self, matched: Workspace) -> None:
        put(matched, errors=[error_label(7, description="A third error, of which no word is shared.", evidence=())])
        assert self.states(matched) == {"label-1": "scored", "label-2": "scored", "label-7": "not_matched"}

    def test_what_an_older_version_of_the_rule_compared_waits_for_this_one(self, matched: Workspace) -> None:
        propose_matches(matched.engine)
        with write_transaction(matched.engine) as connection:
            connection.execute(update(tables.matching).values(matcher="auto@1"))
        assert "not_matched" in self.states(matched).values()
        propose_matches(matched.engine)
        assert set(self.states(matched).values()) == {"scored"}
        with read_transaction(matched.engine) as connection:
            assert matchers_of(connection) == (RULE,)
        propose_matches(matched.engine)
        assert set(self.states(matched).values()) == {"scored"}

    def test_findings_newer_than_the_last_matching_miss_nothing(self, matched: Workspace) -> None:
        import_outcomes(matched.engine, [verdict("TC", 0, finding("Pears.", 2))], model="later", author="test")
        assert set(self.states(matched, "later").values()) == {"not_matched"}
        with read_transaction(matched.engine) as connection:
            pairs = load_frames(connection, Filters(judge_models=("later",))).error_pairs
            compared = compare_trace(connection, trace_id=TRACE, reference="ada", judge_model="later")
        rows = error_estimates(error_table(pairs, draws=0)).query("metric == 'recall' and impact == 'all'")
        assert (rows["n"].tolist(), rows["not_matched"].tolist()) == ([0, 0], [2, 2])
        assert set(rows["reason"]) == {"no matches proposed yet"}
        assert suite_coverage(pairs).query("impact == 'all'")[["n", "not_matched"]].to_numpy().tolist() == [[0, 2]] * 2
        assert {pair.state for pair in compared.pairs} == {"not proposed yet"}

    def test_a_new_matching_changes_the_revision_even_where_it_proposes_nothing(self, matched: Workspace) -> None:
        import_outcomes(matched.engine, [verdict("TC", 0, finding("Pears.", 2))], model="later", author="test")
        seen = set()
        for step in (lambda: None, lambda: propose_matches(matched.engine)):
            step()
            with read_transaction(matched.engine) as connection:
                seen.add(revision(connection))
        assert len(seen) == 2

    def states(self, opened: Workspace, judge_model: str = "m") -> dict[str, str]:
        with read_transaction(opened.engine) as connection:
            pairs = load_frames(connection, Filters(judge_models=(judge_model,))).error_pairs
        return dict(zip(pairs["error_id"], pairs["state"], strict=True))

    def test_a_rejected_pair_is_not_caught(self, matched: Workspace) -> None:
        with write_transaction(matched.engine) as connection:
            decide(connection, label_id="label-1", finding_key=1, status="rejected", author="ada")
        with read_transaction(matched.engine) as connection:
            assert not load_frames(connection, Filters()).error_pairs["caught"].any()

    def test_rematching_replaces_the_proposal(self, matched: Workspace) -> None:
        with write_transaction(matched.engine) as connection:
            decide(connection, label_id="label-2", finding_key=1, status="confirmed", author="ada")
        assert self.pairs(matched) == {("label-2", 1, "confirmed", "ada")}

    def test_only_confirmed_pairs_count_when_asked(self, matched: Workspace) -> None:
        with read_transaction(matched.engine) as connection:
            assert load_frames(connection, Filters()).error_pairs["caught"].sum() == 1
            assert load_frames(connection, Filters(matches="confirmed")).error_pairs["caught"].sum() == 0

    def test_a_proposal_falls_when_its_label_is_deleted(self, matched: Workspace) -> None:
        with write_transaction(matched.engine) as connection:
            connection.execute(tables.error_label.update().values(deleted=True))
        assert propose_matches(matched.engine) == {"matches": 0, "new": 0, "withdrawn": 0, "traces": 0}
        with read_transaction(matched.engine) as connection:
            assert load_frames(connection, Filters()).error_pairs.empty

    def test_confirming_for_one_person_leaves_the_proposals_of_another(self, matched: Workspace) -> None:
        put(matched, who="ben", errors=[error_label(3, annotator="ben")])
        propose_matches(matched.engine)
        with write_transaction(matched.engine) as connection:
            decide(connection, label_id="label-1", finding_key=1, status="confirmed", author="ada")
        assert ("label-3", 1, "proposed", "auto") in self.pairs(matched)

    def test_a_finding_is_confirmed_for_one_error_of_a_person_only(self, matched: Workspace) -> None:
        for label in ("label-1", "label-2"):
            with write_transaction(matched.engine) as connection:
                decide(connection, label_id=label, finding_key=1, status="confirmed", author="ada")
        assert self.pairs(matched) == {("label-1", 1, "rejected", "ada"), ("label-2", 1, "confirmed", "ada")}

    def test_localized_follows_the_label_when_it_moves(self, matched: Workspace) -> None:
        with write_transaction(matched.engine) as connection:
            decide(connection, label_id="label-1", finding_key=1, status="confirmed", author="ada")
        put(matched, errors=[error_label(1, spans=(2,))])
        with read_transaction(matched.engine) as connection:
            assert [d.localized for d in decisions(connection)] == [False]

    def test_withdrawing_ones_review_leaves_that_of_another(self, matched: Workspace) -> None:
        for review, author in (("false alarm", "ann"), ("duplicate", "bob"), (None, "bob")):
            with write_transaction(matched.engine) as connection:
                review_finding(connection, finding_key=2, review=review, author=author)  # type: ignore[arg-type]
        with read_transaction(matched.engine) as connection:
            assert finding_reviews(connection) == {2: "false alarm"}

    def test_a_valid_new_error_becomes_a_candidate_credited_to_the_judge(self, matched: Workspace) -> None:
        with write_transaction(matched.engine) as connection:
            label_id = review_finding(connection, finding_key=2, review="valid new error", author="ada")
        with read_transaction(matched.engine) as connection:
            (label,) = [one for one in error_labels(connection) if one.label_id == label_id]
            assert len(load_frames(connection, Filters()).error_pairs) == 2
        assert (label.annotator, label.span_ids, label.dimensions) == (CANDIDATES, (span_id(2),), ("TC",))
        assert label.attributes["judge_model"] == "m"

    def test_people_who_decide_the_same_pair_have_an_agreement(self, matched: Workspace) -> None:
        for author, status in (("ann", "confirmed"), ("bob", "rejected"), ("cat", "confirmed")):
            with write_transaction(matched.engine) as connection:
                decide(connection, label_id="label-1", finding_key=1, status=status, author=author)  # type: ignore[arg-type]
        with read_transaction(matched.engine) as connection:
            words = match_decisions(connection)
        assert words[["label_id", "finding_id", "matcher", "status"]].to_numpy().tolist() == [
            ["label-1", 1, "ann", "confirmed"], ["label-1", 1, "bob", "rejected"], ["label-1", 1, "cat", "confirmed"],
        ]  # fmt: skip
        assert matcher_agreement(words, draws=0)["agreement"].tolist() == [0, 1, 0]

    def test_people_who_review_the_same_finding_have_an_agreement(self, matched: Workspace) -> None:
        reviews: list[tuple[str, FindingReview | None]] = [
            ("ann", "false alarm"), ("bob", "duplicate"), ("ann", "duplicate"), ("cat", "false alarm"), ("cat", None),
        ]  # fmt: skip
        for author, review in reviews:
            with write_transaction(matched.engine) as connection:
                review_finding(connection, finding_key=2, review=review, author=author)
        with read_transaction(matched.engine) as connection:
            words = finding_decisions(connection)
            by_format = {
                form: selected_decisions(connection, Filters(trace_formats=(form,)))
                for form in ("otlp", "gaia2", "trail")
            }
        assert words[["finding_id", "reviewer", "review"]].to_numpy().tolist() == [
            [2, "ann", "duplicate"], [2, "bob", "duplicate"],
        ]  # fmt: skip
        assert reviewer_agreement(words, draws=0)["agreement"].tolist() == [1]
        assert sum(len(frames_of_format["finding_decisions"]) for frames_of_format in by_format.values()) in (0, 2)
        assert (
            min(len(frames_of_format["finding_decisions"]) for frames_of_format in by_format.values()) == 0
        )  # the data chosen counts here too

    def test_nobody_can_pass_for_the_machine(self, matched: Workspace) -> None:
        with pytest.raises(ValueError, match="proposals"), write_transaction(matched.engine) as connection:
            decide(connection, label_id="label-1", finding_key=1, status="confirmed", author="auto")

    def test_an_unknown_label_or_finding_is_refused(self, matched: Workspace) -> None:
        with pytest.raises(KeyError), write_transaction(matched.engine) as connection:
            decide(connection, label_id="nobody", finding_key=1, status="confirmed", author="ada")
        with pytest.raises(KeyError), write_transaction(matched.engine) as connection:
            decide(connection, label_id="label-1", finding_key=99, status="confirmed", author="ada")

    def test_a_review_of_an_unmatched_finding_stands_in_the_findings_frame(self, matched: Workspace) -> None:
        with write_transaction(matched.engine) as connection:
            review_finding(connection, finding_key=2, review="false alarm", author="ada")
        with read_transaction(matched.engine) as connection:
            findings = load_frames(connection, Filters()).findings.set_index("finding_id")
        assert findings.loc[1, "matched"]
        assert findings.loc[2, "review"] == "false alarm"


class TestSchema:
    def test_the_migrations_make_the_schema_of_the_code(self, migrates_itself: None, opened: Workspace) -> None:
        def ours(_object: object, name: str | None, kind: str, _reflected: bool, _other: object) -> bool:
            return not (kind == "table" and "_fts" in str(name))

        with read_transaction(opened.engine) as connection:
            context = MigrationContext.configure(connection, opts={"include_object": ours})
            assert compare_metadata(context, tables.metadata) == []

    def test_the_migrations_make_the_index_of_words_that_search_counts_on(
        self, migrates_itself: None, opened: Workspace
    ) -> None:
        made = "SELECT sql FROM sqlite_master WHERE name = 'span_fts'"
        with open_engine("sqlite://").begin() as memory, read_transaction(opened.engine) as connection:
            make_index(memory)
            assert connection.exec_driver_sql(made).scalar_one() == memory.exec_driver_sql(made).scalar_one()

    def test_head_is_the_newest_migration(self, opened: Workspace) -> None:
        with read_transaction(opened.engine) as connection:
            script = ScriptDirectory.from_config(alembic_config(connection))
        assert script.get_heads() == [HEAD]

    def test_a_database_of_another_schema_is_refused_untouched_with_a_way_out(self, tmp_path: Path) -> None:
        with write_transaction(open_workspace(tmp_path).engine) as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0011'")
        before = (tmp_path / "tracejury.db").read_bytes()
        with pytest.raises(WorkspaceError, match=r"schema 0011.*labels import"):
            open_workspace(tmp_path)
        assert (tmp_path / "tracejury.db").read_bytes() == before

    def test_opening_at_once_from_many_threads_migrates_once(self, tmp_path: Path, migrates_itself: None) -> None:
        failures: list[BaseException] = []

        def work() -> None:
            try:
                open_workspace(tmp_path / "w")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []

    def test_a_home_that_is_a_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x", encoding="utf-8")
        with pytest.raises(WorkspaceError, match="file"):
            open_workspace(tmp_path / "file" / "home")

    def test_reviews_of_people(self, opened: Workspace) -> None:
        put(opened)
        with read_transaction(opened.engine) as connection:
            assert [(r.annotator, r.status) for r in reviews(connection)] == [("ada", "submitted")]


def test_people_are_compared_with_themselves_on_the_chosen_traces_alone(tmp_path: Path) -> None:
    space = many_traces(tmp_path / "home", 2)
    for number in range(2):
        for occasion, value in enumerate((1, 2)):
            submit(space, "ada", team_trace(number), scores={"LC": value}, occasion=occasion)
    with read_transaction(space.engine) as connection:
        every = load_frames(connection, Filters()).repeats
        dev = Split(name="s", parts=((team_trace(0), "dev"),))
        split = load_frames(connection, Filters(split=dev)).repeats
        none = load_frames(connection, Filters(trace_formats=("gaia2",))).repeats
    assert every[["first", "second"]].to_numpy().tolist() == [[1, 2], [1, 2]]
    assert split["unit"].tolist() == [team_trace(0)]
    assert none.empty
